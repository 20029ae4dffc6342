"""wolfstream's server: everything around the numerics of `solver`.

A sample's way, one module a step:

    receive          http, websocket     a request or a frame arrives
    decode           bodies, wire,       bytes become checked rows, and labels or numbers
                     lines, samples,
                     names, targets
    submit           api, engine         it waits in the bounded queue
    admit            admission,          it can be learned; what came before under its key is
                     idempotency         answered again
    append + fsync   writer, log,        it is on disk, in its model's order
                     records
    absorb block     model, a head,      names become numbers, the learner takes it, in order
                     learner
    publish view     model               predictions see it
    acknowledge      engine, prefer      the client is told; sooner, once it is on disk, if asked

A refit's way: asked for over `http`, it is a job in `refits`; the writer copies the window of
recent samples, a thread of its own solves (`fits`), and the writer appends, fsyncs, absorbs and
publishes what came of it; then the job is done.

Around all of it: `requests` counts, times and logs each request under its ids (`tracing`, `logs`);
what the steps count (`metrics`) is told by `exposition`, at `/metrics`.

Before the first step: `connections` bounds how many clients there are and how long one may take,
`guard` asks for a key (`keys`, `quota`), `request_size` and `content_encoding` bound the body.
`shortcut` takes the calls that carry the traffic straight to their handlers in `http`.

The way back after a stop: load the snapshot (`snapshots`), then replay the rest of the log
through the same `Model.absorb` and `Model.adopt`. The way back on request (`history`): the writer
appends the state of a kept snapshot to the log, fsyncs, lets the model become it, publishes.

A head is one of several kinds (`head` says what they have in common): `classification_head`
around the working set or ASSET, `regression_head` around ASSET, `semiparametric_head` around a
`window` and the last fit of one.

The other side of the connection: `client` and `client_async` are what programs in Python import,
`replay` and `river_adapter` use them. What a call asks for, when it is asked for again and what
an answer means is written once, as steps without input and output (`client_steps`,
`client_calls`, `client_session`). None of it imports the server or the numerics.

The same prediction for clients of the Open Inference Protocol: `inference_routes`,
`inference`, `tensors`.

Without a server: `datafiles` reads, `training` trains by `training_plan`, and `snapshots` writes
a model file, which `loading` reads, for `cli_predict` and for `serve --load` (`Writer.load`).
`transfer` takes models out of a data directory into such files and puts them in; `verification`
looks whether both are whole.

The other side of the connection: `client` and `client_async` are what programs in Python import,
`replay` and `river_adapter` use them. What a call asks for, when it is asked for again and what
an answer means is written once, as steps without input and output (`client_steps`,
`client_calls`, `client_session`). None of it imports the server or the numerics.
"""
