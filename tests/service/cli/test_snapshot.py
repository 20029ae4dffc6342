"""`wolfstream snapshot`: out of a data directory and into one, bit for bit; what is not whole."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from tests.service.process import ServerProcess
from tests.service.streams import body, curve, few_words, three_classes
from tests.service.writer_bench import Bench, state_of
from wolfstream.service.cli.main import main
from wolfstream.service.heads.kinds import head_of_call
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import load_model
from wolfstream.service.storage.snapshot_format import read_state
from wolfstream.service.storage.sqlite_rows import sealed, unsealed

SPEC = {"asset": {"dimension": 16}, "working_set": {"max_size": 60}}
ROWS = three_classes(20, 9).X


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["snapshot", *map(str, arguments)], prog_name="wolfstream")


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.output


def error_of(result: Result) -> str:
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


def content(folder: Path) -> dict[str, bytes]:
    """All files of a directory but SQLite's own beside the log."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def filled(data: Path, samples: Any = three_classes, spec: Any = SPEC) -> tuple[Bench, Model]:
    """A model with snapshots at 30, 60 and 90, and 30 samples more in the log."""
    bench = Bench(data)
    model = bench.create(spec)
    for seed in range(4):
        bench.learn(model, samples(30, seed), head_of_call(model.spec, "samples"))
        if seed < 3:
            bench.snapshot(model)
    return bench, model


# -- export and import ------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["kill", "close"])
def test_a_directory_that_nobody_holds_gives_all_that_was_acknowledged(
    data: Path, tmp_path: Path, stop: str
) -> None:
    bench, model = filled(data)
    before = state_of(model, ROWS)
    getattr(bench, stop)()
    held = content(data)
    told = done(run("export", "--data", data, "m", "--output", tmp_path / "m.model"))
    assert "m at sequence 120" in told
    exported = load_model(tmp_path / "m.model").model
    assert (state_of(exported, ROWS), exported.published.sequence) == (before, 120)
    assert content(data) | {"lock": b""} == held | {"lock": b""}


@pytest.mark.parametrize(
    ("samples", "spec"),
    [
        (three_classes, SPEC),
        (few_words, SPEC),
        (curve, {"task": "regression", "asset": {"dimension": 16}, "semiparametric": {}}),
    ],
)
def test_export_and_import_give_the_same_model_bit_for_bit(
    data: Path, tmp_path: Path, samples: Callable[..., Any], spec: Any
) -> None:
    bench, model = filled(data, samples, spec)
    bench.kill()
    file = tmp_path / "m.model"
    done(run("export", "--data", data, "m", "--output", file))
    told = done(run("import", "--data", tmp_path / "other", file, "--name", "again"))
    assert "again, a snapshot of a server at sequence 120" in told
    again = Bench(tmp_path / "other")
    bench = Bench(data)
    model, copy = bench.writer.models.get("m"), again.writer.models.get("again")
    bench.snapshot(model)  # a model in a file has come through a checkpoint
    more, head = samples(40, 7), head_of_call(model.spec, "samples")
    learned, expected = again.learn(copy, more, head), bench.learn(model, more, head)
    assert (learned["sequence"], learned["results"]) == (160, expected["results"])
    states = [bench.writer.models.learners()[0].state() for bench in (again, bench)]
    for life in ("epoch", "creation"):
        assert states[0][0].pop(life) != states[1][0].pop(life)
    assert states[0][0] == states[1][0]
    assert {n: a.tobytes() for n, a in states[0][1].items()} == {
        n: a.tobytes() for n, a in states[1][1].items()
    }
    again.kill()
    bench.kill()


def test_a_kept_snapshot_is_exported_on_request(data: Path, tmp_path: Path) -> None:
    bench, _ = filled(data)
    bench.kill()
    out = tmp_path / "m.model"
    told = done(run("export", "--data", data, "m", "--output", out, "--sequence", 60))
    assert "at sequence 60" in told
    kept = read_state(data / "snapshots" / "1" / f"{60:020d}.snapshot")
    assert read_state(out).plain == kept.plain
    line = error_of(
        run("export", "--data", data, "m", "--output", out, "--force", "--sequence", 61)
    )
    assert line.endswith("no snapshot of sequence 61; it has 90, 60, 30")


def test_a_rollback_is_exported_and_stays_one(data: Path, tmp_path: Path) -> None:
    bench, model = filled(data)
    bench.writer.history.roll_back(model, 60)
    before = state_of(model, ROWS)
    bench.kill()
    done(run("export", "--data", data, "m", "--output", tmp_path / "m.model"))
    exported = load_model(tmp_path / "m.model").model
    assert (state_of(exported, ROWS), exported.published.sequence) == (before, 120)
    assert exported.describe()["rolled_back"]["to"] == 60


