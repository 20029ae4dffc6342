"""What a live model looks like from outside, now and over the last hours.

Once a second, `producer` describes each model that has listeners (`picture`, `meters`) and hands
the description to them (`channel`); every ten seconds it writes a point for each model that has
changed into a file (`points`, `side_file`). Changes of a head's loss become alerts (`alerts`),
which `webhook` posts. All of it reads published views only: learning never waits for it.

It may import `service.engine`, `service.storage`, `service.model`.
It is imported by `service.web`, `service.web.routes`.
"""
