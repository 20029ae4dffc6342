"""Whole replicas of a fleet in one process, under a simulated clock, network and stream.

A seed decides everything: which thread runs, how long messages take, what fails, and what clients
ask. The same seed gives the same run. `python -m tests.simulation --help` starts a campaign.

    kernel            threads of which one runs at a time, timers, and the virtual clock
    locks             the lock that all of the standard library's primitives are made of
    standard_library  puts kernel, clock and randomness in the place of the real ones
    loops             asyncio event loops that wait in the kernel
    processes         groups of threads that are killed, paused and continued together
    network           HTTP between processes, with delays, losses and partitions
    stream_link       messages between replicas and the stand-in for JetStream, likewise
    replica           what `wolfstream serve --fleet` runs
    clients, faults   what is asked, and what fails
    log_reader        the logs as the stream has stored them, read without the product's code
    checker           compares them with what clients were answered
    inspection        compares what a fleet serves in the end with what its logs restore
    run, campaign     one seed, and many

Not simulated: disks (a killed process keeps every byte that it has written, or none), websockets,
workers, servers of the stream that fail or lose what they have
stored, and the time that computing takes, beyond a fixed time for each change of threads.
"""
