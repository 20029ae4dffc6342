"""Kernels and their values for blocks of rows.

Also rows of the kernel matrix within a budget, and the choice of gamma.

It may import `solver.rows`.
It is imported by `service.offline`, `service.heads`, `solver.estimators`, `solver.stream`,
`solver.semiparametric`, `solver.asset`, `solver.working_set`, `solver.frank_wolfe`.
"""
