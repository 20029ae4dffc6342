"""A model of a stream: prepared rows, and heads that learn them in turn and listen to each other.

It may import `solver.adaptive`, `solver.calibration`, `solver.asset`, `solver.working_set`,
`solver.kernels`, `solver.prepare`, `solver.rows`.
It is imported by `service.offline`, `service.model`, `service.heads`, `solver.estimators`.
"""
