"""Rows, labels and weights out of decoded bodies, checked; and samples as records of the log.

What y is, each task says in a module of its own (`tasks`): `labels`, `numbers`.

It may import `service.spec`, `solver.stream`, `solver.prepare`, `solver.rows`.
It is imported by `service.notebook`, `service.web.routes`, `service.web.formats`,
`service.workers`, `service.monitor`, `service.training`, `service.replicas`, `service.engine`,
`service.model`, `service.heads`, `service.calls`.
"""
