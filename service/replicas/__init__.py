"""The views that the replicas of a fleet give to each other, over HTTP.

    prediction -> replica: its `followed_models` have the model's view -> answer
    replica -> (sealed question) -> leader: its `given_views` answer once there is a newer one

One replica leads a model; the others predict with its views. `followed_views` asks the others for
all that is predicted with here, `fellows` carries questions and answers, `view_messages` is what
they are made of. `director` knows who leads what, and `membership` is all of it together.

It may import `service.settings`, `service.engine`, `service.storage`, `service.views`,
`service.model`, `service.samples`, `service.spec`, `service.diagnostics`.
It is imported by `service.web`, `service.web.routes`, `service.web.layers`.
"""
