"""The processes that share models: workers of one server, replicas of a fleet, and their views.

One process learns a model: the leader. It publishes views, from which others predict. `versions`
writes the versions of a view as bytes, and `feeds` sends them; `follower` reads them in another
process. `tree` splits a view into its structure and its arrays.

Workers answer requests for a leader on the same machine, over a pair of sockets:

    client -> worker: parse, check, decode -> (channel) -> leader: append, learn, publish
    client <- worker: encode               <- (channel) <- leader: replies, views, states

The leader owns the data directory. Workers accept connections on the server's port, and send
samples to the leader as records. `leader` and `follower_engine` are the two ends of a channel: the
leader's `announcements` keep all workers informed, and its handlers reply to a worker's `calls`.
`processes` starts the workers, and restarts those that die.

Replicas of a fleet exchange views over HTTP:

    prediction -> replica: its `followed_models` have the model's view -> response
    replica -> (sealed request) -> leader: its `served_views` respond once there is a newer view

One replica leads a model. `members` tells which replicas live, and `roles` decides which of them
leads what. `followed_views` requests the views that a replica needs, `peers` sends the requests,
`view_messages` is their format, and `membership` has all of these.
"""
