"""The whole interface against what OpenAPI says of it, with thousands of generated requests.

No status that is not documented, so no 500; no content type, header or body that is not as
described. `make test-hard` runs it; `make test` does not.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.samples import Samples
from tests.service.process import ServerProcess
from tests.service.streams import body, few_words, three_classes, two_classes

pytestmark = [pytest.mark.hard, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
HOOKS = "tests.hard.schemathesis_hooks"
MODELS = ("arrays", "three", "named", "fresh")  # as the hooks have them
CHECKS = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path / "data", wait_seconds=0.01).start()  # for min_sequence
    yield running
    running.close()


def test_every_answer_is_documented(server: ServerProcess, tmp_path: Path) -> None:
    whole = two_classes(100)
    samples = {
        "arrays": Samples(whole.X[:, :2], whole.y),  # type: ignore[call-overload]
        "three": three_classes(100),
        "named": few_words(100),
    }
    with httpx.Client(base_url=server.url) as client:
        for name in MODELS:
            assert client.put(f"/v1/models/{name}", json={}).status_code == 201
        for name, of_model in samples.items():
            for head in ("samples", "asset"):
                answer = client.post(f"/v1/models/{name}/{head}", json=body(of_model))
                assert answer.status_code == 200
    arguments = [
        *("--phases", "examples,coverage,fuzzing"),
        *("--checks", ",".join(CHECKS)),
        *("--max-examples", "100", "--generation-deterministic"),
        *("--continue-on-failure", "--request-timeout", "30", "--no-color"),
    ]
    path = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", *arguments],
        env=os.environ | {"SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": os.pathsep.join(path)},
        cwd=tmp_path,  # it leaves a directory behind
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout[-20_000:], done.stderr[-5_000:])
    assert done.returncode == 0
    assert "Traceback" not in server.log()
    assert httpx.get(f"{server.url}/readyz").status_code == 200
