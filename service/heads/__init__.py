"""Heads: what learns inside a model, a module for each kind.

Each implements the interface in `protocol`: it checks and learns samples, provides a view, saves
and restores. A new kind of head is a new module here; see `kinds`.

It may import `service.samples`, `service.spec`, `solver.stream`, `solver.adaptive`,
`solver.calibration`, `solver.semiparametric`, `solver.asset`, `solver.working_set`,
`solver.frank_wolfe`, `solver.kernels`, `solver.trees`, `solver.prepare`, `solver.rows`.
It is imported by `wolfstream`, `service.cli`, `service.offline`, `service.server`,
`service.web.routes`, `service.monitor`, `service.engine`, `service.recovery`,
`service.compilation`, `service.model`.
"""
