"""`wolfstream backup` and `restore`: a directory as a whole, under load, and as it was earlier."""

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, part, three_classes
from tests.service.writer_bench import Bench, state_of
from wolfstream.service.cli.main import main
from wolfstream.service.engine import blocks
from wolfstream.service.heads.protocol import Predictions
from wolfstream.service.model.live import Model
from wolfstream.service.storage import backup

SPEC = {"asset": None, "working_set": {"max_size": 60}, "kernel": {"type": "linear"}}
ROWS = three_classes(20, 9).X


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], prog_name="wolfstream")


# The snapshots of `copied` come after these parts of ten samples.
SAVED_AFTER = (1, 3)


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.output


def error_of(result: Result) -> str:
    assert result.exit_code == 1, result.output
    line: str = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


def learn(bench: Bench, model: Model, n: int = 10, seed: int = 0) -> None:
    bench.learn(model, three_classes(n, seed), key=b"%d" % seed)


def twin(folder: Path, *seeds: int) -> list[Any]:
    """What a model says that learned these samples and nothing else, saved as `copied` was."""
    bench = Bench(folder)
    model = bench.create(SPEC)
    for seed in seeds:
        learn(bench, model, seed=seed)
        if seed in SAVED_AFTER:
            bench.snapshot(model)
    said = state_of(model, ROWS)
    bench.kill()
    return said


