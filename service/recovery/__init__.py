"""What live learning and replay share, and models from files, snapshots and logs.

`absorb` learns a block, live and in replay. `model_recovery` restores a snapshot and replays the
rest of the log; `model_files` and `uploads` read states from elsewhere. `directory_models`,
`salvage` and `verification` work on a data directory without a server.
"""
