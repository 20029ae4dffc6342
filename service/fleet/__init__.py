"""The storage that the replicas of a fleet share, on NATS JetStream.

It implements the interfaces that `storage.interfaces` and `access.keys` describe. A model's log is
a subject of one of a few streams. Each append names the message that it expects to be the last one
of its subject, and fails if another replica has written since: the log itself is the fence.

It may import `service.storage`, `service.access`.
It is imported by `service.cli`, `service.web`.
"""
