"""The calls of the interface: one row each, and what a path and a method mean.

`table` has the rows, `lookup` finds the one that a request is for. Routing, keys, forwarding,
frames of streams, clients and the OpenAPI document read them.

It may import `service.access`.
It is imported by `service.web`, `service.web.routes`, `service.web.openapi`,
`service.web.layers`, `service.web.formats`.
"""
