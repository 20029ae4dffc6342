"""Converts fitted estimators to models of a server and back: `wolfstream.save` and `load`.

It may import `service.recovery`, `service.storage`, `service.model`, `service.heads`,
`service.samples`, `service.spec`, `solver.estimators`, `solver.stream`, `solver.calibration`,
`solver.semiparametric`, `solver.asset`, `solver.kernels`, `solver.prepare`, `solver.rows`.
It is imported by `wolfstream`, `service.client`.
"""
