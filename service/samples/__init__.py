"""Reads and checks rows, labels and weights of decoded bodies; encodes samples as records.

Each task has a module for its y (`tasks`): `labels` and `numbers`.

It may import `service.spec`, `service.files`, `solver.prepare`, `solver.rows`.
It is imported by `service.offline`, `service.web.routes`, `service.web.formats`, `service.cluster`,
`service.monitor`, `service.engine`, `service.recovery`, `service.model`, `service.heads`,
`service.calls`.
"""
