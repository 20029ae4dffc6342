"""The fleet's storage: what many replicas share, on NATS JetStream.

It implements what `storage.interfaces` and `access.keys` ask for. A model's log is a subject of one
of a few streams. Each append names the message that it expects to be the last one of its subject,
and is refused where another replica has written since: the log itself is the fence.

It may import `service.storage`, `service.access`.
It is imported by `service.cli`, `service.web`.
"""
