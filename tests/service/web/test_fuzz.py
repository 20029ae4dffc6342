"""A short run of what `make test-hard` does with tens of thousands of requests and frames."""

from contextlib import closing
from pathlib import Path

import httpx

from tests.service.fuzzing import FrameFuzzer, Fuzzer, make_case
from tests.service.process import ServerProcess

SEED = 20260101


def test_what_is_wrong_is_refused_and_nothing_breaks(tmp_path: Path) -> None:
    with closing(ServerProcess(tmp_path / "data", wait_seconds=0.01, body_bytes=1 << 20)) as server:
        server.start()
        with closing(Fuzzer(server)) as fuzzer:
            fuzzer.create_models()
            for number in range(300):
                fuzzer.send(make_case(SEED, number))
            assert fuzzer.answers["HTTP 200"] > 30
            assert fuzzer.answers["HTTP 422"] > 30
        for packed in (False, True):
            with closing(FrameFuzzer(server, packed)) as frames:
                for number in range(80):
                    frames.send(SEED, number)
                assert frames.answers["stream answered"] > 0
                assert frames.answers["stream 422"] > 8
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        said = server.log()
        assert "Traceback" not in said
