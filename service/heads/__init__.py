"""What learns inside a model, one module for each kind of head.

Each head implements the interface in `protocol`: it checks, absorbs, publishes a view, saves and
restores. Adding a kind of head is adding a module here.

It may import `service.samples`, `service.spec`, `solver.stream`, `solver.calibration`,
`solver.trees`, `solver.adaptive`, `solver.semiparametric`, `solver.asset`, `solver.working_set`,
`solver.simplex`, `solver.kernels`, `solver.prepare`, `solver.rows`.
It is imported by `service.cli`, `service.notebook`, `service.web.routes`, `service.web.metrics`,
`service.training`, `service.engine`, `service.model`.
"""
