"""Bytes to plain values and back.

JSON, MessagePack, lines, tensors, compressed bodies, and problems (RFC 9457).

It may import `service.model`, `service.calls`, `service.samples`, `service.spec`, `service.files`,
`service.diagnostics`, `service.settings`, `solver.prepare`.
It is imported by `service.server`, `service.web.routes`, `service.web.openapi`,
`service.web.transport`.
"""
