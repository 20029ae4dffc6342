"""Routes, and the handlers under every transport.

`app` puts routes and layers together, `handlers` is what HTTP, the stream and the inference
protocol all call, and the other modules are the routes of one subject each.

It may import `service.settings`, `service.web.metrics`, `service.web.openapi`,
`service.web.layers`, `service.web.formats`, `service.monitor`, `service.workers`,
`service.replicas`, `service.engine`, `service.storage`, `service.model`, `service.heads`,
`service.samples`, `service.spec`, `service.console`, `service.access`, `service.diagnostics`,
`solver.prepare`.
It is imported by `service.web`.
"""
