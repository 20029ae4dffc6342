"""Columns of mixed kinds, which change: one log makes one state, however it comes."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from wolfstream.service.files.roles import Roles
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.saved_rows import preparing, restored_rows, saved_rows
from wolfstream.service.samples.record import as_recorded, from_record, to_record
from wolfstream.service.samples.validation import Samples, read_samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.web.formats.flat_rows import with_roles
from wolfstream.service.web.formats.wire import format_of_body
from wolfstream.solver.prepare import named_rows, row_form
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.named_rows import Rows, n_rows
from wolfstream.solver.prepare.schema import SETTLING
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.stream.rows import StreamRows, StreamSamples

PREPARE = read_spec({}).prepare
WORDS = ["paid", "gift", "card", "shop", "hotel", "late", "night", "ÅNGSTRÖM", "don't"]
KINDS: dict[str, Callable[[Random], Any]] = {
    "number": lambda r: round(r.gauss(10.0, 5.0), 2),
    "heavy tails": lambda r: round(r.lognormvariate(4, 2), 2),
    "code": lambda r: r.randrange(7),
    "digits": lambda r: f"{r.randrange(1000):03d}",
    "money": lambda r: f"${r.lognormvariate(4, 2):,.2f}",
    "size": lambda r: f"{r.randrange(1, 64)}GB",
    "engine": lambda r: (
        f"{r.randrange(90, 400)}.0HP {r.randrange(10, 60) / 10}L V{r.choice('468')}"
    ),
    "boolean": lambda r: r.choice(["yes", "No", "TRUE", "false"]),
    "time": lambda r: f"2025-0{r.randrange(1, 10)}-1{r.randrange(10)}T0{r.randrange(10)}:30:00Z",
    "open date": lambda r: f"{r.randrange(1, 13)}/{r.randrange(1, 13)}/2025",
    "date": lambda r: f"{r.randrange(1, 29)}/{r.randrange(1, 13)}/2025",
    "category": lambda r: r.choice(["red", "green", "blue"]),
    "text": lambda r: " ".join(r.choices(WORDS, k=r.randrange(3, 9))),
    "identifier": lambda r: f"user{r.randrange(10**9)}",
    "missing": lambda r: r.choice([None, "", "n/a"]),
}


class Made(NamedTuple):
    """A column that is made: of one kind, then of another; begins: its first row."""

    before: str
    after: str
    change: int
    begins: int
    missing: float

    def value(self, i: int, random: Random) -> Any:
        """Return the value of row i."""
        if i < self.begins or random.random() < self.missing:
            return None
        return KINDS[self.before if i < self.change else self.after](random)


PLACES = st.sampled_from([0, 1, 5, 60, 127, 128, 150, 10_000])
SHOWN = [f"columns_{name}" for name in ("missing", "low", "high", "bits", "unread_run", "revised")]
COLUMNS = st.lists(
    st.builds(
        Made,
        st.sampled_from([*KINDS]),
        st.sampled_from([*KINDS]),
        PLACES,
        st.sampled_from([0, 0, 0, 3, 130]),
        st.sampled_from([0.0, 0.1]),
    ),
    min_size=1,
    max_size=3,
)
SEEDS = st.integers(0, 10**6)


def rows_of(columns: Sequence[Made], seed: int, n: int = 180) -> list[dict[str, Any]]:
    random = Random(seed)
    rows = list[dict[str, Any]]()
    for i in range(n):
        row = {f"c{k}": column.value(i, random) for k, column in enumerate(columns)}
        rows.append({**row, "always": random.random()})
    return rows


def without_missing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the names whose values are missing, as somebody may who makes JSON."""
    return [{name: x for name, x in row.items() if x is not None} for row in rows]


def samples(rows: list[dict[str, Any]]) -> Samples:
    y = ["a" if row["always"] > 0.5 else "b" for row in rows]
    return as_recorded(read_samples({"x": rows, "y": y}, prepared=True))


def blocks_of(given: Samples, sizes: Sequence[int]) -> Iterator[Samples]:
    start, k = 0, 0
    while start < len(given.y):
        stop = min(start + sizes[k % len(sizes)], len(given.y))
        yield given.part(start, stop)
        start, k = stop, k + 1


def learned(
    blocks: Iterator[Samples], *, restarts: bool = False
) -> tuple[StreamRows, list[HeadRows]]:
    """Return the rows after these blocks, and what heads have learned of them.

    restarts: whether a snapshot is taken and restored after each block.
    """
    rows, seen = StreamRows(preparing(PREPARE)), list[HeadRows]()

    def learn_anew() -> None:
        seen[:] = [rows.head_rows(part.X) for part in rows.first]

    for block in blocks:
        for _, of_part in rows.settling(StreamSamples("adaptive", *block), learn_anew):
            seen.append(of_part)
        if restarts:
            plain, arrays = saved_rows(rows)
            rows = restored_rows(PREPARE, json.loads(json.dumps(plain)), arrays)
    return rows, seen


def _rows_and_codes(seen: list[HeadRows]) -> tuple[Any, Any]:
    """Return all rows as heads see them, and their codes, in as many columns as most have.

    Rows have columns of words from the block on that has the first ones.
    """
    width = max(0 if part.codes is None else part.codes.shape[1] for part in seen)
    codes = list[Any]()
    for part in seen:
        wide = np.full((len(part.X), width), np.nan)
        if part.codes is not None:
            wide[:, : part.codes.shape[1]] = part.codes
        codes.append(wide)
    return np.concatenate([part.X for part in seen]), np.concatenate(codes)


