"""The command `wolfstream`: a module for each subcommand, and what they share.

It may import `service.client`, `service.offline`, `service.server`, `service.fleet`,
`service.recovery`, `service.compilation`, `service.storage`, `service.model`, `service.heads`,
`service.spec`, `service.files`, `service.access`, `solver.frank_wolfe`, `solver.rows`.
It is imported by `wolfstream`.
"""
