"""Semiparametric support vector regression by decomposition (Lee and Wright 2009).

`pdsg` and `mpd` solve the subproblems.

It may import `solver.kernels`, `solver.rows`.
It is imported by `service.offline`, `service.heads`, `solver.estimators`.
"""
