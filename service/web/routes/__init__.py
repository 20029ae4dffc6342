"""The endpoints of the HTTP interface, and the handlers that all transports share.

`app` puts endpoints and layers together. `handlers` has what HTTP, the stream and the Open
Inference Protocol have in common. Each of the other modules has the endpoints of one subject.

It may import `service.cluster`, `service.recovery`, `service.settings`, `service.web.metrics`,
`service.web.openapi`, `service.web.layers`, `service.web.formats`, `service.monitor`,
`service.engine`, `service.storage`, `service.model`, `service.heads`, `service.samples`,
`service.spec`, `service.calls`, `service.console`, `service.access`, `service.diagnostics`,
`solver.prepare`.
It is imported by `service.web`.
"""
