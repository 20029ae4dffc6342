"""Live models: everything between a checked request and its acknowledgement.

The bounded queue, admission, the writer that appends, learns and publishes, and which models are
recovered when. `facade.Engine` is what the server uses. It knows nothing of HTTP, formats or API
keys.

It may import `service.recovery`, `service.compilation`, `service.storage`, `service.model`,
`service.heads`, `service.calls`, `service.samples`, `service.spec`, `service.diagnostics`,
`solver.prepare`.
It is imported by `service.server`, `service.web.routes`, `service.cluster`, `service.monitor`.
"""
