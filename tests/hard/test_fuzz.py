"""Tens of thousands of malformed requests and frames, against one live server.

Every answer is one that the interface documents, within seconds; the server lives, its memory is
bounded, it says that it is alive whenever it is asked, and a model that met valid samples only
is, bit for bit, what it is without the rest.
"""

import os
import socket
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import httpx
import numpy as np
import pytest

from tests.hard.conftest import Report
from tests.hard.processes import limit_memory, resident_bytes, together
from tests.service.fuzzing import SECONDS, SMALL, FrameFuzzer, Fuzzer, make_case
from tests.service.mutations import damaged
from tests.service.process import CommandProcess
from tests.service.streams import body, part, three_classes
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import read_spec

pytestmark = [pytest.mark.hard, pytest.mark.timeout(900)]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
REQUESTS, FRAMES, RAW = 20_000, 3_000, 500
GROWTH_BYTES = 250 << 20
# What the process may take at all, above what it has when the campaign begins.
ROOM_BYTES = 1 << 30
# A busy machine must not make the test fail.
WORST_WAIT = 3.0


def test_nothing_that_is_sent_breaks_the_server(tmp_path: Path, report: Report) -> None:
    key = add_key(KeyFile(tmp_path / "data"), "fuzz", ("admin",))
    server = CommandProcess(tmp_path / "data", wait_seconds=0.01, body_bytes=1 << 20)
    with closing(server.start()):
        fuzzers = [Fuzzer(server, key) for _ in range(2)]
        fuzzers[0].create_models()
        for number in range(1000):  # until buffers have their size
            fuzzers[0].send(make_case(f"{SEED} first", number))
        before = resident_bytes(server)
        limit_memory(server, ROOM_BYTES)
        frames = [FrameFuzzer(server, packed, key) for packed in (False, True)]
        answers: Counter[str] = Counter()
        control = Control(server, key)
        with Pulse(server) as pulse:
            together(
                *(lambda k=k: of_requests(fuzzers[k], k) for k in range(2)),
                *(lambda k=k: of_frames(frames[k], k) for k in range(2)),
                lambda: of_raw_bytes(server, key, answers),
                control.run,
            )
        for one in (*fuzzers, *frames):
            answers += one.answers
            one.close()
        grown = resident_bytes(server) - before
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=server.url, headers=headers) as client:
            assert client.get("/readyz").status_code == 200
        report(
            seed=SEED,
            requests=REQUESTS,
            frames=2 * FRAMES,
            raw_connections=RAW,
            **{name.replace(" ", "_"): n for name, n in sorted(answers.items())},
            memory_grown_MB=grown >> 20,
            livez_median_and_worst_ms=pulse.milliseconds(),
            control_samples=control.learned,
        )
        assert not any(name.startswith("HTTP 5") and name != "HTTP 503" for name in answers)
        assert grown < GROWTH_BYTES
        assert pulse.alive
        assert max(pulse.waits) < WORST_WAIT
        said = server.log()
        assert "Traceback" not in said
        control.check()


def of_requests(fuzzer: Fuzzer, which: int) -> None:
    for number in range(which, REQUESTS, 2):
        fuzzer.send(make_case(SEED, number))


def of_frames(fuzzer: FrameFuzzer, which: int) -> None:
    for number in range(FRAMES):
        fuzzer.send(f"{SEED} {which}", number)


def of_raw_bytes(server: CommandProcess, key: str, answers: Counter[str]) -> None:
    """Heads, lengths, chunks and websocket framing that lie; an end, or an answer, is enough."""
    for number in range(RAW):
        random = Random(f"{SEED}:raw:{number}")
        with socket.create_connection(("127.0.0.1", server.port), SECONDS) as connection:
            try:
                connection.sendall(raw_request(key, random))
                connection.shutdown(socket.SHUT_WR)
                first = connection.recv(1 << 16)
                while connection.recv(1 << 16):
                    pass
            except ConnectionError:
                first = b""
            except TimeoutError:
                raise AssertionError(f"raw connection {number} of {SEED} hangs") from None
        status = first[9:12].decode("latin-1") if first.startswith(b"HTTP/1.1 ") else "none"
        answers[f"raw {status}"] += 1
        assert status != "500", f"raw connection {number} of {SEED}: {first!r}"


