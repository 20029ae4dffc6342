"""The README is true: its curl session works as typed, its files exist."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.process import ServerProcess, free_port

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def shell_block(containing: str) -> str:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    return next(block for block in blocks if containing in block)


def python_block(containing: str) -> str:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (block,) = [block for block in blocks if containing in block]
    return block


def answers_of_session(containing: str, tmp_path: Path) -> list[Any]:
    """Only the port and the path of the command differ from the README; one answer a line."""
    port = str(free_port())
    session = shell_block(containing).replace("8000", port).replace("curl ", "curl -w '\\n' ")
    session = session.replace(".venv/bin/wolfstream", f"{sys.executable} -m service")
    done = subprocess.run(
        ["bash", "-e", "-m", "-c", f"{session}\nwait"],
        cwd=tmp_path,
        env=os.environ | {"WOLFSTREAM_PORT": port, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_the_curl_session_works_as_typed(tmp_path: Path) -> None:
    answers = answers_of_session("$U-named", tmp_path)
    ready, created, learned, one, predicted, refused, described, *of_named = answers
    assert ready == {"status": "ready"}
    assert created["sequence"] == 0
    assert (learned["learned"], learned["sequence"]) == (3, 3)
    assert (one["learned"], one["sequence"]) == (1, 4)
    assert predicted["prediction"] == ["dry", "humid"]
    assert refused["errors"][0]["pointer"] == "/x/0/1"
    assert described["sequence"] == 4
    created_named, learned_named, predicted_named = of_named
    assert created_named["model"] == "rooms-named"
    assert learned_named["learned"] == 2
    assert predicted_named["prediction"] == ["humid"]


def test_the_session_of_a_day_works_as_typed(tmp_path: Path) -> None:
    answers = answers_of_session("$U/rollback", tmp_path)
    _, created, learned, again, snapshot, mistake, back, history = answers
    assert created["sequence"] == 0
    assert learned["sequence"] == again["sequence"] == snapshot["sequence"] == 2
    assert again == learned
    assert mistake["sequence"] == back["sequence"] == 3
    assert back["rolled_back"]["to"] == 2
    assert [kept["sequence"] for kept in history["snapshots"]] == [2]
    assert (tmp_path / "days.model").exists()
    assert (tmp_path / "other-data" / "log.sqlite").exists()


def test_the_session_with_numbers_works_as_typed(tmp_path: Path) -> None:
    answers = answers_of_session("refit", tmp_path)
    ready, created, learned, predicted, job, refitted = answers
    assert ready == {"status": "ready"}
    assert created["spec"]["semiparametric"]["window"] == 2000
    assert learned["learned"] == 5
    assert predicted["head"] == "asset"
    assert job["status"] in ("queued", "running", "done")
    assert refitted["head"] == "semiparametric"
    assert 6.0 < refitted["prediction"][0] < 8.0


def test_the_notebook_works_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(python_block("sklearn.datasets"), "README.md", "exec"), {})
    lines = [
        [float(word) for word in line.split()] for line in capsys.readouterr().out.splitlines()
    ]
    (online, support), (exact, gap), (inside, outside) = lines
    assert min(online, exact) > 0.97
    assert support > 100
    assert gap <= 1e-5
    assert inside > 0.7
    assert outside < 0.05


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("server") / "data").start()
    yield running
    running.close()


def said_by(block: str, server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Only the server's URL differs from the README; what is printed, line by line."""
    block = block.replace("http://127.0.0.1:8000", server.url)
    exec(compile(block, "README.md", "exec"), {})
    return capsys.readouterr().out.splitlines()


def test_the_client_works_as_typed(
    server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    learned, streamed = said_by(python_block("client.stream"), server, capsys)
    sequence, accuracy = learned.split()
    assert sequence == "1500"
    assert float(accuracy) > 0.95
    assert re.fullmatch(r"2000 \['(humid|dry)'\]", streamed)


def test_the_river_adapter_works_as_typed(
    server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("river")
    (accuracy,) = said_by(python_block("RemoteClassifier"), server, capsys)
    found = re.fullmatch(r"Accuracy: ([\d.]+)%", accuracy)
    assert found
    assert float(found[1]) > 75


def test_the_commands_from_a_file_work_as_typed(tmp_path: Path) -> None:
    """The last one, which serves, is started as typed and stopped once it is ready."""
    random = np.random.default_rng(0)
    rows = random.standard_normal((150, 2)) * 5 + [20, 50]
    lines = [f"{a},{b},{'humid' if b > 50 else 'dry'}" for a, b in rows.tolist()]
    (tmp_path / "rooms.csv").write_text("warmth,humidity,y\n" + "\n".join(lines[:100]))
    (tmp_path / "held-out.csv").write_text("\n".join(lines[100:]))
    (tmp_path / "new.csv").write_text("20,41\n22,58\n")
    session = shell_block("wolfstream train").replace(
        ".venv/bin/wolfstream", f"{sys.executable} -m service"
    )
    port = str(free_port())
    wait = f"until curl -sf http://127.0.0.1:{port}/readyz; do sleep 0.2; done"
    done = subprocess.run(
        ["bash", "-e", "-m", "-c", f"{session.rstrip()} &\n{wait}\nkill %1\nwait"],
        cwd=tmp_path,
        env=os.environ | {"WOLFSTREAM_PORT": port, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    assert "model rooms: loaded rooms.model, trained by mfw on 100 samples" in done.stderr
    judged = re.search(r"accuracy ([\d.]+)%, kappa ([\d.]+) of 50 samples", done.stdout)
    assert judged
    assert float(judged[1]) > 85
    assert float(judged[2]) > 0.6
    assert '{"status":"ready"}' in done.stdout
    said = (tmp_path / "predictions.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in said] == ["prediction", "dry", "humid"]


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:solver|service|docker)/[\w./]+)`", README)))
)
def test_files_that_are_named_exist(path: str) -> None:
    assert (ROOT / path).exists()


def test_functions_that_are_named_stand_in_their_files() -> None:
    named = re.findall(r"`(solver/\w+\.py)`((?: `\w+`,?)+)", README)
    assert named
    for path, functions in named:
        source = (ROOT / path).read_text()
        for function in re.findall(r"`(\w+)`", functions):
            assert re.search(rf"^(def|class) {function}\b", source, re.MULTILINE), (path, function)


def test_the_promise_of_defaults_is_that_of_the_settings() -> None:
    from service.settings import Settings
    from service.spec import WorkingSetSpec

    settings = Settings(_env_file=None)  # type: ignore[call-arg]
    assert f"at most {settings.classes} different" in " ".join(README.split())
    assert WorkingSetSpec.model_fields["max_size"].default == 5000
    assert f"at most {settings.features:,} different names" in " ".join(README.split())
    assert "5,000 unless the spec says otherwise" in " ".join(README.split())


def test_each_promise_names_tests_that_exist() -> None:
    table = README.partition("| promise | kept by")[2].partition("\n\n")[0]
    named = re.findall(r"`(tests/\w+/test_\w+\.py)`(?: `(test_\w+)`)?", table)
    assert len(named) > 12
    for file, function in named:
        assert f"def {function}" in (ROOT / file).read_text(), (file, function)
