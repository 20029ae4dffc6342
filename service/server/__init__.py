"""The processes of a server: start and stop, sockets, TLS, workers, and joining a fleet.

`main_process` opens the sockets, starts the engine, and stops both in order. With `--workers`, this
process only learns, and `worker_server` accepts clients in other processes. `joining` connects a
replica to its fleet.
"""
