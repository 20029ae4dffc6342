"""What a live model looks like from outside, second by second, and what it looked like before.

`producer` makes one picture a second of each model that somebody listens to (`picture`, `meters`),
and hands it to all of them (`channel`); every ten seconds it writes a point of each model that has
changed to a file (`points`, `side_file`). Changes of a head's loss become alerts (`alerts`), which
`webhook` posts. All of it reads published views only: learning never waits for it.

It may import `service.engine`, `service.storage`, `service.model`, `service.diagnostics`.
It is imported by `service.web`, `service.web.routes`.
"""
