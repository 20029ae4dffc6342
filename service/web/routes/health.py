"""The routes of health."""

from fastapi import FastAPI, Response

from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotReady, ServerFailed
from wolfstream.service.replicas.membership import Membership
from wolfstream.service.web.formats.body import respond_json
from wolfstream.service.web.formats.wire import JSON
from wolfstream.service.web.openapi.operations import answer, refusals


def add_health(app: FastAPI, engine: Engine, membership: Membership | None = None) -> None:
    """Add the routes, which need no key. membership: see `create_app`."""
    json_only = (JSON.media_type,)
    alive = answer("Status", "The process responds.", json_only)
    ready = answer("Status", "The server is ready.", json_only)

    @app.get("/livez", tags=["health"], responses={200: alive, **refusals(ServerFailed)})
    async def livez() -> Response:
        """200 while the process responds, unless only a restart would help it.

        503 once an error has ended all learning: predictions go on until the server is restarted.
        """
        check_alive(engine)
        return respond_json({"status": "alive"})

    @app.get("/readyz", tags=["health"], responses={200: ready, **refusals(NotReady)})
    async def readyz() -> Response:
        """200 once models are recovered and numerics compiled, until the server stops.

        Before and after, 503 says what the server is doing.
        """
        check_ready(engine)
        if membership is not None:
            membership.director.check()
        progress = engine.readiness.progress
        rest = {"compiling": progress} if progress else {}
        return respond_json({"status": "ready", **rest})


def check_alive(engine: Engine) -> None:
    """Raise ServerFailed if nothing but a restart lets the server learn again."""
    if engine.failed:
        raise ServerFailed(f"the server is {engine.phase}")


def check_ready(engine: Engine) -> None:
    """Raise NotReady, with the phase of the start or stop, unless requests are worked on."""
    if not engine.readiness.reached:
        raise NotReady(f"the server is {engine.phase}")
