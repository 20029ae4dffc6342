"""Bytes to plain values and back, and their description.

JSON, MessagePack, lines, tensors, compressed bodies, and problems (RFC 9457). `openapi` lets
FastAPI describe them: it makes a typed route for each row of the table of calls, with the types of
`openapi_bodies` and the examples of `openapi_examples.json`.
"""
