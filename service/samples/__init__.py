"""Rows, labels and weights out of decoded bodies, checked; and samples as records of the log.

It may import `service.spec`, `solver.prepare`, `solver.rows`.
It is imported by `service.notebook`, `service.web.routes`, `service.web.formats`,
`service.workers`, `service.training`, `service.replicas`, `service.engine`, `service.model`,
`service.heads`, `service.calls`.
"""
