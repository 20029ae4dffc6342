"""The command `wolfstream`: one module for each subcommand and what they show on a terminal.

It may import `service.web`, `service.training`, `service.engine`, `service.storage`,
`service.model`, `service.heads`, `service.files`, `service.spec`, `service.client`,
`service.access`, `service.native`, `service.fleet`, `service.settings`, `solver.stream`,
`solver.frank_wolfe`, `solver.rows`.
It is imported by `wolfstream`.
"""
