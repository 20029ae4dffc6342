"""Rows of samples, dense or sparse, and slots to store them in.

It may import nothing of the other packages.
It is imported by `service.cli`, `service.offline`, `service.recovery`, `service.model`,
`service.heads`, `service.samples`, `service.files`, `solver.estimators`, `solver.stream`,
`solver.adaptive`, `solver.semiparametric`, `solver.asset`, `solver.working_set`,
`solver.frank_wolfe`, `solver.kernels`, `solver.prepare`.
"""
