"""The endpoints of health."""

from fastapi import Response

from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotReady, ServerFailed
from wolfstream.service.replicas.membership import Membership
from wolfstream.service.web.formats.body import respond_json
from wolfstream.service.web.formats.memory import RESERVE
from wolfstream.service.web.routes.endpoints import Endpoints, by_name


def health_endpoints(engine: Engine, membership: Membership | None) -> Endpoints:
    """Return the endpoints of health. membership: see `create_app`."""

    async def livez() -> Response:
        """200 while the process responds, unless only a restart would help it.

        503 once an error has ended all learning: predictions go on until the server is restarted.
        So it is while the process gets no more memory.
        """
        check_alive(engine)
        return respond_json({"status": "alive"})

    async def readyz() -> Response:
        """200 once models are recovered and numerics compiled, until the server stops.

        Before and after, 503 says what the server is doing.
        """
        check_ready(engine)
        if membership is not None:
            membership.director.check()
        words = {"compiling": engine.readiness.progress, "broken": _broken(engine)}
        return respond_json(
            {"status": "ready"} | {key: word for key, word in words.items() if word}
        )

    return by_name(livez, readyz)


def _broken(engine: Engine) -> str:
    """Return how many models learn nothing more, without names: whoever asks needs no key."""
    models = engine.recovered()
    n_broken = sum(bool(model.broken) for model in models)
    return f"{n_broken} of {len(models)} models: /v1/models and the log name them" * bool(n_broken)


def check_alive(engine: Engine) -> None:
    """Raise ServerFailed if nothing but a restart lets the server learn again."""
    if engine.failed:
        raise ServerFailed(f"the server is {engine.phase}")
    if not RESERVE.is_available():
        raise ServerFailed("the process gets no more memory")


def check_ready(engine: Engine) -> None:
    """Raise NotReady, with the phase of the start or stop, unless more requests are to come."""
    if not engine.readiness.reached:
        raise NotReady(f"the server is {engine.phase}")
    if engine.readiness.leaving:
        raise NotReady("the server is draining: it answers what still comes, then it ends")
