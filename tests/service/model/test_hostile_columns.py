"""Columns that nobody sends in good faith: a clear refusal or a stated reading, in bounded time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.service.model.test_tables import learn, learner_of, samples
from wolfstream.service.errors import InvalidSamples
from wolfstream.service.samples.validation import read_samples
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.prepare.schema import RUN, SETTLING
from wolfstream.solver.stream.rows import StreamRows, StreamSamples

Row = dict[str, Any]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if what is done takes more processor time."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def described(rows: list[Row], block: int = 64) -> dict[str, Row]:
    """Return what a model says of its columns once it has learned these rows."""
    learner = learner_of()
    learn(learner, samples(rows, [("a", "b")[i % 2] for i in range(len(rows))]), block)
    return {column["name"]: column for column in learner.model.describe()["columns"]}


@pytest.mark.parametrize(("value", "told"), [("red", "at most 256"), (1.0, "more than 1000")])
def test_ten_thousand_columns_are_refused(value: Any, told: str):
    rows: list[Row] = [{f"c{j}": value for j in range(10_000)} for _ in range(4)]
    learner = learner_of()
    with within(10.0), pytest.raises(InvalidSamples) as caught:
        learn(learner, samples(rows, ["a", "b"] * 2))
    assert told in str(caught.value) + str(caught.value.errors)
    assert learner.sequence == 0


def test_of_texts_of_a_megabyte_the_beginning_is_read():
    rows = [{"note": "word " * 200_000 + str(i), "size": float(i)} for i in range(40)]
    with within(20.0):
        note = described(rows)["note"]
    assert note["kind"] == "text"
    assert all(len(example) <= 40 for example in note["examples"])


def test_a_long_text_that_stays_the_same_has_no_range():
    note = described([{"note": "x" * 10**6, "size": float(i)} for i in range(40)])["note"]
    assert (note["kind"], note["range"]) == ("constant", None)


@pytest.mark.parametrize("row", [{"no\ud800te": 1.0}, {"note": "a\udfff"}])
def test_surrogates_are_refused(row: Row):
    with pytest.raises(InvalidSamples):
        read_samples({"x": [row], "y": ["a"]}, prepared=True)


def test_dates_of_the_years_0_and_9999():
    dates = ["0000-01-01", "9999-12-31T23:59:59Z", "2025-01-01", "0001-01-01T00:00:00+14:00"]
    when = described([{"when": dates[i % 4], "size": float(i)} for i in range(140)])["when"]
    assert (when["kind"], when["missing"]) == ("time", 0.0)
    assert when["range"] == [-62_167_219_200.0, "9999-12-31T23:59:59Z"]  # no date has year 0


def test_zones_that_are_mixed_are_one_time():
    noon = ["2025-03-01T12:00:00Z", "2025-03-01T14:00:00+02:00", "2025-03-01 12:00:00"]
    noon.append("2025-03-01T07:00:00-0500")
    when = described([{"when": noon[i % 4], "size": float(i)} for i in range(140)])["when"]
    assert (when["kind"], when["missing"]) == ("time", 0.0)
    assert when["range"] == ["2025-03-01T12:00:00Z"] * 2


CHANGING = 64


def learned_in_a_block(changes: Callable[[int], int]) -> tuple[int, StreamRows]:
    """Learn columns of categories, then a block in which column k has numbers from a row on.

    changes: that row by k. Returns the calls of functions for the block, and what was learned.
    """

    def samples_of(stop: int, *, settled: bool) -> StreamSamples:
        rows = [
            {
                f"c{k}": i / 7 if settled and i >= changes(k) else ("red", "green", "blue")[i % 3]
                for k in range(CHANGING)
            }
            for i in range(stop)
        ]
        return StreamSamples("adaptive", *samples(rows, [("a", "b")[i % 2] for i in range(stop)]))

    stream = StreamRows(PreparationParameters())
    list(stream.settling(samples_of(SETTLING, settled=False), lambda: None))
    block = samples_of(CHANGING + 2 * RUN, settled=True)
    return calls_of(lambda: list(stream.settling(block, lambda: None))), stream


def calls_of(action: Callable[[], object]) -> int:
    """Return how many functions are called."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def test_scattered_changes_cost_no_more():
    together, _ = learned_in_a_block(lambda _: 0)
    apart, stream = learned_in_a_block(lambda k: k)
    assert apart < 1.1 * together
    assert apart < 5 * CHANGING * (CHANGING + 2 * RUN)  # for each cell, of which some are words
    assert stream.facts.view().revised.tolist() == [SETTLING + k + RUN for k in range(CHANGING)]
