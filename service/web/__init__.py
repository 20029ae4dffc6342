"""The server process and its HTTP interface.

`server` opens the socket, starts the engine and stops both in order; `tls` checks certificates.
With `--workers` it learns, and `worker_server` accepts clients in processes of their own.
`joining` connects a replica with its fleet, `roles` decides what it leads there.
The packages inside are the interface, from the outermost layer inwards.

It may import `service.web.routes`, `service.web.layers`, `service.web.formats`, `service.workers`,
`service.monitor`, `service.fleet`, `service.replicas`, `service.engine`, `service.storage`,
`service.views`, `service.heads`, `service.calls`, `service.access`, `service.diagnostics`,
`service.native`, `service.settings`.
It is imported by `service.cli`.
"""
