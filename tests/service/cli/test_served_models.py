"""`wolfstream models` against a running server."""

import json
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

import wolfstream
from tests.service.process import ServerProcess, free_port
from tests.service.specs import PAPERS
from tests.service.streams import body, three_classes
from wolfstream.service.cli.main import main
from wolfstream.service.cli.tables import table

SAMPLES = three_classes(120)


def run(server: ServerProcess | str, *arguments: object, **options: str) -> Result:
    url = server if isinstance(server, str) else server.url
    environment = {"WOLFSTREAM_URL": url}
    words = ["models", *map(str, arguments)]
    return CliRunner().invoke(main, words, env=environment, prog_name="wolfstream", **options)  # type: ignore[arg-type]


def output(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


@pytest.fixture
def learned(client: httpx.Client, name: str) -> str:
    """A model of three classes."""
    client.put(f"/v1/models/{name}", json=PAPERS).raise_for_status()
    for call in ("samples", "snapshot"):
        sent = body(SAMPLES) if call == "samples" else None
        client.post(f"/v1/models/{name}/{call}", json=sent).raise_for_status()
    client.post(f"/v1/models/{name}/samples", json=body(three_classes(7))).raise_for_status()
    return name


def test_list(server: ServerProcess, learned: str):
    head, *lines = output(run(server, "list"))
    assert head.split() == ["MODEL", "SEQUENCE", "FEATURES", "STATUS"]
    assert [learned, "127", "3", "ok"] in [line.split() for line in lines]


def test_show(server: ServerProcess, learned: str):
    first, rows, *heads = output(run(server, "show", learned))
    assert first == f"{learned} at sequence 127: ok"
    assert rows == "rows: arrays, 3 features"
    assert heads[0].startswith("working_set (serves): ")
    assert "predictions correct" in heads[0]
    assert "in the set" in heads[0]
    assert heads[1] == "asset: no predictions scored yet"
    whole = json.loads(run(server, "show", learned, "--json").output)
    assert whole["heads"]["working_set"]["classes"]


def test_create_from_spec_or_file(server: ServerProcess, name: str, tmp_path: Path):
    spec = json.dumps({**PAPERS, "task": "regression"})
    assert output(run(server, "create", name, "--spec", spec)) == [
        f"{name} at sequence 0: regression"
    ]
    model = wolfstream.SFWClassifier().fit(SAMPLES.X, SAMPLES.y)
    wolfstream.save(model, tmp_path / "a.model")
    for _ in range(2):
        assert output(run(server, "create", f"{name}.b", "--load", tmp_path / "a.model")) == [
            f"{name}.b at sequence 120: classification"
        ]
    said = output(run(server, "predict", f"{name}.b", json.dumps(SAMPLES.X[:5].tolist())))
    assert said == [str(label) for label in model.predict(SAMPLES.X[:5])]


def test_create_refuses_spec_with_file(server: ServerProcess, name: str, tmp_path: Path):
    (tmp_path / "a.model").write_bytes(b"")
    result = run(server, "create", name, "--spec", "{}", "--load", tmp_path / "a.model")
    assert result.exit_code == 2
    assert "use either --spec or --load" in result.output


def test_predict_prints_probabilities(server: ServerProcess, client: httpx.Client, name: str):
    client.put(f"/v1/models/{name}", json={}).raise_for_status()
    client.post(f"/v1/models/{name}/samples", json=body(SAMPLES)).raise_for_status()
    (line,) = output(run(server, "predict", name, "[0.1, 0.2, 0.3]", "--probability"))
    label, *shares = line.split()
    assert len(shares) == 3
    assert label in {share.partition("=")[0] for share in shares}


@pytest.mark.parametrize(
    "command", [["rollback", "m", "1"], ["promote", "m", "b"], ["delete", "m"]]
)
def test_unconfirmed_commands_say_how(server: ServerProcess, command: list[str]) -> None:
    refused = run(server, *command)
    assert refused.exit_code == 2
    assert "confirm with --yes" in refused.output


def test_create_challenger(server: ServerProcess, learned: str) -> None:
    assert '"follows"' in run(server, "create", "--help").output
    spec = json.dumps({"follows": learned, "seed": 7})
    assert run(server, "create", f"{learned}-b", "--spec", spec).exit_code == 0
    assert f"{learned}-b" in "".join(output(run(server, "challengers", learned)))


def test_history_and_rollback(server: ServerProcess, learned: str):
    head, line = output(run(server, "history", learned))
    assert head.split() == ["SEQUENCE", "WRITTEN", "SAMPLES", "SINCE", "SIZE"]
    assert (line.split()[0], line.split()[2]) == ("120", "7")
    asked = run(server, "rollback", learned, 120, input="n\n")
    assert asked.exit_code == 1
    assert output(run(server, "rollback", learned, 120, "--yes")) == [
        f"{learned} at sequence 127 is as it was at 120"
    ]


def test_watch(server: ServerProcess, learned: str):
    lines = output(run(server, "watch", learned, "--count", 2))
    assert len(lines) == 2
    assert lines[0].startswith(f"{learned} at 127: ")
    assert "working_set.accuracy" in lines[0]
    assert "samples waiting 0, rows waiting for labels 0" in lines[0]


@pytest.mark.parametrize(
    "command", [["rollback", "m", 2**63, "--yes"], ["watch", "m", "--count", 2**63]]
)
def test_numbers_beyond_64_bits_are_refused(command: list[object]) -> None:
    refused = run("http://127.0.0.1:1", *command)
    assert refused.exit_code == 2
    assert "is too large" in refused.output


@pytest.mark.parametrize("command", ["show", "history", "watch"])
def test_unknown_model_fails(server: ServerProcess, command: str):
    result = run(server, command, "nobody")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: 404 There is no such model")


def test_missing_server_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wolfstream.service.cli.options._RETRY_SECONDS", 0.0)
    result = run(f"http://127.0.0.1:{free_port()}", "list")
    assert result.exit_code == 3
    assert "is the server running" in result.stderr
    assert run("ftp://nowhere", "list").exit_code == 2


def test_predict_refuses_wrong_rows(server: ServerProcess, learned: str):
    assert run(server, "predict", learned, "{").exit_code == 2
    refused = run(server, "predict", learned, '[["a", "b"]]')
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: 422 ")


def test_table_aligns_columns():
    assert table([("A", "B", "C"), ("aaa", "b", "c")]) == "A    B  C\naaa  b  c"
