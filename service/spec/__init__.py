"""The spec of a model: what a client may choose, with a default for everything.

It may import nothing of the other packages.
It is imported by `service.cli`, `service.offline`, `service.web.routes`, `service.web.formats`,
`service.cluster`, `service.engine`, `service.recovery`, `service.compilation`, `service.storage`,
`service.model`, `service.heads`, `service.calls`, `service.samples`.
"""
