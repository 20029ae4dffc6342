"""Whole replicas of a fleet in one process, under a simulated clock, network and stream.

A seed decides everything: which thread runs, how long messages take, what fails, and what clients
ask. The same seed gives the same run. `python -m tests.simulation --help` starts a campaign.

    kernel            threads of which one runs at a time, timers, and the virtual clock
    locks             the lock that all of the standard library's primitives are made of
    standard_library  puts kernel, clock and randomness in the place of the real ones
    loops             asyncio event loops that wait in the kernel
    processes         groups of threads that are killed, paused and continued together
    network           HTTP between processes, with delays, losses and partitions

It does not simulate disks: a killed process keeps every byte that it has written, or none.
"""
