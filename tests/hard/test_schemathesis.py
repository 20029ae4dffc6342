"""The whole interface checked against its OpenAPI document, with thousands of requests.

No status that is not documented, so no 500; no content type, header or body that is not as
described. `make test-hard` runs it; `make test` does not.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.service.process import CommandProcess
from tests.service.streams import body, curve, few_words, three_classes, two_classes
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key
from wolfstream.service.access.scopes import Scope
from wolfstream.service.samples.validation import Samples

pytestmark = [pytest.mark.hard, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
HOOKS = "tests.hard.schemathesis_hooks"
REGRESSION = {"task": "regression", "working_set": None, "semiparametric": {"window": 100}}
SPECS: dict[str, dict[str, object]] = {  # names as the hooks have them
    "arrays": {},
    "three": {},
    "named": {},
    "fresh": {},
    "regression": REGRESSION,
}
CHECKS = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CommandProcess]:
    """Not started yet, and without keys."""
    with closing(CommandProcess(tmp_path / "data", wait_seconds=0.01)) as running:
        yield running


def trained(server: CommandProcess, headers: dict[str, str]) -> None:
    """Start the server and teach its models."""
    server.start()
    whole, numbers = two_classes(100), curve(100)
    samples = {
        "arrays": Samples(whole.X[:, :2], whole.y),  # type: ignore[call-overload]
        "three": three_classes(100),
        "named": few_words(100),
        "regression": Samples(numbers.X[:, :2], numbers.y),  # type: ignore[call-overload]
    }
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
        for name, spec in SPECS.items():
            assert client.put(f"/v1/models/{name}", json=spec).status_code == 201
        for name, of_model in samples.items():
            for call in ("samples", "asset"):
                answer = client.post(f"/v1/models/{name}/{call}", json=body(of_model))
                assert answer.status_code == 200
        assert client.post("/v1/models/regression/refit").status_code == 202


def campaign(server: CommandProcess, folder: Path, *more: str) -> None:
    """Generated requests of all phases; every answer is as OpenAPI describes it."""
    arguments = [
        *("--checks", ",".join(CHECKS)),
        *("--generation-deterministic", "--continue-on-failure"),
        *("--request-timeout", "30", "--no-color"),
        # Its response ends with its listener.
        *("--exclude-path", "/v1/models/{name}/events"),
        *more,
    ]
    path = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", *arguments],
        env=os.environ | {"SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": os.pathsep.join(path)},
        cwd=folder,  # it leaves a directory behind
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout[-20_000:], done.stderr[-5_000:])
    assert done.returncode == 0
    assert "Traceback" not in server.log()
    assert httpx.get(f"{server.url}/readyz").status_code == 200


ALL_PHASES = ("--phases", "examples,coverage,fuzzing", "--max-examples", "100")
A_FEW = ("--phases", "examples,coverage,fuzzing", "--max-examples", "10")


def test_every_answer_is_documented(server: CommandProcess, tmp_path: Path) -> None:
    trained(server, {})
    campaign(server, tmp_path, *ALL_PHASES)


def test_with_a_key(server: CommandProcess, tmp_path: Path) -> None:
    header = f"Bearer {add_key(KeyFile(server.data), 'all', ('admin',))}"
    trained(server, {"Authorization": header})
    campaign(server, tmp_path, *A_FEW, "--header", f"Authorization: {header}")


@pytest.mark.parametrize("scopes", [(), ("predict",)], ids=["no key", "a key that may predict"])
def test_without_the_key_that_is_needed(
    server: CommandProcess, tmp_path: Path, scopes: tuple[Scope, ...]
) -> None:
    header = f"Bearer {add_key(KeyFile(server.data), 'all', ('admin',))}"
    given = (
        f"Bearer {add_key(KeyFile(server.data), 'few', scopes)}" if scopes else "Bearer wfs_nobody"
    )
    trained(server, {"Authorization": header})
    campaign(server, tmp_path, *A_FEW, "--header", f"Authorization: {given}")
