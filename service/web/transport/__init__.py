"""ASGI middleware around all routes, outermost first.

`connections` limits connections and ends slow ones. `observer` counts and logs requests, `origins`
refuses pages of other sites, `guard` checks keys, and `network_limits` bounds streams of a network.
`forwarding` sends a fleet's calls to the replicas that lead their models, through `http_forwarder`
and `stream_forwarder`. `leader_proxy` does the same between the processes of one server. `shortcut`
lets hot calls bypass the router.
"""
