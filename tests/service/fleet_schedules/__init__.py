"""Random schedules of a fleet's storage, without learners, and a checker of what its streams hold.

`Schedule` draws what three replicas do, and what the network does to it, from a seed. After each
step `Checker` reads the messages that the stand-in for NATS has, by code of its own.
"""
