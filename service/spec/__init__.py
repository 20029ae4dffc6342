"""The spec of a model: what a client may choose, with a default for everything.

It may import nothing of the other packages.
It is imported by `service.cli`, `service.conversion`, `service.web.routes`, `service.web.formats`,
`service.cluster`, `service.training`, `service.engine`, `service.recovery`, `service.compilation`,
`service.storage`, `service.model`, `service.heads`, `service.calls`, `service.samples`.
"""