def raw_request(key: str, random: Random) -> bytes:
    content = b'{"x": [[0.5, 1.5]], "y": [1]}'
    auth = b"Authorization: Bearer " + key.encode() + b"\r\n"
    head = b"POST /v1/models/arrays/samples HTTP/1.1\r\nHost: localhost\r\n" + auth
    upgrade = (
        b"GET /v1/models/arrays/stream HTTP/1.1\r\nHost: localhost\r\n" + auth + b"Upgrade: "
        b"websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    lie = random.choice([b"0", b"1", b"28", b"30", b"-1", b"99999999999", b"1e3", b"\xff", b"+29"])
    match random.randrange(6):
        case 0:
            return head + b"Content-Length: " + lie + b"\r\n\r\n" + content
        case 1:
            return head + b"Content-Length: 29\r\nContent-Length: " + lie + b"\r\n\r\n" + content
        case 2:
            chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (random.choice([1, 29, 40, 2**40]), content)
            return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk
        case 3:
            return damaged(head + b"Content-Length: 29\r\n\r\n" + content, upgrade, random)
        case 4:
            frame = bytes([random.randrange(256), random.randrange(256)]) + random.randbytes(40)
            return upgrade + frame
        case _:
            return damaged(upgrade, head, random)


class Pulse(threading.Thread):
    """Asks whether the server lives, twenty times a second, while a context lasts."""

    def __init__(self, server: CommandProcess) -> None:
        super().__init__()
        self._client = httpx.Client(base_url=server.url, timeout=60)
        self._ended = threading.Event()
        self.waits: list[float] = []
        self.alive = True

    def __enter__(self) -> "Pulse":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()
        self._client.close()

    def run(self) -> None:
        while not self._ended.wait(0.05):
            began = time.monotonic()
            self.alive &= self._client.get("/livez").status_code == 200
            self.waits.append(time.monotonic() - began)

    def milliseconds(self) -> list[int]:
        """Return the median of the waits, and the longest."""
        return [round(1000 * sorted(self.waits)[k]) for k in (len(self.waits) // 2, -1)]


class Control:
    """A model on the same server that gets valid samples, one request after the other."""

    def __init__(self, server: CommandProcess, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(base_url=server.url, headers=headers, timeout=60)
        self._client.put("/v1/models/control", json=SMALL).raise_for_status()
        self._samples = three_classes(600, seed=5)
        self.learned = 0

    def run(self) -> None:
        for start in range(0, 600, 3):
            for head in ("samples", "asset"):
                sent = body(part(self._samples, start, start + 3))
                answer = self._client.post(f"/v1/models/control/{head}", json=sent)
                self.learned += answer.raise_for_status().json()["learned"]
            time.sleep(0.02)

    def check(self) -> None:
        """It predicts what a model in this process predicts that has learned the same."""
        own = Learner(Model(1, "control", read_spec(SMALL)))
        for start in range(0, 600, 3):
            for head in ("working_set", "asset"):
                own.absorb(head, part(self._samples, start, start + 3))  # type: ignore[arg-type]
        own.publish()
        rows = np.random.default_rng(3).standard_normal((200, 3))
        published = own.model.published
        for head in published.heads:
            path = f"/v1/models/control/predict?head={head}"
            told = self._client.post(path, json={"x": rows.tolist()}).json()
            expected = published.predict(head, published.head_rows(rows))
            assert told["prediction"] == expected.prediction
            assert told["decision"] == expected.decision
        self._client.close()
