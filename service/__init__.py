"""wolfstream's server: everything around the numerics of `solver`.

A sample's way, one module a step:

    receive          http, websocket     a request or a frame arrives
    decode           wire, lines,        bytes become checked rows and labels
                     samples, names
    submit           api, engine         it waits in the bounded queue
    append + fsync   log                 it is on disk, in its model's order
    absorb block     model, head         names become numbers, the learner takes it, in order
    publish view     model               predictions see it
    acknowledge      engine              the client is told

The way back after a stop: load the snapshot (`snapshots`), then replay the rest of the log
through the same `Model.absorb`.

The same prediction for clients of the Open Inference Protocol: `inference_routes`,
`inference`, `tensors`.

Without a server: `datafiles` reads, `training` trains by `training_plan`, and `snapshots` writes
a model file, which `loading` reads, for `cli_predict` and for `serve --load` (`Writer.load`).
"""
