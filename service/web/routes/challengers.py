"""The endpoints of challengers: their comparison with their champion, and their promotion."""

from typing import Any

from fastapi import Request, Response

from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import Invalid, SampleError, pointer_to
from wolfstream.service.model.scoreboard import scoreboard
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.bounds import Bounds
from wolfstream.service.web.formats.revisions import read_if_match
from wolfstream.service.web.formats.wire import JSON, format_of_body
from wolfstream.service.web.routes.endpoints import Endpoints, by_name

_BODY_BYTES = 1 << 12
_BOUNDS = Bounds(_BODY_BYTES, _BODY_BYTES)


def challenger_endpoints(engine: Engine) -> Endpoints:
    """Return the endpoints of challengers."""

    async def list_challengers(request: Request, name: str) -> Response:
        """List the models that follow this one, each compared with it on the same samples.

        `difference` is above zero where the challenger is better. `interval` holds at all times
        together with the probability `level`: it may be watched, and acted on once zero is outside.
        """
        champion, prefix = engine.model(name), request.state.grant.prefix
        await engine.challengers.lead(champion)
        seen = [m for m in engine.challengers.following(champion) if m.name.startswith(prefix)]
        return respond(request, JSON, scoreboard(champion, seen))

    async def promote_model(request: Request, name: str) -> Response:
        """Exchange spec and state of a model and its challenger; 200 means that it is on disk.

        The challenger first learns what it lacks of the champion's log. Both keep their names,
        their sequences and the rows that wait for labels, and begin another epoch. The challenger
        becomes what the champion was, and continues to follow. The previous state is in the
        history, under the sequence at which they were exchanged: a rollback to it undoes this.
        """
        data = await read_body(request, _BODY_BYTES)
        body_format = format_of_body(request.headers.get("content-type"))
        challenger = _read_promotion(body_format.decode(data, _BOUNDS))
        expected = read_if_match(request.headers.getlist("if-match"))
        request.state.grant.check_model(challenger)
        champion = engine.model(name)
        await engine.challengers.lead(champion)
        below = await engine.challengers.named(champion, challenger)
        promoted = await engine.orders.promote(champion, below, expected)
        return respond(request, body_format, promoted)

    return by_name(list_challengers, promote_model)


def _read_promotion(given: Any) -> str:
    """Return the name of the challenger. Raises Invalid."""
    faults: list[SampleError] = []
    fields = given if isinstance(given, dict) else {}
    name = fields.get("model")
    if fields is not given:
        faults.append({"pointer": "", "detail": "must be an object"})
    elif not isinstance(name, str):
        faults.append({"pointer": "/model", "detail": "must name a challenger"})
    unknown = [field for field in fields if field != "model"]
    faults += [{"pointer": pointer_to(field), "detail": "unknown field"} for field in unknown]
    if faults:
        raise Invalid('the body of a promotion is {"model": NAME}, of a challenger', faults)
    assert isinstance(name, str)
    return name
