"""Work on the event loop that takes milliseconds: others come between, however many have some."""

import asyncio
import json
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.errors import Invalid
from wolfstream.service.web.formats.body import decode_or_offload
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.routes import session

MANY = 20


@pytest.mark.parametrize(("n_bytes", "at_once"), [(30_000, 1), (1_000, MANY)])
def test_one_body_is_decoded_in_each_pass(n_bytes: int, at_once: int) -> None:
    """Small ones do not wait, as a pass costs more than they do."""
    lease = MemoryBudget(1 << 30).lease()
    decoded = passes = most = 0

    def decode() -> int:
        nonlocal decoded
        decoded += 1
        return decoded

    async def look() -> None:
        nonlocal passes, most
        while decoded < MANY:
            before = decoded
            await asyncio.sleep(0)
            passes, most = passes + 1, max(most, decoded - before)

    async def run() -> list[int]:
        looking = asyncio.create_task(look())
        bodies = (decode_or_offload(decode, n_bytes, lease) for _ in range(MANY))
        found = await asyncio.gather(*bodies)
        await looking
        return found

    assert asyncio.run(run()) == list(range(1, MANY + 1)), "in the order in which they came"
    assert most == at_once


def test_a_decoding_that_fails_gives_its_turn_away() -> None:
    lease = MemoryBudget(1 << 30).lease()

    def refuse() -> None:
        raise Invalid("wrong")

    async def run() -> list[Any]:
        bodies = (decode_or_offload(refuse, 30_000, lease) for _ in range(3))
        return await asyncio.gather(*bodies, return_exceptions=True)

    assert [type(one) for one in asyncio.run(run())] == [Invalid] * 3


def refuses_large_questions_on_the_loop() -> None:
    """Make the server of this process refuse to check large questions on its main thread."""
    of_package = session.question_for

    def question_for(spec: Any, body: Any) -> Any:
        if len(body["x"]) > 1000 and threading.current_thread() is threading.main_thread():
            raise Invalid("this is the event loop's thread")
        return of_package(spec, body)

    patch = pytest.MonkeyPatch()
    patch.setattr(session, "question_for", question_for)


def test_a_large_prediction_of_a_stream_is_checked_beside_the_loop(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    server.prelude = refuses_large_questions_on_the_loop
    with closing(server.start()):
        url = f"{server.url}/v1/models/m"
        httpx.put(url, json=PAPERS | {"asset": None}).raise_for_status()
        learned = {"x": [[0, 1], [1, 0]], "y": ["a", "b"]}
        httpx.post(f"{url}/samples", json=learned, timeout=60).raise_for_status()
        with connect(f"{url.replace('http', 'ws', 1)}/stream") as stream:
            stream.recv(10)
            stream.send(json.dumps({"id": 1, "op": "predict", "x": [[0.5, 0.5]] * 20_000}))
            answer = json.loads(stream.recv(60))
    assert len(answer["prediction"]) == 20_000
