"""The OpenAPI document: FastAPI's, of the table of calls and the types of their bodies.

`operations` makes a route with types of each row, `parameters` and `bodies` are what they have,
`examples.json` has the examples; `document` lets FastAPI describe the routes.

It may import `service.web.formats`, `service.calls`, `service.spec`.
It is imported by `service.web.routes`.
"""
