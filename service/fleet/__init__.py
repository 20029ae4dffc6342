"""Storage that the replicas of a fleet share, on NATS JetStream.

It implements `storage.interfaces` and `access.keys`. The log of a model is a subject of one of a
few streams. Each append names the message that it expects to be the last of the subject, and is
refused if another replica has written since. So the log itself fences earlier leaders.
"""
