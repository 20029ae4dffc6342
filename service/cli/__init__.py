"""The command `wolfstream`: a module for each subcommand, and what they share.

It may import `service.web`, `service.training`, `service.engine`, `service.storage`,
`service.model`, `service.heads`, `service.files`, `service.spec`, `service.client`,
`service.access`, `service.native`, `service.fleet`, `service.settings`, `solver.stream`,
`solver.frank_wolfe`, `solver.rows`.
It is imported by `wolfstream`.
"""
