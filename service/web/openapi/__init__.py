"""The OpenAPI document: what FastAPI cannot derive from the routes.

`operations` has what routes declare of their bodies, headers and refusals, `schemas` and
`inference` the components, `fields` their parts, `examples.json` the examples; `document` puts all
of it together.

It may import `service.web.formats`, `service.samples`, `service.spec`, `service.calls`.
It is imported by `service.web.routes`.
"""
