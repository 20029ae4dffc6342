"""The version of the numerics is raised whenever models compute other bits."""

from pathlib import Path

import pytest

from tests.service import saved_names
from tests.service.numerics import computed, record
from tests.service.streams import two_classes
from tests.service.writer_bench import Bench
from wolfstream.service.recovery import replay
from wolfstream.service.spec import stored

_HOW = "raise NUMERICS in service/spec/stored.py, then run python -m tests.service.numerics"


def test_bits_are_those_of_the_numerics() -> None:
    recorded = record()
    assert recorded["numerics"] == stored.NUMERICS, "run python -m tests.service.numerics"
    if recorded["origin"] != replay.present_origin():
        pytest.skip(f"recorded elsewhere: {replay.origin_difference(recorded['origin'])}")
    now = computed()
    changed = [name for name in now if now[name] != recorded["streams"].get(name)]
    assert not changed, f"{changed} compute other bits: {_HOW}"


def test_numbers_are_those_of_the_numerics_elsewhere_too() -> None:
    """Rounding may move a prediction beyond a border here and there, but not many of them."""
    now, recorded = computed(), record()["streams"]
    for name, one in recorded.items():
        for head, sums in one["recent"].items():
            assert now[name]["recent"][head] == pytest.approx(sums, rel=0.05, abs=3.0), (name, _HOW)


def test_names_in_saved_states_are_those_that_were_recorded() -> None:
    """Files of users have them; each is looked for in the state of each kind of learner."""
    now, recorded = saved_names.computed(), saved_names.record()
    gone = {stream: sorted(recorded[stream] - now.get(stream, set())) for stream in recorded}
    new = {stream: sorted(now[stream] - recorded.get(stream, set())) for stream in now}
    assert not any(gone.values()), (
        f"saved states lack these names now: {_first_of(gone)}, and have {_first_of(new)}. "
        "Snapshots and model files of users have the old ones: go on reading them where the head "
        "is restored (before the first release, leave that out), then run "
        "python -m tests.service.saved_names"
    )
    assert not any(new.values()), (
        f"saved states have new names: {_first_of(new)}. Files of users lack them: restore a state "
        "without them (before the first release, leave that out), then run "
        "python -m tests.service.saved_names"
    )


def _first_of(names: dict[str, list[str]]) -> dict[str, list[str]]:
    """Some names of the first two streams that have any."""
    some = {stream: listed[:8] for stream, listed in names.items() if listed}
    return dict(list(some.items())[:2])


@pytest.mark.parametrize("snapshot", [False, True])
def test_an_upgrade_that_changes_bits_says_so(
    tmp_path: Path,
    snapshot: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(tmp_path)
    model = bench.create({"asset": None})
    bench.create({"asset": None}, "empty")
    bench.learn(model, two_classes(10))
    if snapshot:
        bench.snapshot(model)
    bench = bench.restarted()
    assert [one.describe()["notice"] for one in bench.writer.models.all()] == [None, None]
    monkeypatch.setattr(stored, "NUMERICS", stored.NUMERICS + 1)
    later = {**replay.present_origin(), "numerics": stored.NUMERICS}
    monkeypatch.setattr(replay, "present_origin", lambda: later)
    bench = bench.restarted()
    notices = {one.name: one.describe()["notice"] for one in bench.writer.models.all()}
    was = f"numerics {stored.NUMERICS - 1} (now {stored.NUMERICS})"
    assert notices["empty"] is None
    assert was in notices["m"]
    assert was in caplog.text
    bench.close()
