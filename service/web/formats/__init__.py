"""Bytes to plain values and back.

JSON, MessagePack, lines, tensors, compressed bodies, and problems (RFC 9457).

It may import `service.model`, `service.files`, `service.samples`, `service.spec`, `service.calls`,
`service.diagnostics`, `service.settings`, `solver.prepare`.
It is imported by `service.web`, `service.web.routes`, `service.web.openapi`, `service.web.layers`.
"""
