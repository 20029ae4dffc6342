"""Worker processes, which answer requests on the machine of the process that learns.

    client -> worker: parse, check, decode -> (channel) -> leader: append, learn, publish
    client <- worker: encode             <- (channel) <- leader: answers, views, states

The leader holds the data directory, appends and learns. Workers accept on the server's port, follow
the views of the models that they are asked about and predict with them, and hand samples on as
records. `leader` and `follower_engine` are the two ends of a channel between them: the leader's
`announcements` keep all workers informed, and its `call_handlers` answer what a worker's `calls`
ask. `processes` starts the workers, and restarts those that die.

It may import `service.settings`, `service.engine`, `service.views`, `service.model`,
`service.samples`, `service.spec`, `service.diagnostics`, `service.native`.
It is imported by `service.web`, `service.web.routes`.
"""
