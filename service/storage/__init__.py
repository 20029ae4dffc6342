"""Durable storage: what survives a crash.

`interfaces` describes what the engine needs from the journal of accepted requests, the catalogue of
models, the answers to idempotent requests and the snapshots; SQLite and files in the data directory
implement it. Nothing here knows a live model.

It may import `service.spec`.
It is imported by `service.cli`, `service.notebook`, `service.web`, `service.web.routes`,
`service.web.metrics`, `service.monitor`, `service.training`, `service.fleet`, `service.replicas`,
`service.engine`.
"""
