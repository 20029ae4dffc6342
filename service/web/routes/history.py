"""The endpoints of a model's history: list snapshots, take one, roll back to one."""

from typing import Any, cast

from fastapi import Request, Response

from wolfstream.service.calls.history import History, RolledBack
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import Invalid, SampleError, UnknownSnapshot, pointer_to
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.bounds import Bounds
from wolfstream.service.web.formats.revisions import read_if_match
from wolfstream.service.web.formats.wire import JSON, format_of_body
from wolfstream.service.web.routes.endpoints import Endpoints, by_name

_BODY_BYTES = 1 << 12
_BOUNDS = Bounds(_BODY_BYTES, _BODY_BYTES)


def history_endpoints(engine: Engine) -> Endpoints:
    """Return the endpoints of a model's history."""

    async def list_snapshots(request: Request, name: str) -> Response:
        """List the stored snapshots of a model, newest first.

        A rollback to a snapshot forgets the `samples_since`, which were logged after it. The
        setting `snapshots` says how many snapshots are stored.
        """
        model = engine.model(name)
        snapshots, published = await engine.orders.history(model), model.published
        history: History = {
            "model": name,
            "sequence": published.sequence,
            "epoch": published.epoch,
            # The log has the fields of the last rollback as plain data.
            "rolled_back": cast("RolledBack | None", model.rolled_back),
            "snapshots": snapshots,
        }
        return respond(request, JSON, history)

    async def take_snapshot(request: Request, name: str) -> Response:
        """Make a snapshot now, to which the model can be rolled back. The body is empty.

        A sequence has one snapshot: a later one of the same sequence, after a refit or a rollback,
        replaces it. If there are too many, the oldest is deleted.
        """
        if await read_body(request, _BODY_BYTES) not in (b"", b"{}"):
            raise Invalid("a snapshot takes no body")
        model = engine.model(name)
        sequence = await engine.orders.snapshot(model)
        for snapshot in await engine.orders.history(model):
            if snapshot["sequence"] == sequence:
                return respond(request, JSON, snapshot, 201)
        raise UnknownSnapshot(f"the snapshot of sequence {sequence} was made, and deleted again")

    async def roll_back_model(request: Request, name: str) -> Response:
        """Go back to a snapshot: the model becomes what it was then, and continues from there.

        Its sequence does not go back, because it counts what was logged. What was learned since the
        snapshot is forgotten, but the idempotency keys under which it was learned stay used: the
        same request again gets its first answer, and is not learned again. Predictions are served
        meanwhile; a running refit is stopped. 200 means that the rollback is on disk.
        To undo a rollback, make a snapshot just before it, and roll back to that one.
        """
        data = await read_body(request, _BODY_BYTES)
        body_format = format_of_body(request.headers.get("content-type"))
        sequence = _read_rollback(body_format.decode(data, _BOUNDS))
        expected = read_if_match(request.headers.getlist("if-match"))
        rolled_back = await engine.orders.roll_back(engine.model(name), sequence, expected)
        return respond(request, body_format, rolled_back)

    return by_name(list_snapshots, take_snapshot, roll_back_model)


def _read_rollback(given: Any) -> int:
    """Return the sequence to go back to. Raises Invalid."""
    faults: list[SampleError] = []
    fields = given if isinstance(given, dict) else {}
    sequence = fields.get("sequence")
    if fields is not given:
        faults.append({"pointer": "", "detail": "must be an object"})
    elif type(sequence) is not int or sequence < 0:
        faults.append({"pointer": "/sequence", "detail": "must be a whole number, zero or more"})
    unknown = [name for name in fields if name != "sequence"]
    faults += [{"pointer": pointer_to(name), "detail": "unknown field"} for name in unknown]
    if faults:
        raise Invalid('the body of a rollback is {"sequence": N}, of a snapshot', faults)
    assert isinstance(sequence, int)
    return sequence
