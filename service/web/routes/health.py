"""The endpoints for health checks."""

from fastapi import Response

from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotReady, ServerFailed
from wolfstream.service.replicas.membership import Membership
from wolfstream.service.web.formats.body import respond_json
from wolfstream.service.web.formats.memory import RESERVE
from wolfstream.service.web.routes.endpoints import Endpoints, by_name


def health_endpoints(engine: Engine, membership: Membership | None) -> Endpoints:
    """Return the endpoints for health checks.

    Args:
        engine: the engine.
        membership: the membership in a fleet; None for a single server.
    """

    async def livez() -> Response:
        """Respond with 200 while the process responds, unless it has to be restarted.

        The response is 503 once an error has ended all learning; predictions continue until the
        restart. It is also 503 while the process gets no more memory.
        """
        check_alive(engine)
        return respond_json({"status": "alive"})

    async def readyz() -> Response:
        """Respond with 200 once models are recovered and numerics compiled, until the server stops.

        Before and after that, the response is 503 and says what the server is doing.
        """
        check_ready(engine)
        if membership is not None:
            membership.director.check()
        details = {
            "compiling": engine.readiness.progress,
            "recovering": _recovering(engine),
            "broken": _broken(engine),
        }
        return respond_json(
            {"status": "ready"} | {name: text for name, text in details.items() if text}
        )

    return by_name(livez, readyz)


def _recovering(engine: Engine) -> str:
    """Return how many models are still being recovered, "" if none; without names."""
    if not (n_left := engine.unrecovered):
        return ""
    n_models = n_left + len(engine.recovered())
    return f"{n_left} of {n_models} models: the log names them, and says how far they are"


def _broken(engine: Engine) -> str:
    """Return how many models are broken, "" if none; without names, because this needs no key."""
    models = engine.recovered()
    n_broken = sum(bool(model.broken) for model in models)
    if not n_broken:
        return ""
    return f"{n_broken} of {len(models)} models: /v1/models and the log name them"


def check_alive(engine: Engine) -> None:
    """Raise ServerFailed if the server learns nothing more until it is restarted."""
    if engine.failed:
        raise ServerFailed(f"the server is {engine.phase}")
    if not RESERVE.is_available():
        raise ServerFailed("the process gets no more memory")


def check_ready(engine: Engine) -> None:
    """Raise NotReady, with what the server is doing, while it should get no requests."""
    if not engine.readiness.reached:
        raise NotReady(f"the server is {engine.phase}")
    if engine.readiness.leaving:
        raise NotReady("the server is draining: it answers what still comes, then it ends")