def test_a_damaged_newest_snapshot_is_passed_over_and_left_where_it_is(
    data: Path, tmp_path: Path
) -> None:
    bench, model = filled(data)
    before = state_of(model, ROWS)
    bench.kill()
    path = data / "snapshots" / "1" / f"{90:020d}.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    done(run("export", "--data", data, "m", "--output", tmp_path / "m.model"))
    assert state_of(load_model(tmp_path / "m.model").model, ROWS) == before
    assert path.exists()


def test_what_cannot_be_exported(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.model"
    line = error_of(run("export", "--data", data, "m", "--output", out))
    assert "is no data directory" in line
    assert not data.exists()
    bench, _ = filled(data)
    bench.kill()
    line = error_of(run("export", "--data", data, "other", "--output", out))
    assert "has no model 'other'; it has m" in line
    out.write_bytes(b"mine")
    assert "--force" in error_of(run("export", "--data", data, "m", "--output", out))
    assert out.read_bytes() == b"mine"
    done(run("export", "--data", data, "m", "--output", out, "--force"))
    assert load_model(out).learner.sequence == 120


def test_what_cannot_be_imported(data: Path, tmp_path: Path) -> None:
    bench, _ = filled(data)
    bench.kill()
    file = tmp_path / "m.model"
    done(run("export", "--data", data, "m", "--output", file))
    line = error_of(run("import", "--data", data, file, "--name", "m"))
    assert "has a model 'm'; choose another --name" in line
    assert run("import", "--data", data, file, "--name", "a/b").exit_code == 2
    file.write_bytes(file.read_bytes()[:-1])
    line = error_of(run("import", "--data", data, file, "--name", "again"))
    assert "checksum" in line
    bench = Bench(data)
    assert [model.name for model in bench.writer.models.all()] == ["m"]
    bench.kill()


def test_beside_a_running_server(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", snapshot_samples=10**9).start()
    out, data = tmp_path / "m.model", server.data
    try:
        with httpx.Client(base_url=f"{server.url}/v1/models", timeout=30) as client:
            client.put("/m", json=SPEC)
            client.post("/m/samples", json=body(three_classes(60))).raise_for_status()
            line = error_of(run("export", "--data", data, "m", "--output", out))
            assert "POST /v1/models/m/snapshot makes one" in line
            client.post("/m/snapshot").raise_for_status()
            expected = client.post("/m/predict", json={"x": ROWS.tolist()}).json()
            client.post("/m/samples", json=body(three_classes(30, 1))).raise_for_status()
            result = run("export", "--data", data, "m", "--output", out)
            assert "m at sequence 60" in done(result)
            assert "was at 90: POST /v1/models/m/snapshot" in result.stderr
            exported = load_model(out).model
            published = exported.published
            said = published.predict("adaptive", published.head_rows(ROWS))
            assert [said.prediction, said.decision] == [
                expected["prediction"],
                expected["decision"],
            ]
            line = error_of(run("import", "--data", data, out, "--name", "again"))
            assert f"wolfstream serve --load again={out}" in line
            assert done(run("verify", data, out)).splitlines() == [
                f"{data}: whole",
                f"{out}: whole",
            ]
            assert client.get("/m").json()["sequence"] == 90
    finally:
        server.close()


# -- verify -----------------------------------------------------------------------------


def problems(*paths: Path) -> list[str]:
    """The lines that name a problem."""
    result = run("verify", *paths)
    *lines, error = result.output.strip().splitlines()
    found = [line for line in lines if not line.endswith(": whole")]
    assert result.exit_code == 1, result.output
    assert error == f"Error: {'one problem' if len(found) == 1 else f'{len(found)} problems'}"
    return found


def change(data: Path, statement: str) -> None:
    with closing(sqlite3.connect(data / "log.sqlite")) as database:
        assert database.execute(statement).rowcount > 0
        database.commit()


@pytest.mark.parametrize("stop", ["kill", "close"])
@pytest.mark.parametrize("rolled_back", [False, True])
def test_what_a_server_leaves_is_whole(data: Path, stop: str, rolled_back: bool) -> None:
    bench, model = filled(data)
    if rolled_back:
        bench.writer.history.roll_back(model, 60)
        bench.learn(model, three_classes(30, 5))
    getattr(bench, stop)()
    assert done(run("verify", data)) == f"{data}: whole\n"


def test_a_damaged_snapshot_is_found_and_the_others_are_looked_at(data: Path) -> None:
    bench, _ = filled(data)
    bench.kill()
    path = data / "snapshots" / "1" / f"{90:020d}.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    (line,) = problems(data)
    assert str(path) in line
    assert "checksum; a start of model 'm' falls back to the one before" in line


def test_where_there_is_nothing_to_fall_back_to(data: Path) -> None:
    """A start has fallen back, and no snapshot has been made since."""
    bench, _ = filled(data)
    bench.kill()
    path = data / "snapshots" / "1" / f"{90:020d}.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    bench = Bench(data)
    bench.kill()
    (line,) = problems(data)
    assert "journal begins at 60, so there is no falling back to the snapshot of 30" in line
    bench = Bench(data)
    bench.snapshot(bench.writer.models.get("m"))
    bench.kill()
    done(run("verify", data))


@pytest.mark.parametrize(
    ("sequence", "said"),
    [
        (90, "journal begins at 90, so there is no falling back to the snapshot of 60"),
        (120, "samples 91 to 120 are missing in the journal; restore the data directory"),
    ],
)
def test_samples_that_are_missing(data: Path, sequence: int, said: str) -> None:
    bench, model = filled(data)
    bench.learn(model, three_classes(10, 6))
    bench.kill()
    change(data, f"DELETE FROM log WHERE kind = 'samples' AND sequence = {sequence}")
    (line,) = problems(data)
    assert f"model 'm': {'the ' if sequence == 90 else ''}{said}" in line


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"record": b"\0"}, "sequence 120 cannot be read"), ({"block": 130}, "130 is not complete")],
)
def test_records_that_cannot_be_learned(data: Path, changed: dict[str, Any], said: str) -> None:
    """What no damage makes, because each row is sealed."""
    bench, _ = filled(data)
    bench.kill()
    with closing(sqlite3.connect(data / "log.sqlite", isolation_level=None)) as database:
        row = database.execute("SELECT * FROM log WHERE sequence = 120").fetchone()
        entry = sealed(unsealed(row)._replace(**changed))
        database.execute("DELETE FROM log WHERE sequence = 120")
        database.execute(f"INSERT INTO log VALUES ({', '.join('?' * len(entry))})", entry)
    (line,) = problems(data)
    assert said in line
    assert "restore the data directory from a backup" in line


