"""Semiparametric support vector regression by decomposition (Lee and Wright 2009).

`pdsg` and `mpd` solve the subproblems.

It may import `solver.kernels`, `solver.rows`.
It is imported by `service.conversion`, `service.heads`, `solver.estimators`.
"""
