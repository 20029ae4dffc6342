"""The exchange of views between the replicas of a fleet, over HTTP.

    prediction -> replica: its `followed_models` have the model's view -> response
    replica -> (sealed request) -> leader: its `served_views` respond once there is a newer view

One replica leads a model; the others predict with copies of its view. `followed_views` requests the
views that this replica needs, `peers` sends the requests, and `view_messages` is their format.
`director` knows which replica leads a model, and `membership` has all of these.

It may import `service.settings`, `service.engine`, `service.storage`, `service.views`,
`service.model`, `service.samples`, `service.spec`, `service.diagnostics`.
It is imported by `service.web`, `service.web.routes`, `service.web.layers`.
"""
