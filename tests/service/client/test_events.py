"""Listening to a model: over a real server, and event by event without one."""

import asyncio
import json
from itertools import islice
from pathlib import Path

import pytest

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import two_classes
from tests.service.web.test_events import looks_often
from wolfstream import AsyncClient, Client, Refused
from wolfstream.service.client.errors import AnswerLost
from wolfstream.service.client.events import EventReader
from wolfstream.service.client.steps import Reply, Retry

SPEC = PAPERS | {"asset": None}


def given(reader: EventReader, event: str, number: int = 1, **data: object) -> object:
    lines = [f"id: run-{number}", f"event: {event}", f"data: {json.dumps(data)}", ""]
    return [reader.take(line) for line in lines][-1]


class TestWithoutAServer:
    def test_a_state_is_taken_and_its_id_goes_into_the_next_request(self):
        reader = EventReader("rooms", Retry(1.0))
        assert reader.request().headers == {}
        assert given(reader, "state", 7, sequence=3) == {"sequence": 3}
        assert reader.request().headers == {"last-event-id": "run-7"}

    def test_half_an_event_is_forgotten_with_its_connection(self):
        reader = EventReader("rooms", Retry(1.0))
        reader.take("event: end")
        reader.request()
        assert given(reader, "state", sequence=4) == {"sequence": 4}

    @pytest.mark.parametrize(
        ("reason", "ended"), [("deleted", True), ("key", True), ("stopping", False)]
    )
    def test_an_end_is_final_unless_the_server_stops(self, reason: str, ended: bool):
        reader = EventReader("rooms", Retry(1.0))
        assert given(reader, "end", reason=reason) is None
        assert reader.ended is ended

    def test_a_model_that_is_gone_when_it_comes_back_is_the_end(self):
        gone = Reply(404, "Not Found", {"content-type": "application/json"}, b"{}")
        reader = EventReader("rooms", Retry(1.0))
        with pytest.raises(Refused, match="404"):
            reader.check(gone)
        given(reader, "state", sequence=1)
        reader.check(gone)
        assert reader.ended

    def test_patience_ends(self):
        with pytest.raises(AnswerLost):
            EventReader("rooms", Retry(0.0)).pause()


def test_states_come_and_go_on_after_a_restart(tmp_path: Path):
    server = ServerProcess(tmp_path / "data")
    server.prelude = looks_often
    server.start()
    samples = two_classes(40)
    try:
        with Client(server.url) as client:
            client.create("m", SPEC)
            client.learn("m", samples.X, samples.y)
            events = client.events("m")
            assert next(events)["sequence"] == 40
            server.kill()
            server.launch()
            assert next(state for state in events if state["sequence"] == 40)["status"] == "ok"
            client.delete("m")
            assert all(state["model"] == "m" for state in events)
            with pytest.raises(Refused, match="404"):
                next(client.events("m"))
    finally:
        server.close()


async def _states(url: str, name: str) -> list[int]:
    found = []
    async with AsyncClient(url) as client:
        async for state in client.events(name):
            found.append(state["sequence"])
            if len(found) == 2:
                break
    return found


def test_the_client_for_asyncio_listens_as_well(server: ServerProcess, name: str):
    samples = two_classes(40)
    with Client(server.url) as client:
        client.create(name, SPEC)
        client.learn(name, samples.X, samples.y)
        assert asyncio.run(_states(server.url, name)) == [40, 40]
        assert [s["sequence"] for s in islice(client.events(name), 1)] == [40]
        assert client.metrics_history(name)["model"] == name