def brought_back(data: Path) -> tuple[int, list[Any], str]:
    """The sequence of the model of a directory, what it says, and its epoch."""
    bench = Bench(data)
    (model,) = bench.writer.models.all()
    told = model.published.sequence, state_of(model, ROWS), model.published.epoch
    bench.kill()
    return told


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A backup of a model with a snapshot at 20 and at 40, and a journal from 20 to 60."""
    bench = Bench(tmp_path / "data")
    model = bench.create(SPEC)
    for seed in range(6):
        learn(bench, model, seed=seed)
        if seed in SAVED_AFTER:
            bench.snapshot(model)
    said = done(run("backup", "--data", tmp_path / "data", tmp_path / "copy"))
    assert "m at sequence 60, back to 20" in said
    bench.close()
    return tmp_path / "copy"


def restored(copied: Path, *to: str) -> Path:
    data = copied.parent / f"restored-{time.monotonic_ns()}"
    done(run("restore", "--data", data, copied, *(("--to", *to) if to else ())))
    return data


def test_restore_to_the_end(copied: Path, tmp_path: Path) -> None:
    sequence, said, epoch = brought_back(restored(copied))
    assert (sequence, said) == (60, twin(tmp_path / "twin", *range(6)))
    assert epoch != brought_back(tmp_path / "data")[2]
    assert brought_back(restored(copied))[2] != epoch


def test_restore_keeps_idempotency_keys(copied: Path) -> None:
    bench = Bench(restored(copied, "m@50"))
    (model,) = bench.writer.models.all()
    assert bench.learn(model, three_classes(10, 4), key=b"4")["replayed"]
    assert bench.learn(model, three_classes(10, 5), key=b"5")["sequence"] == 60
    bench.kill()


@pytest.mark.parametrize(("to", "blocks"), [(50, 5), (59, 5), (40, 4), (33, 3), (20, 2), (60, 6)])
def test_restore_to_a_sequence(copied: Path, tmp_path: Path, to: int, blocks: int) -> None:
    sequence, said, _ = brought_back(restored(copied, f"m@{to}"))
    assert (sequence, said) == (10 * blocks, twin(tmp_path / "twin", *range(blocks)))


@pytest.mark.parametrize("to", [11, 260, 459])
def test_large_request_restored_whole_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: int
) -> None:
    monkeypatch.setattr(blocks, "PART_SAMPLES", 100)
    bench = Bench(tmp_path / "data")
    model = bench.create(SPEC)
    for seed, n in enumerate((10, 450, 10)):
        learn(bench, model, n, seed)
    done(run("backup", "--data", tmp_path / "data", tmp_path / "copy"))
    bench.kill()
    bench = Bench(restored(tmp_path / "copy", f"m@{to}"))
    (model,) = bench.writer.models.all()
    assert model.published.sequence == 10
    learn(bench, model, 450, 1)
    assert model.published.sequence == 460
    bench.kill()


@pytest.mark.parametrize("to", ["m@19", "m@5", "2020-01-01T00:00:00Z"])
def test_restore_refuses_points_out_of_reach(copied: Path, to: str) -> None:
    data = copied.parent / "no"
    result = run("restore", "--data", data, copied, "--to", to)
    if "@" in to:
        assert "model 'm': the backup" in error_of(result)
        assert not data.exists()
    else:  # there was no model then
        assert done(result) == f"{data}: 0 models\n"


def test_restore_to_a_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "data")
    model = bench.create(SPEC)
    times = []
    for seed in range(4):
        learn(bench, model, seed=seed)
        time.sleep(0.01)
        times.append(datetime.now(UTC).isoformat())
        time.sleep(0.01)
        if seed == 1:
            bench.snapshot(model)
    bench.writer.history.roll_back(model, 20)
    time.sleep(0.01)
    times.append(datetime.now(UTC).isoformat())
    time.sleep(0.01)
    learn(bench, model, seed=4)
    done(run("backup", "--data", tmp_path / "data", tmp_path / "copy"))
    bench.kill()
    learned = [(0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1)]
    for at, (moment, seeds) in enumerate(zip(times, learned, strict=True)):
        sequence, said, _ = brought_back(restored(tmp_path / "copy", moment))
        assert (sequence, said) == (min(10 * (at + 1), 40), twin(tmp_path / f"twin-{at}", *seeds))


def test_other_models_stay_at_their_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "data")
    one, other = bench.create(SPEC, "one"), bench.create(SPEC, "other")
    for seed in range(3):
        for model in (one, other):
            learn(bench, model, seed=seed)
    done(run("backup", "--data", tmp_path / "data", tmp_path / "copy"))
    bench.kill()
    bench = Bench(restored(tmp_path / "copy", "one@10"))
    found = {model.name: model.published.sequence for model in bench.writer.models.all()}
    assert found == {"one": 10, "other": 30}
    bench.kill()


def test_backup_includes_keys(copied: Path, tmp_path: Path) -> None:
    keys = tmp_path / "data" / "keys.json"
    keys.write_text("{}")
    done(run("backup", "--data", tmp_path / "data", tmp_path / "again"))
    data = restored(tmp_path / "again")
    assert (data / "keys.json").read_text() == "{}"
    assert not (data / "backup.json").exists()
    told = json.loads((copied / "backup.json").read_text())
    assert told["models"] == [{"model": "m", "oldest": 20, "newest": 60}]


def test_wrong_directories_and_points_are_refused(copied: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert "not empty" in error_of(run("backup", "--data", data, copied))
    assert "not empty" in error_of(run("restore", "--data", data, copied))
    assert "is no data directory" in error_of(run("backup", "--data", tmp_path, tmp_path / "x"))
    assert "no complete backup" in error_of(run("restore", "--data", tmp_path / "x", data))
    unknown = run("restore", "--data", tmp_path / "x", copied, "--to", "other@3")
    assert "no model 'other'; it has m" in error_of(unknown)
    neither = run("restore", "--data", tmp_path / "x", copied, "--to", "yesterday")
    assert (neither.exit_code, (tmp_path / "x").exists()) == (2, False)


def test_restore_into_the_current_directory(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done(run("restore", "--data", ".", copied))
    assert brought_back(tmp_path / "here")[0] == 60


def test_restore_of_an_empty_backup_has_no_model(tmp_path: Path) -> None:
    Bench(tmp_path / "data").close()
    done(run("backup", "--data", tmp_path / "data", tmp_path / "copy"))
    refused = run("restore", "--data", tmp_path / "x", tmp_path / "copy", "--to", "m@1")
    assert error_of(refused).endswith("no model 'm'; it has none")


def test_restore_refuses_times_outside_the_calendar(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        early = run("restore", "--data", tmp_path / "x", copied, "--to", "0001-01-01")
    time.tzset()
    assert "'0001-01-01' is neither" in early.stderr
    assert (early.exit_code, (tmp_path / "x").exists()) == (2, False)


def test_backup_retries_when_snapshots_vanish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy begins again, as what the journal needs is newer than what was listed."""
    bench = Bench(tmp_path / "data", snapshots=2)
    model = bench.create(SPEC)
    learn(bench, model)
    bench.snapshot(model)
    copy, times = backup.copy_directory, []

    def copy_late(source: Path, to: Path) -> None:
        times.append(source)
        with monkeypatch.context() as patch:
            if len(times) == 1:
                sequences = list(source.glob("snapshots/*/*.snapshot"))
                patch.setattr(Path, "glob", lambda *_: iter(sequences))
                for seed in range(1, 5):
                    learn(bench, model, seed=seed)
                    patch.undo()
                    bench.snapshot(model)
                    patch.setattr(Path, "glob", lambda *_: iter(sequences))
            copy(source, to)

    monkeypatch.setattr(backup, "copy_directory", copy_late)
    done(run("backup", "--data", tmp_path / "data", tmp_path / "copy"))
    bench.kill()
    assert len(times) == 2
    assert brought_back(restored(tmp_path / "copy"))[0] == 50


