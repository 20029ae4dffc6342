"""The Python client of a running server.

It has a blocking and an asyncio client, streams, and River's interface. What a call sends, retries
and means is written once, without input or output, in `steps`, `calls` and `session`.

It may import `service.notebook`, `service.files`, `service.calls`.
It is imported by `wolfstream`, `service.cli`.
"""
