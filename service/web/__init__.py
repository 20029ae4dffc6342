"""The HTTP interface: bodies, what stands around the routes, routes, metrics and their document."""
