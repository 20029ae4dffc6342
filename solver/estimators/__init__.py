"""scikit-learn's interface to every learner of this package.

It may import `solver.stream`, `solver.adaptive`, `solver.calibration`, `solver.semiparametric`,
`solver.asset`, `solver.working_set`, `solver.frank_wolfe`, `solver.kernels`, `solver.prepare`,
`solver.rows`.
It is imported by `wolfstream`, `service.offline`.
"""
