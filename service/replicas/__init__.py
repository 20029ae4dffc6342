"""What the replicas of a fleet know of each other, and follow of each other's models.

It may import nothing of the rest.
It is imported by `service.web`, `service.web.routes`, `service.web.layers`.
"""
