"""API keys: where they are stored, what they allow, and their quotas.

It may import nothing of the rest.
It is imported by `service.cli`, `service.server`, `service.web.routes`, `service.web.transport`,
`service.fleet`, `service.calls`.
"""
