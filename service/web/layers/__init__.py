"""ASGI middleware around all routes, outermost first.

`connections` limits connections and ends slow ones, `observer` counts and logs requests, `guard`
checks keys, `forwarding` sends a fleet's calls where they belong, over `http_hop` and
`stream_relay`, `shortcut` takes the calls that carry the traffic around the router.

It may import `service.web.formats`, `service.replicas`, `service.calls`, `service.access`,
`service.diagnostics`, `service.settings`.
It is imported by `service.web`, `service.web.routes`, `service.web.metrics`.
"""