def test_a_damaged_state_of_a_rollback(data: Path) -> None:
    bench, model = filled(data)
    bench.writer.history.roll_back(model, 60)
    bench.kill()
    (pinned,) = data.glob("snapshots/1/*.pinned")
    pinned.write_bytes(pinned.read_bytes()[:1000])
    (line,) = problems(data)
    assert "does not match its digest; restore it from a backup" in line
    bench = Bench(data)
    (model,) = bench.writer.models.all()
    assert "be what it was before it was rolled back" in model.broken
    bench.kill()


def test_a_damaged_database(data: Path) -> None:
    bench, _ = filled(data)
    bench.close()
    log = data / "log.sqlite"
    pages = bytearray(log.read_bytes())
    pages[4096:] = b"\xff" * (len(pages) - 4096)
    log.write_bytes(pages)
    assert any(str(log) in line for line in problems(data))
    log.write_bytes(b"nothing that SQLite knows" * 1000)
    (line,) = problems(data)
    assert "restore it from a backup" in line


def test_other_files_and_directories(data: Path, tmp_path: Path) -> None:
    bench, _ = filled(data)
    bench.kill()
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.model").write_bytes(b"WOLFSN")
    whole = data / "snapshots" / "1" / f"{90:020d}.snapshot"
    found = problems(whole, other, other / "a.model", data)
    assert len(found) == 2
    assert "name a data directory or a model file" in found[0]
    assert "a.model" in found[1]
    assert run("verify").exit_code == 2
    assert run("verify", tmp_path / "missing").exit_code == 2


# -- inspect ----------------------------------------------------------------------------


def test_what_is_in_a_file(data: Path) -> None:
    bench, _ = filled(data)
    bench.kill()
    path = data / "snapshots" / "1" / f"{90:020d}.snapshot"
    told = json.loads(done(run("inspect", path, "--json")))
    loaded = load_model(path)
    described = loaded.model.describe()
    assert (told["sequence"], told["bytes"]) == (90, path.stat().st_size)
    assert (told["spec"], told["heads"]) == (described["spec"], described["heads"])
    assert told["heads"]["working_set"]["prequential"]["kappa"] is not None
    assert {array["name"]: array["shape"] for array in told["arrays"]} == {
        name: list(array.shape) for name, array in loaded.state.arrays.items()
    }
    assert all(array["bytes"] >= 0 and array["dtype"] for array in told["arrays"])
    text = done(run("inspect", path))
    assert "a snapshot of a server at sequence 90" in text
    assert '"classes": [\n' in text
    for name in loaded.state.arrays:
        assert name in text


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert "is not a model file of this version" in error_of(run("inspect", tmp_path / "a"))
    assert run("inspect", tmp_path / "missing").exit_code == 2
