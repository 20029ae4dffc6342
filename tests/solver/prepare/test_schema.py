"""Tables: which columns there are, how they settle, what is refused, what is learned of a row."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare import table_rows
from wolfstream.solver.prepare.cells import (
    MOMENT_COLUMNS,
    Cells,
    cells_of_numbers,
    cells_of_rows,
    code_of,
    joined,
)
from wolfstream.solver.prepare.columns import Preparation, own_codes
from wolfstream.solver.prepare.schema import (
    MOST_LATE,
    RUN,
    SETTLING,
    Misfit,
    Schema,
    layout,
    schema_from_plain,
    settled_numbers,
)
from wolfstream.solver.prepare.settling import (
    MOST_COLUMNS,
    MOST_SLOTS_IN_ALL,
    _run_lengths,
    schema_after_first,
)
from wolfstream.solver.prepare.table_rows import TableRows

ROOMS = [{"warmth": 20.5, "room": "hall"}, {"warmth": 18, "room": "attic"}]


def encode(schema: Schema, cells: Cells) -> Float64Array:
    return table_rows.encode(TableRows(schema, cells))


def encoded_words(schema: Schema, cells: Cells) -> Float64Array | None:
    return table_rows.encoded_words(TableRows(schema, cells))


def check(schema: Schema, cells: Cells) -> None:
    table_rows.check(TableRows(schema, cells))


def after(*rows, schema=None) -> Schema:
    found = schema_after_first(schema or Schema(), cells_of_rows(rows))
    assert found is not None
    return found


def settled(*rows) -> Schema:
    return after(*(list(rows) * SETTLING)[:SETTLING])


def kinds(schema):
    return {column.name: column.reading.kind for column in schema.columns}


def moments(*names) -> Schema:
    return Schema(fixed=tuple((name, "time") for name in names))


def test_columns_are_what_their_values_are():
    schema = after({"a": 1, "b": "x", "c": True, "d": None}, {"a": 2, "b": "y", "c": 0, "d": 1})
    assert kinds(schema) == {"a": "number", "b": "category", "c": "number", "d": "number"}
    mixed = after({"a": 1}, {"a": "oops"})
    assert (mixed.columns[0].number, mixed.columns[0].texts) == (True, ("oops",))


def test_the_reasons_for_kinds_count_all_values_that_were_judged():
    rows = [{"size": f"{k},5", "room": ("hall", "bath")[k % 2], "x": 1.0} for k in range(SETTLING)]
    size, room, _ = after(*rows).columns
    assert size.reading.why == "128 of 128 values are numbers"
    assert room.reading.why == "2 of the first 128 values differ"


def test_the_order_of_names_does_not_matter():
    schema = after(*ROOMS)
    turned = [dict(reversed(row.items())) for row in ROOMS]
    np.testing.assert_array_equal(
        encode(schema, cells_of_rows(ROOMS)), encode(schema, cells_of_rows(turned))
    )
    np.testing.assert_array_equal(encode(schema, cells_of_rows(ROOMS)), [[20.5, 0.0], [18.0, 1.0]])


def test_an_absent_name_and_null_are_missing():
    schema = after(*ROOMS)
    for row in (
        {"room": "hall"},
        {"warmth": None, "room": "hall"},
        {"warmth": np.nan, "room": "hall"},
    ):
        np.testing.assert_array_equal(encode(schema, cells_of_rows([row])), [[np.nan, 0.0]])
    np.testing.assert_array_equal(encode(schema, cells_of_rows([{}])), [[np.nan, np.nan]])


@pytest.mark.parametrize("first", [1, SETTLING])
def test_an_unknown_name_is_refused_with_the_one_that_is_close(first):
    schema = after(*[{"warmth": 1, "humidity": 2}] * first, schema=Schema(names_are="strict"))
    with pytest.raises(Misfit) as refused:
        schema_after_first(
            schema, cells_of_rows([{"warmth": 1, "humidity": 2}, {"warmt": 1, "humidity": 2}])
        )
    assert (refused.value.row, refused.value.name) == (1, "warmt")
    assert "did you mean 'warmth'" in refused.value.full_detail()
    assert "it has warmth, humidity" in refused.value.full_detail(suggest=False)


def test_new_names_late_once_settled():
    schema = after({"a": 1}, {"a": 1, "b": 2})
    assert schema.names == ("a", "b")
    late = after({"a": 1, "b": 2, "c": 3}, schema=settled({"a": 1, "b": 2}))
    assert (late.names, late.late) == (("a", "b"), ("c",))
    assert layout(late) == layout(settled({"a": 1, "b": 2}))


def test_so_many_late_names_are_learned_and_no_more():
    row = {"a": 1, **{f"n{k}": k for k in range(2 * MOST_LATE)}}
    late = after(row, schema=settled({"a": 1}))
    assert late.late == tuple(f"n{k}" for k in range(MOST_LATE))
    assert after({"a": 1, "n": 1}, schema=late).late == late.late


@pytest.mark.parametrize(
    "rows",
    [
        [{"sun": 1}, {"rain": 1, "fog": 1}],
        [{"1": 0.5, "17": 2}],
        [{}],
        [{str(k) + "x": 1 for k in range(MOST_COLUMNS + 1)}],
    ],
)
def test_rows_that_drop_names_and_bring_others_are_sparse(rows):
    assert schema_after_first(Schema(), cells_of_rows(rows)) is None


@pytest.mark.parametrize("other", [{"b": "x", "c": 1, "d": 2}, {"b": None, "c": 1, "d": 2}])
def test_rows_with_texts_or_holes_are_never_sparse(other):
    with pytest.raises(Misfit):
        schema_after_first(Schema(names_are="strict"), cells_of_rows([{"a": 1}, other]))
    assert after({"a": 1}, other).names == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    "other",
    [
        {f"unknown {k}": k for k in range(30)},
        {"a": 1, "b": 2, **{f"unknown {k}": k for k in range(MOST_COLUMNS)}},
    ],
    ids=["in place of the known", "beside them, too many"],
)
def test_strict_table_refuses_a_row_of_new_names(other):
    with pytest.raises(Misfit):
        schema_after_first(Schema(names_are="strict"), cells_of_rows([{"a": 1, "b": 2}, other]))
    assert schema_after_first(Schema(), cells_of_rows([{"a": 1, "b": 2}, other])) is None


def test_a_strict_table_with_a_header_never_gets_another_column():
    first = cells_of_numbers(("a", "b"), np.ones((1, 2)))
    schema = schema_after_first(Schema(names_are="strict"), first)
    assert schema is not None
    for names in (("a", "b", "c"), ("a", "c")):
        with pytest.raises(Misfit):
            schema_after_first(schema, cells_of_numbers(names, np.ones((1, len(names)))))
    wide = cells_of_numbers(
        tuple(map(str, range(2 * MOST_COLUMNS))), np.ones((1, 2 * MOST_COLUMNS))
    )
    assert schema_after_first(Schema(), wide) is not None


def test_text_in_settled_numbers_missing():
    schema = settled({"a": 1})
    assert encoded_words(schema, cells_of_rows([{"a": 2}])) is None
    later = after({"a": 2}, {"a": "oops"}, schema=schema)
    rows = cells_of_rows([{"a": 2}, {"a": "oops"}, {"a": "n/a"}])
    np.testing.assert_array_equal(encode(later, rows), [[2.0], [np.nan], [np.nan]])
    words = encoded_words(later, rows)
    assert words is not None
    assert (~np.isnan(words)).sum(axis=1).tolist() == [0, 2, 0]


def test_number_in_category_reads_as_text():
    schema = settled({"code": "7a"}, {"code": "8b"}, {"code": "9c"})
    codes = encode(schema, cells_of_rows([{"code": "7a"}, {"code": 7}, {"code": 7.0}]))
    assert codes[0, 0] == 0.0
    assert codes[1, 0] == codes[2, 0] == code_of("7")


def test_a_number_is_the_same_as_its_text():
    schema = settled({"code": "7"}, {"code": 8.0})
    codes = encode(schema, cells_of_rows([{"code": "7"}, {"code": 7}, {"code": " 7.0"}]))
    assert codes.tolist() == [[7.0], [7.0], [7.0]]


def test_categories_are_bounded_in_memory_and_in_columns():
    schema = settled({"id": "user 0"}, {"id": "user 1"})
    many = schema_after_first(schema, cells_of_rows([{"id": f"user {k}"} for k in range(100_000)]))
    assert many is not None
    assert layout(many) == layout(schema)
    assert sum(len(column.texts) for column in many.columns) <= 32
    wide = after({f"c{k}": "text" for k in range(40)})
    assert layout(wide).width <= MOST_SLOTS_IN_ALL


def codes_of(codes, i) -> set[float]:
    return set(codes[i][~np.isnan(codes[i])])


def test_numbers_that_come_late_among_categories_are_learned_by_their_ranges():
    schema = settled({"c": "low"}, {"c": "high"})
    almost = after(*[{"c": 4.25}] * (RUN - 1), schema=schema)
    assert encoded_words(almost, cells_of_rows([{"c": 4.25}])) is None
    again = after({"c": "low"}, *[{"c": 4.25}] * (RUN - 1), schema=almost)
    assert not again.spilled  # a category in between
    later = after({"c": None}, {"c": 5}, schema=again)
    assert later.spilled
    assert schema_from_plain(json.loads(json.dumps(later.plain()))) == later
    codes = encoded_words(later, cells_of_rows([{"c": 4.25}, {"c": 4.26}, {"c": 90}, {"c": "low"}]))
    assert codes is not None
    assert len(codes_of(codes, 0) & codes_of(codes, 1)) == 2
    assert not codes_of(codes, 0) & codes_of(codes, 2)
    assert not codes_of(codes, 3)


def test_a_number_that_is_a_category_stays_one():
    schema = settled({"c": "low"}, {"c": "3"}, {"c": "high"})
    assert not after(*[{"c": 3}, {"c": "3"}] * RUN, schema=schema).spilled


def test_sentences_that_come_late_among_categories_are_learned_by_their_words():
    schema = settled({"c": "red"}, {"c": "light blue"})
    later = after(*[{"c": "The red one, please"}] * RUN, schema=schema)
    assert later.spilled
    assert later.columns[0].texts == schema.columns[0].texts  # no code of its own
    both = cells_of_rows([{"c": "The red one, please"}, {"c": "Give me the red thing"}])
    codes = encoded_words(later, both)
    assert codes is not None
    assert len(codes_of(codes, 0) & codes_of(codes, 1)) >= 2  # "the" and "red"
    # As many words as a category has are a category.
    assert not after(*[{"c": "dark red"}] * RUN, schema=schema).spilled
    names = settled({"c": "New York City"}, {"c": "Rome"})
    assert not after(*[{"c": "Salt Lake City"}] * RUN, schema=names).spilled


@given(st.lists(st.booleans(), max_size=300), st.integers(0, RUN - 1))
def test_runs_are_counted_as_by_a_loop(others: list[bool], run: int):
    lengths = [run]
    for other in others:
        lengths.append(RUN if lengths[-1] == RUN else lengths[-1] + 1 if other else 0)
    found = _run_lengths(np.array(others, np.bool_), run)
    np.testing.assert_array_equal(found, lengths)


@pytest.mark.parametrize("run", [-1, RUN + 1, "3", True, 1.5])
def test_a_saved_run_that_no_rows_make_is_refused(run):
    plain = settled({"c": "low"}, {"c": "high"}).plain()
    plain["columns"][0][5] = run
    with pytest.raises(ValueError, match="no rows change"):
        schema_from_plain(plain)


def test_late_category_takes_free_slot():
    schema = settled({"c": "a"})
    later = schema_after_first(schema, cells_of_rows([{"c": "z"}, {"c": "y"}, {"c": "x"}]))
    assert later is not None
    assert later.columns[0].texts == ("a", "z", "y")
    assert encode(later, cells_of_rows([{"c": "y"}]))[0, 0] == 2.0


def test_blocks_of_any_length_give_the_same_schema():
    random = np.random.default_rng(0)
    rows = [{"a": float(k), "b": f"t{random.integers(200)}"} for k in range(3 * SETTLING)]
    whole = after(*rows)
    for length in (1, 7, 100):
        schema = Schema()
        for start in range(0, len(rows), length):
            schema = after(*rows[start : start + length], schema=schema)
        assert schema == whole


def test_rows_without_names_are_known_by_their_places():
    schema = after(*ROOMS)
    rows = cells_of_numbers(None, np.array([[21.0, np.nan]]))
    np.testing.assert_array_equal(encode(schema, rows), [[21.0, np.nan]])
    with pytest.raises(Misfit, match="has 3 values, the model's rows have 2"):
        check(schema, cells_of_numbers(None, np.ones((1, 3))))
    texts = Cells(
        None,
        np.array([[1.0, np.nan]]),
        ("x",),
        np.array([[-1, 0]], np.int32),
        np.ones((1, 2), bool),
    )
    unnamed = schema_after_first(Schema(), texts)
    assert unnamed is not None
    assert not unnamed.named
    assert list(kinds(unnamed).values()) == ["number", "category"]


def test_moments_are_waves_hours_weekdays_and_days():
    schema = after({"at": "2026-05-17T18:00:00Z"}, schema=moments("at"))
    assert kinds(schema) == {"at": "time"}
    given = ["2026-05-17T18:00:00Z", "2026-05-17T20:00:00+02:00", "2026-05-17 18:00", 1779040800]
    rows = encode(schema, cells_of_rows([{"at": at} for at in given]))
    np.testing.assert_allclose(rows[:, :2], [[-1.0, 0.0]] * 4, atol=1e-9)
    np.testing.assert_allclose(rows[:, 6:], [[18.0, 6.0, 1779040800 / 86400, 1779040800]] * 4)
    day, before = encode(
        schema, cells_of_rows([{"at": "2026-05-18T18:00Z"}, {"at": "1969-12-31T18:00Z"}])
    )
    np.testing.assert_allclose(day[:2], before[:2], atol=1e-9)
    assert (day[7], before[7]) == (0.0, 2.0)  # a Monday, and a Wednesday
    assert before[8] == -0.25
    for wrong in ("yesterday", 1e300):
        assert np.isnan(encode(schema, cells_of_rows([{"at": wrong}]))[:, :MOMENT_COLUMNS]).all()


def test_without_preparation_nothing_may_be_missing():
    schema = settled_numbers(("a", "b"), strict=True)
    check(schema, cells_of_rows([{"b": 1, "a": 2}]))
    for row in ({"a": 1}, {"a": 1, "b": None}):
        with pytest.raises(Misfit, match="is missing"):
            check(schema, cells_of_rows([row]))


def test_a_plain_schema_is_the_same_schema():
    schema = after(*ROOMS, {"warmth": 1, "room": "hall", "at": 5}, schema=moments("at"))
    plain = json.loads(json.dumps(schema.plain()))
    assert schema_from_plain(plain, schema.head.rows) == schema
    late = after({"new": 1, "warmth": "hot"}, schema=settled(*ROOMS))
    assert schema_from_plain(json.loads(json.dumps(late.plain()))) == late


def test_parts_of_a_table_are_joined_with_their_texts():
    parts = [cells_of_rows(ROOMS), cells_of_rows(ROOMS[::-1])]
    schema = after(*ROOMS)
    np.testing.assert_array_equal(
        encode(schema, joined(parts)), np.concatenate([encode(schema, part) for part in parts])
    )


def test_encoded_rows_are_prepared():
    schema = after(*ROOMS, {"warmth": None, "room": None})
    for indicators in (False, True):
        kinds_of_columns = layout(schema, indicators=indicators)
        Z = Preparation(kinds_of_columns).absorb(encode(schema, cells_of_rows(ROOMS * 5)))
        assert Z.shape == (10, kinds_of_columns.width)
        assert np.isfinite(Z).all()


def test_text_code_only_in_its_columns():
    schema = settled({"a": "x", "b": "y"}, {"a": "z", "b": "x"})
    found = encode(schema, cells_of_rows([{"a": "y", "b": "y"}, {"a": "x", "b": "x"}, {"b": "n"}]))
    expected = [[code_of("y"), 0.0], [0.0, 1.0], [np.nan, code_of("n")]]
    np.testing.assert_array_equal(found, expected)


def test_text_code_computed_once(monkeypatch):
    """Else a block takes as long as its columns times its texts, which are as many as its cells."""
    names = [f"c{j}" for j in range(20)]
    schema = settled(dict.fromkeys(names, "x"))
    rows = cells_of_rows([{name: f"{name} {i}" for name in names} for i in range(30)])
    asked = []
    monkeypatch.setattr(table_rows, "code_of", lambda text: asked.append(text) or code_of(text))
    encode(schema, rows)
    assert len(asked) == len(rows.texts) == 600


@pytest.mark.parametrize("seed", range(5))
def test_largest_columns_are_halved_to_fit(seed):
    random = np.random.default_rng(seed)
    counts = random.integers(1, 60, random.integers(2, 200)).tolist()
    most = max(counts)
    rows = [{f"c{j}": f"t{i % k}" for j, k in enumerate(counts)} for i in range(most)]
    schema = after(*rows)
    expected = []
    for count in counts:
        slots = 4
        while slots < 32 and own_codes(slots) < min(count, own_codes(32)):
            slots *= 2
        expected.append(slots)
    while sum(expected) > MOST_SLOTS_IN_ALL and max(expected) > 2:
        expected[expected.index(max(expected))] //= 2
    assert [column.slots for column in schema.columns] == expected


def test_familiar_row_keeps_columns():
    """Not equal ones: rows may have very many columns, and each early row is looked at alone."""
    schema = after(*ROOMS, {"warmth": None, "room": 7}, ROOMS[0])  # kinds are judged at the fourth
    assert after(ROOMS[1], schema=schema).columns is schema.columns
    wider = after({"warmth": 3, "room": "cellar"}, schema=schema)
    assert wider.columns[0] is schema.columns[0]
    assert wider.columns[1].texts == ("hall", "attic", "cellar")


def test_the_order_of_dates_that_shows_among_the_first_rows_stays():
    rows = [
        {"when": f"{1 + k % 12:02d}/{1 + k % 12 if k < 100 else 20}/2025", "x": 1.0}
        for k in range(SETTLING)
    ]
    reading = after(*rows).columns[0].reading
    assert (reading.day_first, reading.ordered) == (False, True)
    assert reading.why == "128 of 128 values are dates or times, the month first"
