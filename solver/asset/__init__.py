"""ASSET: robust stochastic subgradient steps on approximate kernel features (Lee and Wright 2012).

It may import `solver.kernels`, `solver.rows`.
It is imported by `service.offline`, `service.heads`, `solver.estimators`, `solver.stream`.
"""
