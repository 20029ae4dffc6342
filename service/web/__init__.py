"""The server process and its HTTP interface.

`server` opens the sockets, starts the engine, and stops both in order; `tls` checks certificates.
With `--workers`, this process only learns, and `worker_server` accepts clients in other processes.
`joining` connects a replica to its fleet, and `roles` decides which models it leads. The packages
in this one are the HTTP interface.

It may import `service.cluster`, `service.recovery`, `service.settings`, `service.web.routes`,
`service.web.layers`, `service.web.formats`, `service.monitor`, `service.engine`, `service.fleet`,
`service.storage`, `service.heads`, `service.calls`, `service.access`, `service.diagnostics`,
`service.native`.
It is imported by `service.cli`.
"""
