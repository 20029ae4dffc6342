"""The Python client of a running server: blocking and asyncio, streams, and River's interface.

What a call sends, when it is retried and what responses mean is written once, without input or
output, in `steps`, `calls`, `sample_calls` and `session`.
"""
