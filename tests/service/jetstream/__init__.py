"""A stand-in for NATS servers with JetStream, in memory and deterministic.

    server, network = Server(), ScriptedNetwork()
    wire = Wire(server, network)
    a, b = connection(wire, "a"), connection(wire, "b")   # NatsConnection, as replicas use it
    network.next(Unheard(), client="a", kind=Kind.APPEND)

`Server` is what one nats-server does, as plain synchronous code. `Wire` carries what clients send
to it, and asks a `Network` for the fate of each message. `StandInClient` is the client of nats-py
with its socket replaced: all of nats-py above the socket runs as it is.

Nothing here reads a clock, waits in real time or draws random numbers of its own. Real servers
that fail, elect leaders or lose what they have stored are not modelled.
"""
