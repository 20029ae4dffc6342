"""Snapshots say where they were made, and a replay elsewhere says that bits may differ."""

from pathlib import Path

import pytest

from tests.service.streams import two_classes
from tests.service.writer_bench import Bench
from wolfstream.service.recovery import replay


def replayed(data: Path) -> Bench:
    bench = Bench(data)
    model = bench.create({"asset": None})
    bench.learn(model, two_classes(10))
    bench.snapshot(model)
    bench.learn(model, two_classes(5, 1))
    return bench.restarted()


@pytest.mark.parametrize("part", ["numerics", "numpy", "numba", "processor"])
def test_a_replay_elsewhere_says_so(
    tmp_path: Path,
    part: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with monkeypatch.context() as patch:
        elsewhere = {**replay.present_origin(), part: "another"}
        patch.setattr(
            "wolfstream.service.engine.snapshot_schedule.present_origin", lambda: elsewhere
        )
        bench = replayed(tmp_path)
    (model,) = bench.writer.models.all()
    assert f"was made with {part} another (now " in model.describe()["notice"]
    assert "may differ from earlier ones in the last bits" in caplog.text
    bench.snapshot(model)
    bench = bench.restarted()
    (model,) = bench.writer.models.all()
    assert model.describe()["notice"] is None
    bench.close()


def test_one_at_the_same_place_does_not(tmp_path: Path) -> None:
    bench = replayed(tmp_path)
    (model,) = bench.writer.models.all()
    assert (model.published.sequence, model.describe()["notice"]) == (15, None)
    bench.close()


def test_the_processor_is_named() -> None:
    assert replay.present_origin()["processor"]
