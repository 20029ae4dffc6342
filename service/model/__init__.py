"""A live model: its learner, which changes it, and its published view, which predicts.

It may import `service.heads`, `service.calls`, `service.samples`, `service.spec`,
`service.diagnostics`, `solver.stream`, `solver.adaptive`, `solver.prepare`, `solver.rows`.
It is imported by `service.cli`, `service.conversion`, `service.web.routes`, `service.web.formats`,
`service.cluster`, `service.monitor`, `service.training`, `service.engine`, `service.recovery`,
`service.compilation`.
"""