def assert_same(found: Predictions | None, expected: Predictions | None) -> None:
    """The same predictions; decisions to rounding.

    The server compiles its code in other processes than the test, and code that was compiled at
    another time may round the last bit otherwise.
    """
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.prediction == expected.prediction
        np.testing.assert_allclose(found.decision, expected.decision, rtol=1e-9, atol=1e-12)


def test_backup_under_load(tmp_path: Path) -> None:
    """Backups of a server that learns and saves snapshots all the while."""
    server = ServerProcess(tmp_path / "data", snapshot_samples=50).start()
    samples, acknowledged, stop = three_classes(3000, 3), [0], threading.Event()

    def post() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for start in range(0, 3000, 5):
                if stop.is_set():
                    return
                sent = body(part(samples, start, start + 5))
                answer = client.post("/v1/models/m/samples", json=sent).raise_for_status()
                acknowledged[0] = answer.json()["sequence"]

    try:
        httpx.put(f"{server.url}/v1/models/m", json=PAPERS | SPEC).raise_for_status()
        thread = threading.Thread(target=post)
        thread.start()
        copies = []
        for number in range(4):
            time.sleep(0.3)
            before, copy = acknowledged[0], tmp_path / f"copy-{number}"
            done(run("backup", "--data", tmp_path / "data", copy))
            copies.append((copy, before, acknowledged[0]))
        while acknowledged[0] <= 200:  # a server that still compiles takes its time
            time.sleep(0.1)
        stop.set()
        thread.join()
    finally:
        server.close()
    assert acknowledged[0] > 200
    bench = Bench(tmp_path / "twin")
    twin_model, said = bench.create(SPEC), dict[int, Any]({0: None})
    for start in range(0, acknowledged[0], 5):
        bench.learn(twin_model, part(samples, start, start + 5))
        view = twin_model.published.heads["working_set"]
        said[start + 5] = None if view.lacks else view.predict(ROWS)
    bench.kill()
    for copy, before, after in copies:
        told = json.loads((copy / "backup.json").read_text())["models"][0]
        assert before <= told["newest"] <= after + 5
        for to in (told["newest"], (told["oldest"] + told["newest"]) // 2):
            reopened = Bench(restored(copy, f"m@{to}"))
            (model,) = reopened.writer.models.all()
            assert model.published.sequence == to // 5 * 5
            published = model.published
            view = published.heads["working_set"]
            now = None if view.lacks else view.predict(ROWS)
            assert_same(now, said[published.sequence])
            reopened.kill()
