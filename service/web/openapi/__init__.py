"""Generates the OpenAPI document from the table of calls and the types of their bodies.

`document` makes a typed route for each row of the table, with the types of `bodies` and the
examples of `examples.json`, and lets FastAPI describe these routes.

It may import `service.web.formats`, `service.calls`, `service.spec`.
It is imported by `service.web.routes`.
"""
