"""The calls of the interface: one row each, what a path means, and the types of their bodies.

`table` has the rows, `lookup` finds the one that a request is for. Routing, keys, forwarding,
frames of streams, clients and the OpenAPI document read them. The other modules are the types of
what calls take and give, which describe them; nothing is checked by them.
"""
