"""The server process and its HTTP interface.

`server` opens the socket, starts the engine and stops both in order; `tls` checks certificates.
`joining` connects a replica with its fleet, `roles` decides what it leads there.
The packages inside are the interface, from the outermost layer inwards.

It may import `service.web.routes`, `service.web.layers`, `service.web.formats`,
`service.monitor`, `service.engine`, `service.fleet`, `service.storage`, `service.access`,
`service.diagnostics`, `service.settings`.
It is imported by `service.cli`.
"""
