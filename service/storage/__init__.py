"""Durable storage: what survives a crash.

`interfaces` says what the engine needs: a journal of accepted requests with their responses, a
catalogue of models, and snapshots. SQLite and files in the data directory implement it here;
`service.fleet` implements it on NATS JetStream. Nothing here uses a live model.
"""