def assert_alike(
    one: tuple[StreamRows, list[HeadRows]],
    other: tuple[StreamRows, list[HeadRows]],
    *,
    state: bool = True,
) -> None:
    (rows, seen), (other_rows, other_seen) = one, other
    for ours, theirs in zip(_rows_and_codes(seen), _rows_and_codes(other_seen), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    if not state:
        return
    (plain, arrays), (other_plain, other_arrays) = saved_rows(rows), saved_rows(other_rows)
    # What is only shown of columns may depend on blocks.
    assert json.dumps(plain | {"columns": None}) == json.dumps(other_plain | {"columns": None})
    for name in arrays.keys() & other_arrays.keys() - {"first", *SHOWN}:
        assert arrays[name].tobytes() == other_arrays[name].tobytes(), name


@given(COLUMNS, SEEDS, st.lists(st.sampled_from([1, 2, 3, 30, 64, 100]), min_size=1, max_size=3))
def test_blocks_and_restarts_change_nothing(columns: list[Made], seed: int, sizes: list[int]):
    given_samples = samples(without_missing(rows_of(columns, seed)))
    whole = learned(iter([given_samples]))
    assert_alike(whole, learned(blocks_of(given_samples, sizes)))
    assert_alike(whole, learned(blocks_of(given_samples, sizes), restarts=True))


@given(COLUMNS, SEEDS)
def test_the_log_makes_the_same_rows_again(columns: list[Made], seed: int):
    given_samples = samples(without_missing(rows_of(columns, seed)))
    blocks = [*blocks_of(given_samples, [17])]
    replayed = (from_record(to_record(block)) for block in blocks)
    assert_alike(learned(iter(blocks)), learned(replayed))


FORMATS: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "text/csv": lambda rows: "\n".join(
        ",".join(f'"{"" if x is None else x}"' for x in row)
        for row in [list(rows[0]), *(row.values() for row in rows)]
    ),
    "application/json": json.dumps,
    "application/x-ndjson": lambda rows: "\n".join(map(json.dumps, rows)),
}


@given(COLUMNS, SEEDS)
def test_csv_json_and_ndjson_are_the_same(columns: list[Made], seed: int):
    # In a CSV file, digits are a number.
    columns = [column for column in columns if "digits" not in column[:2]]
    rows = rows_of(columns, seed)
    for row in rows:
        row["label"] = "a" if row["always"] > 0.5 else "b"
    found = list[tuple[StreamRows, list[HeadRows]]]()
    roles = Roles("label", None, None)
    for media_type, body in FORMATS.items():
        fields = format_of_body(media_type, True, roles).decode(body(rows).encode(), BOUNDS)
        fields = fields if hasattr(fields, "origin") else with_roles(fields, roles, True)
        read = as_recorded(read_samples(fields, prepared=True))
        found.append(learned(iter([read])))
    assert_alike(found[1], found[2])
    assert_alike(found[0], found[1], state=False)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_whole_learner_replays_and_restarts(seed: int):
    columns = [
        Made("money", "category", 140, 0, 0.1),
        Made("text", "number", 150, 0, 0.0),
        Made("date", "date", 0, 130, 0.1),
        Made("missing", "boolean", 40, 0, 0.0),
    ]
    blocks = [*blocks_of(samples(without_missing(rows_of(columns, seed))), [33])]
    spec = read_spec({"working_set": None, "asset": {"dimension": 16}, "serve": "adaptive"})
    live, replayed = (Learner(Model(1, "mixed", spec)) for _ in range(2))
    for k, block in enumerate(blocks):
        live.absorb("asset", from_record(to_record(block)))
        replayed.absorb("asset", from_record(to_record(block)))
        if k == 2:
            for each in (live, replayed):
                each.go_on_from(each.checkpoint())
            restarted = Learner(Model(1, "mixed", spec))
            restarted.restore(*live.state())
            replayed = restarted
    (plain, arrays), (other_plain, other_arrays) = live.state(), replayed.state()
    assert json.dumps(plain, default=str) == json.dumps(other_plain, default=str)
    assert all(arrays[name].tobytes() == other_arrays[name].tobytes() for name in arrays)


@pytest.mark.parametrize("sizes", [[180], [160, 20], [1]])
def test_dates_keep_order_until_shown(sizes: list[int]):
    rows = [{"when": "03/01/2025", "always": i / 200} for i in range(180)]
    rows[150]["when"] = "13/03/2025"
    _, seen = learned(blocks_of(samples(rows), sizes))
    _, expected = learned(blocks_of(samples(rows), [150, 1, 29]))
    assert _rows_and_codes(seen)[0].tobytes() == _rows_and_codes(expected)[0].tobytes()


@pytest.mark.parametrize("sizes", [[300], [100], [299, 1]])
def test_examples_are_of_the_first_256_rows(sizes: list[int]):
    rows = [{"size": "small" if i < 256 else "large", "always": i / 300} for i in range(300)]
    found, _ = learned(blocks_of(samples(rows), sizes))
    view = found.facts.view()
    assert view.examples[0] == ("small",)
    assert view.distinct(0) == 2


@pytest.mark.parametrize("first", ["2025-03-01 04:12", "03/01/2025"])
def test_rows_of_a_settled_table_are_converted_once_to_be_learned(
    first: str, monkeypatch: pytest.MonkeyPatch
):
    rows = [{"when": first, "always": i / 200} for i in range(SETTLING + 9)]
    stream, _ = learned(blocks_of(samples(rows[:SETTLING]), [SETTLING]))
    convert, calls = named_rows.cells, list[int]()

    def counting(rows: Rows) -> Cells:
        if not isinstance(rows, Cells):
            calls.append(n_rows(rows))
        return convert(rows)

    monkeypatch.setattr(row_form, "cells", counting)
    for part in blocks_of(samples(rows[SETTLING:]), [9]):
        list(stream.settling(StreamSamples("asset", *part), lambda: None))
    assert calls == [9]
