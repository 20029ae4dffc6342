"""Challengers on the command line, and in directories that no server holds."""

import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from tests.service.cli.test_backup import done, restored
from tests.service.cli.test_backup import run as run_command
from tests.service.cli.test_served_models import output, run
from tests.service.engine.test_challengers import OTHER, ROWS, SPEC, catch_up, follow, found, learn
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, three_classes
from tests.service.writer_bench import Bench, state_of
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.directory_models import DirectoryModelError, delete
from wolfstream.service.recovery.verification import verify


def test_challenger_is_listed_and_promoted(
    server: ServerProcess, client: httpx.Client, name: str
) -> None:
    client.put(f"/v1/models/{name}", json=PAPERS).raise_for_status()
    follows = PAPERS | {"follows": name, "working_set": {"C": 3.0}}
    client.put(f"/v1/models/{name}-b", json=follows).raise_for_status()
    head, before = output(run(server, "challengers", name))
    assert head.split()[:3] == ["CHALLENGER", "LAG", "COMPARED"]
    assert before.split() == [f"{name}-b", "0", "0", "-", "-", "-", "-", "-"]
    for seed in range(2):
        client.post(f"/v1/models/{name}/samples", json=body(three_classes(60, seed)))
    client.get(f"/v1/models/{name}-b?min_sequence=120").raise_for_status()
    (_, row) = output(run(server, "challengers", name))
    assert row.split()[:3] == [f"{name}-b", "0", "118"]
    assert row.endswith("not known")
    (line,) = output(run(server, "promote", name, f"{name}-b", "--yes"))
    assert line == f"{name} is now what {name}-b was; a rollback to 120 undoes it"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Bench, Model, Model]:
    """A model with 200 samples, and its challenger, each with a snapshot at 100 and at 150."""
    bench = Bench(tmp_path / "data")
    champion = bench.create(SPEC, "a")
    challenger = follow(bench, champion)
    for start, stop in ((0, 100), (100, 150)):
        learn(bench, champion, start, stop, 25)
        catch_up(bench, challenger)
        for model in (champion, challenger):
            bench.snapshot(model)
    learn(bench, champion, 150, 200, 25)
    catch_up(bench, challenger)
    return bench, champion, challenger


def test_verify_finds_no_damage(pair: tuple[Bench, Model, Model]) -> None:
    bench = pair[0]
    bench.kill()
    assert list(verify(bench.data, lambda _: None)) == []


@pytest.mark.parametrize("to", [200, 150, 125])
def test_restore_challenger_at_a_sequence(
    pair: tuple[Bench, Model, Model], tmp_path: Path, to: int
) -> None:
    """The challenger is what it was when its champion was there."""
    bench = pair[0]
    done(run_command("backup", "--data", bench.data, tmp_path / "copy"))
    bench.kill()
    back = Bench(restored(tmp_path / "copy", f"a@{to}"))
    challenger = found(back, "b")
    catch_up(back, challenger)
    assert (challenger.broken, challenger.published.sequence) == ("", to)
    sent = back.create(OTHER, "c")
    for start, stop in ((0, 100), (100, 150), (150, 200)):
        learn(back, sent, start, min(stop, to), 25)
        if stop < min(to + 1, 200):
            back.snapshot(sent)  # as the challenger, which goes on from it
    assert state_of(challenger, ROWS) == state_of(sent, ROWS)
    back.kill()


def test_restore_challenger_at_a_time(pair: tuple[Bench, Model, Model], tmp_path: Path) -> None:
    bench, champion, challenger = pair
    before, moment = state_of(challenger, ROWS), datetime.now(UTC).isoformat()
    time.sleep(0.01)
    learn(bench, champion, 200, 300, 25)
    catch_up(bench, challenger)
    bench.snapshot(challenger)
    late = follow(bench, champion, name="late")
    done(run_command("backup", "--data", bench.data, tmp_path / "copy"))
    bench.kill()
    back = Bench(restored(tmp_path / "copy", moment))
    challenger = found(back, "b")
    catch_up(back, challenger)
    assert challenger.published.sequence == 200
    assert state_of(challenger, ROWS) == before
    assert back.writer.models.get(late.name) is None
    back.kill()


def test_export_warns_of_missing_samples(pair: tuple[Bench, Model, Model], tmp_path: Path) -> None:
    bench = pair[0]
    bench.kill()
    to = tmp_path / "b.model"
    told = run_command("snapshot", "export", "--data", bench.data, "b", "--output", to)
    assert "at sequence 150" in told.output
    assert "follows another model, whose log goes on to 200" in told.output


def test_champion_is_deleted_after_challenger(pair: tuple[Bench, Model, Model]) -> None:
    bench = pair[0]
    bench.kill()
    with pytest.raises(DirectoryModelError, match="'b' learns from the log of 'a'"):
        delete(bench.data, "a")
    delete(bench.data, "b")
    delete(bench.data, "a")
