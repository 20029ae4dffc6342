"""The command `wolfstream`: a module for each subcommand, and what they share.

It may import `service.recovery`, `service.settings`, `service.web`, `service.training`,
`service.fleet`, `service.storage`, `service.model`, `service.heads`, `service.files`,
`service.spec`, `service.client`, `service.access`, `service.native`, `solver.frank_wolfe`,
`solver.rows`.
It is imported by `wolfstream`.
"""
