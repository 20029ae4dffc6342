"""Learning from files without a server.

The plan, passes over a stream or a batch solver, and evaluation.

It may import `service.storage`, `service.model`, `service.heads`, `service.files`,
`service.samples`, `service.spec`, `solver.stream`, `solver.calibration`, `solver.frank_wolfe`,
`solver.kernels`, `solver.prepare`, `solver.rows`.
It is imported by `service.cli`.
"""
