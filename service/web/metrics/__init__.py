"""Collects the Prometheus metrics of the server and of the models, afresh for each request.

It may import `service.web.transport`, `service.engine`, `service.storage`, `service.model`,
`service.heads`, `service.diagnostics`.
It is imported by `service.web.routes`.
"""
