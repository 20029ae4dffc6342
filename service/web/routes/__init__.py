"""Routes, and the handlers under every transport.

`app` puts routes and layers together, `handlers` is what HTTP, the stream and the inference
protocol all call, and the other modules are the routes of one subject each.

It may import `service.web.metrics`, `service.web.openapi`, `service.web.layers`,
`service.web.formats`, `service.workers`, `service.monitor`, `service.replicas`, `service.engine`,
`service.storage`, `service.model`, `service.heads`, `service.samples`, `service.spec`,
`service.calls`, `service.console`, `service.access`, `service.diagnostics`, `service.settings`,
`solver.prepare`.
It is imported by `service.web`.
"""
