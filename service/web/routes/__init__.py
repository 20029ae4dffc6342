"""The endpoints of the HTTP interface, and the handlers that all transports share.

`app` puts endpoints and layers together. `handlers` has what HTTP, the stream and the Open
Inference Protocol have in common. Each of the other modules has the endpoints of one subject.

It may import `service.web.transport`, `service.web.formats`, `service.cluster`, `service.monitor`,
`service.engine`, `service.recovery`, `service.storage`, `service.model`, `service.heads`,
`service.calls`, `service.samples`, `service.spec`, `service.access`, `service.diagnostics`,
`solver.prepare`.
It is imported by `service.server`.
"""
