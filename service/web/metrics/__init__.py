"""Collectors of Prometheus metrics: the server's and the models', read when they are asked for.

It may import `service.web.layers`, `service.engine`, `service.storage`, `service.model`,
`service.heads`, `service.diagnostics`.
It is imported by `service.web.routes`.
"""
