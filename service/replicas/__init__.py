"""Exchanges views between the replicas of a fleet, over HTTP.

    prediction -> replica: its `followed_models` have the model's view -> answer
    replica -> (sealed question) -> leader: its `served_views` answer once there is a newer view

One replica leads a model; the others predict with its views. `followed_views` asks for
the views that this replica needs, `peers` sends the questions, and `view_messages` is their format.
`director` knows which replica leads a model, and `membership` holds all of it together.

It may import `service.settings`, `service.engine`, `service.storage`, `service.views`,
`service.model`, `service.samples`, `service.spec`, `service.diagnostics`.
It is imported by `service.web`, `service.web.routes`, `service.web.layers`.
"""
