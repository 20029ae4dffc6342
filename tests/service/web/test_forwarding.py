"""The layer of a fleet around a replica's application, with a fleet of one."""

import asyncio
from typing import Any

from service.web.formats.problems import problem_response
from service.web.layers.forwarding import Forwarding


class Alone:
    """The only replica of a fleet, which never gets to lead a model."""

    url = "http://alone"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def responsible(self, _: str) -> "Alone":
        return self

    def is_here(self, _: object) -> bool:
        return True

    async def lead(self, _: str) -> bool:
        self.asked.set()
        await asyncio.Event().wait()
        return False


def test_a_call_that_a_stop_cuts_off_before_it_began_is_told_to_try_again():
    """As 503, which says that nothing was learned; a 500 would leave that open."""
    sent: list[Any] = []

    async def run() -> None:
        director = Alone()

        async def application(*_: object) -> None:
            raise AssertionError("the model is not led")

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        layer = Forwarding(application, director, problem_response, 1 << 20)  # type: ignore[arg-type]
        path = "/v1/models/m/samples"
        scope = {"type": "http", "method": "POST", "path": path, "headers": [], "state": {}}
        call = asyncio.create_task(layer(scope, receive, send))
        await director.asked.wait()
        call.cancel()
        await call

    asyncio.run(run())
    assert sent[0]["status"] == 503
    assert b"try again" in sent[1]["body"]
