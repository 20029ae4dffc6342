"""Rows made fit to learn from: running scales, missing values, categories as numbers.

It may import `solver.prepare.kinds`, `solver.rows`.
It is imported by `service.notebook`, `service.web.routes`, `service.web.formats`,
`service.training`, `service.engine`, `service.recovery`, `service.native`, `service.model`,
`service.heads`, `service.files`, `service.samples`, `solver.estimators`, `solver.stream`,
`solver.adaptive`.
"""
