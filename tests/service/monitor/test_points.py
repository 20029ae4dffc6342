"""The file of numbers: bounded, of the models that exist, and never a reason not to start."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.monitor.conftest import SideFiles
from wolfstream.service.monitor import points
from wolfstream.service.monitor.points import Point, Points
from wolfstream.service.monitor.side_file import SideFile

Opened = Callable[[Path], tuple[SideFile, Points]]


@pytest.fixture
def opened(side_file: SideFiles) -> Opened:
    """Opens the numbers of a folder, and says in which file they are."""

    def open_one(folder: Path) -> tuple[SideFile, Points]:
        file = side_file(folder)
        return file, Points(file)

    return open_one


def test_numbers_come_back_by_their_names(tmp_path: Path, opened: Opened):
    _, kept = opened(tmp_path)
    kept.write([Point(1, 1000, {"a": 1.5}), Point(2, 1000, {"a": 9.0})], [1, 2])
    kept.write([Point(1, 2000, {"a": None, "b": 3})], [1, 2])
    assert kept.read(1) == {"time": [1.0, 2.0], "a": [1.5, None], "b": [None, 3]}
    assert kept.read(3) == {"time": []}


def test_the_oldest_of_too_many_are_forgotten(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(points, "MAX_PER_MODEL", 5)
    _, kept = opened(tmp_path)
    for i in range(20):
        kept.write([Point(1, i, {"n": i})], [1])
    assert kept.read(1)["n"] == list(range(15, 20))


def test_points_of_a_fast_clock_are_forgotten(tmp_path: Path, opened: Opened):
    _, kept = opened(tmp_path)
    for time_ms in (1_000, 9_000_000, 2_000):
        kept.write([Point(1, time_ms, {"n": time_ms}), Point(2, 1, {})], [1, 2])
    assert kept.read(1) == {"time": [1.0, 2.0], "n": [1_000, 2_000]}
    assert kept.read(2) == {"time": [0.001]}


def test_all_models_together_are_bounded(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(points, "_MAX_POINTS", 10)
    monkeypatch.setattr(points, "_WRITES", 1)
    _, kept = opened(tmp_path)
    for i in range(20):
        kept.write([Point(i, i, {"n": i})], range(20))
    assert [i for i in range(20) if kept.read(i)["time"]] == list(range(10, 20))


def test_a_model_that_is_gone_is_forgotten(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(points, "_WRITES", 1)
    _, kept = opened(tmp_path)
    kept.write([Point(1, 1, {}), Point(2, 1, {})], [1, 2])
    kept.write([], [2])
    assert kept.read(1) == {"time": []}
    assert kept.read(2) == {"time": [0.001]}


@pytest.mark.parametrize("content", [b"no database at all", b"SQLite format 3\0" + b"\1" * 4096])
def test_a_damaged_file_is_set_aside(tmp_path: Path, opened: Opened, content: bytes):
    path = tmp_path / "monitor.sqlite"
    path.write_bytes(content)
    file, kept = opened(tmp_path)
    kept.write([Point(1, 1, {"n": 1})], [1])
    assert kept.read(1)["n"] == [1]
    (aside,) = tmp_path.glob("monitor.sqlite.aside-*")
    assert aside.read_bytes() == content
    file.close()


def test_without_a_file_there_are_no_numbers(tmp_path: Path, opened: Opened):
    file, kept = opened(tmp_path / "missing")
    kept.write([Point(1, 1, {"n": 1})], [1])
    assert kept.read(1) == {"time": []}
    file.close()
    assert kept.read(1) == {"time": []}


def test_a_file_that_another_holds_costs_these_numbers_only(tmp_path: Path, opened: Opened):
    file, kept = opened(tmp_path)
    kept.write([Point(1, 1, {"n": 1})], [1])
    other = sqlite3.connect(tmp_path / "monitor.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    kept.write([Point(1, 2, {"n": 2})], [1])
    other.execute("ROLLBACK")
    other.close()
    kept.write([Point(1, 3, {"n": 3})], [1])
    assert kept.read(1)["n"] == [1, 3]
    file.close()
