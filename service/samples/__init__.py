"""Rows and labels out of decoded bodies, checked; rows of named numbers; records for the journal.

It may import `service.spec`, `solver.prepare`, `solver.rows`.
It is imported by `service.notebook`, `service.web.routes`, `service.web.formats`,
`service.workers`, `service.training`, `service.replicas`, `service.engine`, `service.model`,
`service.heads`, `service.calls`.
"""
