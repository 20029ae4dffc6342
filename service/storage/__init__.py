"""Durable storage: what survives a crash.

`interfaces` says what the engine asks of the journal of accepted requests, the catalogue of models,
the answers to idempotent requests and the snapshots; behind it are SQLite and files in the data
directory. Nothing here knows a live model.

It may import `service.spec`.
It is imported by `service.cli`, `service.notebook`, `service.web`, `service.web.routes`,
`service.monitor`, `service.training`, `service.fleet`, `service.replicas`, `service.engine`.
"""
