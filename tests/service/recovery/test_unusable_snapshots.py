"""Snapshots that are what was written, and that this version of the program cannot use."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.service.specs import read_papers_spec
from tests.service.streams import part, two_classes
from tests.service.writer_bench import Bench, state_of
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import load_content
from wolfstream.service.storage import snapshot_files
from wolfstream.service.storage.snapshot_format import (
    State,
    encode_state,
    read_state,
    write_content,
    write_state,
)

Change = Callable[[State], State]

SPEC = {"working_set": {"max_size": 20}, "asset": None}
SAMPLES = two_classes(60)


def without_array(state: State) -> State:
    """A state of a version whose set had no array `gradient`."""
    arrays = dict(state.arrays)
    del arrays["working_set.gradient"]
    return state._replace(arrays=arrays)


def with_renamed_array(state: State) -> State:
    arrays = dict(state.arrays)
    arrays["working_set.gradients"] = arrays.pop("working_set.gradient")
    return state._replace(arrays=arrays)


def with_shorter_array(state: State) -> State:
    """Compiled code would read past its end."""
    arrays = dict(state.arrays)
    arrays["working_set.gradient"] = arrays["working_set.gradient"][:1]
    return state._replace(arrays=arrays)


def with_unknown_spec(state: State) -> State:
    return state._replace(plain={**state.plain, "spec": {"working_set": {"size": 20}}})


def without_head(state: State) -> State:
    return state._replace(plain={**state.plain, "heads": {}})


def with_heads_as_a_list(state: State) -> State:
    return state._replace(plain={**state.plain, "heads": []})


OTHER_VERSIONS = [
    without_array,
    with_renamed_array,
    with_shorter_array,
    with_unknown_spec,
    without_head,
    with_heads_as_a_list,
]


@pytest.fixture(params=OTHER_VERSIONS, ids=lambda changed: changed.__name__)
def changed(request: pytest.FixtureRequest) -> Change:
    change: Change = request.param
    return change


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """With a model of 10 samples and another one of 5; a test that restarts it closes the rest."""
    bench = Bench(tmp_path / "data")
    learn(bench, bench.create(SPEC), 0, 10)
    learn(bench, bench.create(SPEC, "other"), 0, 5)
    yield bench
    bench.storage.close()


def learn(bench: Bench, model: Model, start: int, stop: int) -> None:
    for i in range(start, stop, 5):
        bench.learn(model, part(SAMPLES, i, i + 5))


def model_in(bench: Bench, name: str = "m") -> Model:
    model = bench.writer.models.get(name)
    assert model is not None
    return model


def rewritten(bench: Bench, changed: Change, sequences: list[int]) -> list[Path]:
    """Some snapshots of the model, as another version had written them."""
    names = [bench.storage.snapshots.name(1, sequence) for sequence in sequences]
    paths = [Path(name) for name in names]
    for path in paths:
        write_state(path, changed(read_state(path)))
    return paths


def snapshots_at(bench: Bench, *sequences: int) -> None:
    """Let the model learn up to each of these sequences, and save a snapshot there."""
    model = model_in(bench)
    for sequence in sequences:
        learn(bench, model, model.published.sequence, sequence)
        assert bench.snapshot(model) == sequence


def files(bench: Bench) -> set[str]:
    return {path.name for path in (bench.data / "snapshots" / "1").iterdir()}


def test_the_one_before_and_the_log_replace_it(
    bench: Bench, changed: Change, caplog: pytest.LogCaptureFixture
):
    snapshots_at(bench, 10, 20, 30)
    learn(bench, model_in(bench), 30, 40)
    expected = state_of(model_in(bench), SAMPLES.X)
    (newest,) = rewritten(bench, changed, [30])
    with caplog.at_level(logging.WARNING):
        bench = bench.restarted()
    model = model_in(bench)
    assert (model.broken, model.published.sequence) == ("", 40)
    assert state_of(model, SAMPLES.X) == expected
    assert f"snapshot set aside: model=m snapshot={newest}" in caplog.text
    assert "sequences 30" in model.notice
    assert not newest.exists()
    assert newest.with_suffix(".of-another-version").exists()
    assert bench.storage.snapshots.sequences(1) == [20, 10]
    assert bench.learn(model, part(SAMPLES, 40, 45))["sequence"] == 45


def test_the_whole_log_replaces_the_only_one(bench: Bench, changed: Change):
    snapshots_at(bench, 20)
    learn(bench, model_in(bench), 20, 30)
    expected = state_of(model_in(bench), SAMPLES.X)
    rewritten(bench, changed, [20])
    bench = bench.restarted()
    model = model_in(bench)
    assert (model.broken, model.published.sequence) == ("", 30)
    assert state_of(model, SAMPLES.X) == expected
    assert bench.storage.snapshots.sequences(1) == []
    snapshots_at(bench, 35)
    assert model_in(bench.restarted()).published.sequence == 35


def test_model_without_usable_state_is_broken(bench: Bench, changed: Change):
    snapshots_at(bench, 20, 30, 40)  # the log before the one before is dropped
    rewritten(bench, changed, [20, 30, 40])
    before = files(bench)
    bench = bench.restarted()
    model = model_in(bench)
    assert f"{40:020d}.snapshot is undamaged and has no state of this version" in model.broken
    assert "start the version that wrote it" in model.broken
    assert files(bench) == before
    other = model_in(bench, "other")
    assert bench.learn(other, part(SAMPLES, 5, 10))["sequence"] == 10


def test_of_an_upload_the_model_is_broken(bench: Bench):
    """Its log does not begin with its first sample."""
    state = State(*bench.writer.models.learner(model_in(bench)).state())
    uploaded = bench.writer.new_models.add("up", load_content(b"".join(encode_state(state)), "it"))
    path = Path(bench.storage.snapshots.name(uploaded[0].id, 10))
    write_state(path, without_array(read_state(path)))
    bench = bench.restarted()
    assert "has no state of this version" in model_in(bench, "up").broken
    assert path.exists()


def test_of_a_rollback_the_model_is_broken(
    bench: Bench, changed: Change, monkeypatch: pytest.MonkeyPatch
):
    """What came before the rollback is another history."""
    snapshots_at(bench, 20, 30)
    bench.writer.history.roll_back(model_in(bench), 20)
    (pinned,) = (bench.data / "snapshots" / "1").glob("*.pinned")
    write_content(pinned, *encode_state(changed(read_state(pinned))))
    monkeypatch.setattr(snapshot_files, "matches_pinned_name", lambda *_: True)
    bench = bench.restarted()
    assert "the state that it was rolled back to" in model_in(bench).broken
    assert "start the version that wrote it" in model_in(bench).broken
    assert pinned.exists()
    other = model_in(bench, "other")
    assert bench.learn(other, part(SAMPLES, 5, 10))["sequence"] == 10


def test_a_newer_one_than_a_rollback_gives_way_to_it(bench: Bench, changed: Change):
    snapshots_at(bench, 20, 30)
    bench.writer.history.roll_back(model_in(bench), 20)
    snapshots_at(bench, 40)
    expected = state_of(model_in(bench), SAMPLES.X)
    rewritten(bench, changed, [40])
    bench = bench.restarted()
    model = model_in(bench)
    assert (model.broken, model.published.sequence) == ("", 40)
    assert state_of(model, SAMPLES.X) == expected


def test_a_challenger_goes_back_to_the_one_before(bench: Bench, changed: Change):
    champion = model_in(bench)
    challenger = bench.writer.challengers.make(
        "c", champion, read_papers_spec({"working_set": {"max_size": 9}, "asset": None}), "empty"
    )[0]
    for end in (20, 30):
        learn(bench, champion, end - 10, end)
        bench.writer.challengers.catch_up(challenger)
        assert bench.snapshot(challenger) == end
    path = Path(bench.storage.snapshots.name(challenger.id, 30))
    write_state(path, changed(read_state(path)))
    bench = bench.restarted()
    challenger = model_in(bench, "c")
    assert (challenger.broken, challenger.snapshot_sequence) == ("", 20)
    bench.writer.challengers.catch_up(challenger)
    assert challenger.published.sequence == 30
