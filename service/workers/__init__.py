"""Processes that answer requests beside the one that learns, on one machine.

    client -> worker: parse, check, decode -> (channel) -> leader: append, learn, publish
    client <- worker: encode             <- (channel) <- leader: answers, views, states

The leader holds the data directory, appends and learns. Workers accept on the server's port, follow
the views of the models that they are asked about and predict with them, and hand samples on as
records. `leader` and `follower_engine` are the two ends of a channel between them, `processes`
starts the workers and starts those again that die.

It may import `service.settings`, `service.engine`, `service.views`, `service.model`,
`service.samples`, `service.spec`, `service.diagnostics`, `service.native`.
It is imported by `service.web`, `service.web.routes`.
"""
