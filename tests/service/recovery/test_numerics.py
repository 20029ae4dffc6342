"""The version of the numerics is raised whenever models compute other bits."""

from pathlib import Path

import pytest

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
