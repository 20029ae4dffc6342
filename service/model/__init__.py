"""A live model: its learner, which changes it, and its published view, which predicts.

It may import `service.heads`, `service.calls`, `service.samples`, `service.spec`,
`service.diagnostics`, `solver.stream`, `solver.adaptive`, `solver.prepare`, `solver.rows`.
It is imported by `service.cli`, `service.offline`, `service.web.routes`, `service.web.formats`,
`service.cluster`, `service.monitor`, `service.engine`, `service.recovery`, `service.compilation`.
"""
