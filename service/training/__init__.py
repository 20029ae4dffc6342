"""Training from files, without a server: the plan, the ways of training, and evaluation.

It may import `service.storage`, `service.model`, `service.heads`, `service.samples`,
`service.spec`, `service.files`, `solver.calibration`, `solver.frank_wolfe`, `solver.kernels`,
`solver.prepare`, `solver.rows`.
It is imported by `service.cli`.
"""
