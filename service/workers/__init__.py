"""Worker processes, which answer requests for the process that learns, on the same machine.

    client -> worker: parse, check, decode -> (channel) -> leader: append, learn, publish
    client <- worker: encode               <- (channel) <- leader: replies, views, states

The leader owns the data directory, appends and learns. Workers accept connections on the server's
port, predict with copies of the views of models, and send samples to the leader as records.

`leader` and `follower_engine` are the two ends of a channel: the leader's `announcements` keep all
workers informed, and its handlers reply to a worker's `calls`. `processes` starts the workers, and
restarts those that die.

It may import `service.settings`, `service.engine`, `service.views`, `service.model`,
`service.samples`, `service.spec`, `service.diagnostics`, `service.native`.
It is imported by `service.web`, `service.web.routes`.
"""
