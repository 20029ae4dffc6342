"""What a server reports about its work: counters, ids of requests, and the diagnostic log.

It may import nothing of the rest.
It is imported by `service.server`, `service.web.routes`, `service.web.transport`,
`service.web.formats`, `service.cluster`, `service.monitor`, `service.engine`, `service.model`.
"""
