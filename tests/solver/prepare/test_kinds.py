"""What texts mean: numbers, times, words; and which kind a column is by its first values."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.solver.prepare.cells import cells_of_rows
from wolfstream.solver.prepare.judging import ColumnReading, given_kind, judge, reading_from_plain
from wolfstream.solver.prepare.numerals import amounts, numeral, plain_number, text_within
from wolfstream.solver.prepare.read_cells import read, readings, within_texts
from wolfstream.solver.prepare.row_form import PreparationParameters, RowForm
from wolfstream.solver.prepare.schema import SETTLING
from wolfstream.solver.prepare.settling import MOST_WITHIN_IN_ALL
from wolfstream.solver.prepare.times import moment
from wolfstream.solver.prepare.words import (
    MOST_CHARACTERS,
    MOST_CODES,
    codes_of_words,
    column_key,
    columns_of,
)

KEY = column_key("note")


class ReadAs(NamedTuple):
    """A column and how it is read."""

    name: str
    reading: ColumnReading


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$124.17", 124.17),
        ("55.0%", 55.0),
        ("(1,200)", -1200.0),
        ("-$5", -5.0),
        ("1.37kg", 1.37),
        ("2.5M", 2.5e6),
        ("735-739", 737.0),
        ("12,5 EUR", 12.5),
        ("1.234,5", 1234.5),
        ("€ 1\u00a0234,50", 1234.5),
        ("1e3 m", 1000.0),
        ("1.234,56-", -1234.56),
        ("12.50- EUR", -12.5),
        ("£41k - £58k", 49_500.0),
        ("$50,000 to $99,999", 74_999.5),
        ("10%-20%", 15.0),
        ("10 kg – 20 kg", 15.0),
        ("$100-$200", 150.0),
        ("404 Tsd. €", 404_000.0),
        ("1.4 million", 1.4e6),
        ("2.5° N", 2.5),
        ("2.5°S", -2.5),
        ("40°30'36\"W", -40.51),
        ("45° 30′", 45.5),
        ("37.5°C", 37.5),
        (">=90", 90.0),
        ("~ 300", 300.0),
        ("1 1/2 tab", 1.5),
        ("2-1/4 in", 2.25),
        ("3/4", 0.75),
    ],
)
def test_a_number_in_a_text_is_read(text: str, value: float):
    found = numeral(text)
    assert found is not None
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "747_380_1127",
        "user 12",
        "12:30",
        "1.2.3",
        "300.0HP 3.7L",
        "9" * 400,
        "$",
        "5 kg - 3 m",
        "118/83",
        "5/2",
        "1/2/2025",
    ],
)
def test_a_text_that_is_not_one_quantity_is_none(text: str):
    assert numeral(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("300.0HP 3.7L V6 Cylinder", {"hp": 300.0, "l": 3.7}),
        ("256GB SSD +  1TB HDD", {"gb": 256.0, "tb": 1.0}),
        ("6-Speed A/T", {"speed": 6.0}),
        ("1,200 sq. ft at 35%", {"sq": 1200.0, "%": 35.0}),
        ("2 beds and 1 bed, 3 beds", {"beds": 2.0, "bed": 1.0}),
        ("room 12", {"": 12.0}),
        ("no number, V6", {}),
    ],
)
def test_numbers_before_units_are_read(text: str, expected: dict[str, float]):
    assert amounts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-03-01T04:12:00Z", datetime(2025, 3, 1, 4, 12, tzinfo=UTC)),
        ("2025-03-01 04:12:00.5+01:00", datetime(2025, 3, 1, 3, 12, 0, 500_000, tzinfo=UTC)),
        ("20250301", datetime(2025, 3, 1, tzinfo=UTC)),
        ("03/13/2025 4:12 PM", datetime(2025, 3, 13, 16, 12, tzinfo=UTC)),
        ("13.3.2025", datetime(2025, 3, 13, tzinfo=UTC)),
        ("1-Mar-25", datetime(2025, 3, 1, tzinfo=UTC)),
        ("March 1, 2025", datetime(2025, 3, 1, tzinfo=UTC)),
        ("Sat, 01 Mar 2025 04:12 GMT", datetime(2025, 3, 1, 4, 12, tzinfo=UTC)),
        ("9999-12-31", datetime(9999, 12, 31, tzinfo=UTC)),
        ("01/Mar/2025:04:12:00 +0100", datetime(2025, 3, 1, 3, 12, tzinfo=UTC)),
        ("Sat Mar  1 04:12:00 UTC 2025", datetime(2025, 3, 1, 4, 12, tzinfo=UTC)),
        ("Sat Mar 01 04:12:00 +0000 2025", datetime(2025, 3, 1, 4, 12, tzinfo=UTC)),
        ("2025-03-01 04:12:00 CET", datetime(2025, 3, 1, 3, 12, tzinfo=UTC)),
        ("2025-03", datetime(2025, 3, 1, tzinfo=UTC)),
        ("03/2025", datetime(2025, 3, 1, tzinfo=UTC)),
        ("Mar 2025", datetime(2025, 3, 1, tzinfo=UTC)),
        ("3. März 2025", datetime(2025, 3, 3, tzinfo=UTC)),
        ("Mo., 03. Mrz 2025 04:12", datetime(2025, 3, 3, 4, 12, tzinfo=UTC)),
        ("03-Dez-24", datetime(2024, 12, 3, tzinfo=UTC)),
        ("1er août 2025", datetime(2025, 8, 1, tzinfo=UTC)),
        ("mercredi 3 déc. 2025", datetime(2025, 12, 3, tzinfo=UTC)),
        ("miércoles, 3 de septiembre de 2025", datetime(2025, 9, 3, tzinfo=UTC)),
        ("03-ene-2025", datetime(2025, 1, 3, tzinfo=UTC)),
        ("3 de março de 2025", datetime(2025, 3, 3, tzinfo=UTC)),
        ("1º gennaio 2025", datetime(2025, 1, 1, tzinfo=UTC)),
        ("3 mrt 2025", datetime(2025, 3, 3, tzinfo=UTC)),
        ("Oktober 2025", datetime(2025, 10, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_in_common_forms(text: str, expected: datetime):
    found = moment(text)
    assert found is not None
    assert found.month_first == expected.timestamp()


@pytest.mark.parametrize(
    "text",
    [
        *("soon", "2025-02-30", "2025-13-01", "2025-03-01 25:00", "1.2.3", "1998-99"),
        *("3 jui 2025", "3 ma 2025", "room 3 marble 2025", "4 Decks 2025", "30. Februar 2025"),
    ],
)
def test_a_time_that_is_none_is_not_read(text: str):
    assert moment(text) is None


def test_a_date_of_the_year_0_is_a_number():
    found = moment("0000-01-01")
    assert found is not None
    assert np.isfinite(found.month_first)


@given(st.datetimes())
def test_any_time_of_iso_8601_is_read(when: datetime):
    found = moment(when.isoformat())
    assert found is not None
    assert found.month_first == pytest.approx(when.replace(tzinfo=UTC).timestamp(), abs=1e-3)


@given(st.text())
def test_any_text_is_read_or_not(text: str):
    for found in (numeral(text), moment(text), plain_number(text)):
        assert found is None or found is not text
    codes = codes_of_words(KEY, text)
    assert len(codes) <= MOST_CODES
    assert all(code < 0.0 and code == int(code) for code in codes)
    assert len(set(codes)) == len(codes)


def test_words_are_folded_and_those_of_a_long_text_bounded():
    assert codes_of_words(KEY, "STRASSE, groß!") == codes_of_words(KEY, "strasse gross")
    assert codes_of_words(KEY, "a") != codes_of_words(column_key("other"), "a")
    long = "word " * MOST_CHARACTERS
    assert len(codes_of_words(KEY, long)) <= MOST_CODES


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 2.0, None], "number"),
        (["1", "2.5"], "number"),
        (["$5.00", "$7.20", "-", None], "number in text"),
        (["12,5", "13,75"], "number in text"),
        (["True", "FALSE", "yes", 1.0], "boolean"),
        (["2025-03-01 04:12:00", "2025-03-02"], "time"),
        (["hall", "bath", "hall"], "category"),
        (["user 1", "user 2"], "category"),
        (["paid at the corner shop", "paid at the web store"], "text"),
        (["a", "x" * 300], "text"),
        ([f"k{k}x" for k in range(128)], "identifier"),
        ([None, "", "n/a"], "empty"),
        (["19M", "201k", "varies with device", "8.7M", "varies with device"], "number in text"),
        (["1056", "1133 - 1384", "2600", "1440", "980"], "number in text"),
    ],
)
def test_a_column_is_judged_by_its_values(values: list[float | str | None], kind: str):
    assert judge("column", values).kind == kind


def test_large_numbers_are_times_where_the_name_says_so():
    values = [1.75e9, 1.75e9 + 60.0]
    assert judge("created_at", values).kind == "time"
    assert judge("price", values).kind == "number"
    for parts in (1e3, 1e6, 1e9):
        reading = judge("created_at", [parts * value for value in values])
        assert reading.number_of(parts * 1.75e9) == 1.75e9
    assert judge("created_at", [1.75e9, 3.0]).kind == "number"


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["300 MB", "290 MB", "1.5 GB", "512 B"], [300.0, 290.0, 1500.0, 0.000512]),
        (["30Mi", "512Mi", "2Gi"], [30.0, 512.0, 2048.0]),
        (["1.2G", "300M", "20K"], [1.2e9, 3e8, 2e4]),
        (["129 g", "87 g", "1.69 kg"], [129.0, 87.0, 1690.0]),
        (["91.3ms", "95ms", "1.2s", "400µs"], [91.3, 95.0, 1200.0, 0.4]),
        (["12 days", "3 days", "1 day"], [12.0, 3.0, 1.0]),
        (["7 apples", "3 apples", "1 apple"], [7.0, 3.0, 1.0]),
        (["$2.5m", "$300k", "$1b"], [2.5e6, 3e5, 1e9]),
        (["1,2 Mio. €", "3 Mrd. €"], [1.2e6, 3e9]),
        (["11m 43s", "6h 18m 43s", "43s"], [703.0, 22723.0, 43.0]),
        (["2 days 03:04:05", "00:00:01"], [183_845.0, 1.0]),
        (["1 hour and 5 minutes", "20 min", "2 hrs"], [3900.0, 1200.0, 7200.0]),
        (["PT1H2M", "PT3M", "P1DT1S"], [3720.0, 180.0, 86_401.0]),
        (["05:38:32", "00:00:07.5"], [20312.0, 7.5]),
        (["14:29", "3:05"], [52140.0, 11100.0]),
        (["2:29 PM", "12:01 AM"], [52140.0, 60.0]),
        (["3:45", "1:02:03"], [225.0, 3723.0]),
        (["5.52 bar", "4100 mbar", "3 bar"], [5.52, 4.1, 3.0]),
        (["7.50 kW", "522 W", "1 kW"], [7.5, 0.522, 1.0]),
        (["10.136,91 H", "78,50 S", "12,00 S"], [10136.91, -78.5, -12.0]),
        (["1,200.50 CR", "30.00 DR", "5.00 DR"], [1200.5, -30.0, -5.0]),
        (["52.5 N", "33.9 S", "1.3 S"], [52.5, -33.9, -1.3]),
        (["1 person", "2 persons", "6 or more persons"], [1.0, 2.0, 6.0]),
        (["3 years", "6+ years", "over 8 years"], [3.0, 6.0, 8.0]),
        (["0.7 mg/l", "<0.5 mg/l", "≥ 3 mg/l"], [0.7, 0.5, 3.0]),
        (["$10,000 - $19,999", "$20,000 or more", "Less than $10,000"], [14_999.5, 2e4, 1e4]),
        (["30 min", "20 S", "10 min"], [30.0, 20.0 / 60.0, 10.0]),
    ],
)
def test_units_of_one_measure_and_durations_are_one_number(texts: list[str], values: list[float]):
    reading = judge("column", list[float | str | None](texts))
    assert reading.kind == "number in text"
    assert [reading.number(text) for text in texts] == pytest.approx(values)


@pytest.mark.parametrize(
    "texts",
    [
        ["1 kg", "3 days"],
        ["3:1", "2:2"],
        ["1h 2d", "3s 4h"],
        ["5:75", "1:99"],
        ["12 AM: 3", "x:10"],
    ],
)
def test_what_measures_different_things_is_no_number(texts: list[str]):
    assert judge("column", list[float | str | None](texts)).kind != "number in text"


@pytest.mark.parametrize(
    "make",
    [
        lambda draw: str(UUID(int=draw.getrandbits(128))),
        lambda draw: f"C-{draw.randrange(10**6, 10**7)}",
        lambda draw: float(draw.randrange(4 * 10**15, 5 * 10**15)),
        lambda draw: f"{draw.randrange(10**12, 10**13)}",
    ],
)
def test_codes_that_are_all_different_are_identifiers(make: Callable[[Random], float | str]):
    draw = Random(0)
    assert judge("column", [make(draw) for _ in range(SETTLING)]).kind == "identifier"


def test_long_numbers_without_texts_are_judged_by_their_values():
    draw = Random(0)
    rows = cells_of_rows(
        [{"card": draw.randrange(10**12, 10**13), "count": k} for k in range(SETTLING)]
    )
    card, count = readings(["card", "count"], [rows], {}, ())
    assert (card.kind, count.kind) == ("identifier", "number")


@pytest.mark.parametrize(
    "values",
    [
        [10.0**12 + k for k in range(SETTLING)],  # in order
        [1.7e9 + 1000.0 * (k * 37 % SETTLING) for k in range(SETTLING)],  # moments
        [float(k * 37 % 1009 * 10**7) for k in range(SETTLING)],  # of other lengths
        [10.0**12 + k * 37 % 97 for k in range(SETTLING)],  # some twice
        [5e9 + 10_007.0 * (k * 37 % 1009) for k in range(SETTLING)],  # such as bytes of memory
        [1e16 * (1.0 + k * 37 % 1009 / 500) for k in range(SETTLING)],  # too coarse
    ],
)
def test_long_numbers_that_say_how_much_or_when_are_numbers(values: list[float]):
    assert judge("column", list[float | str | None](values)).kind == "number"


@pytest.mark.parametrize("text", ["C-1005", "A12", "US 5"])
def test_letters_before_digits_are_no_currency_without_its_sign(text: str):
    assert numeral(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,234.50", 1234.5), ("$5", 5.0), ("12 EUR", 12.0), ("55%", 55.0), ("A$3", 3.0)],
)
def test_separators_and_currencies_that_come_after_plain_numbers_are_read(text: str, value: float):
    reading = judge("price", [980.0, "12.5"])
    assert reading.kind == "number"
    assert reading.number(text) == value


@pytest.mark.parametrize("text", ["12a", "5 apples", "room 7", "747_380_1127", "1/2"])
def test_other_texts_that_come_after_plain_numbers_are_not(text: str):
    assert math.isnan(judge("price", [980.0, "12.5"]).number(text))


def test_words_and_units_of_many_columns_are_few_columns_together():
    names = [f"note {j}" for j in range(40)]
    texts = [f"{i}kg of {'salt' if i % 3 else 'sand'} for house {i % 5} ab{i}" for i in range(64)]
    form = RowForm(PreparationParameters()).after(
        cells_of_rows([dict.fromkeys(names, t) for t in texts])
    )
    assert form.schema is not None
    readings = [column.reading for column in form.schema.columns]
    assert 40 <= sum(len(reading.words) for reading in readings) <= MOST_WITHIN_IN_ALL
    assert 40 <= sum(len(reading.units) for reading in readings) <= MOST_WITHIN_IN_ALL


def test_items_of_lists_are_columns():
    draw = Random(0)
    chosen = ["TV", "Radio", "Social media", "Podcast", "Friends"]
    lists = [", ".join(c for c in chosen if draw.random() < 0.5) or "TV" for _ in range(SETTLING)]
    judged = judge("channels", list[float | str | None](lists))
    assert judged.kind == "category"
    assert set(judged.words) == {"tv", "radio", "social", "podcast", "friends"}
    places = [f"{draw.choice('ABCD')}, {draw.choice(['UK', 'FR', 'DE'])}" for _ in range(SETTLING)]
    assert judge("places", list[float | str | None](places)).words == ()


def test_units_that_recur_in_texts_are_columns():
    engines = [f"{90 + k}.0HP {1 + k % 4}.5L V{4 + k % 2}" for k in range(40)]
    reading = judge("engine", engines)
    assert reading.units == ("hp", "l")
    assert judge("engine", engines[:20]).units == ()  # too few to say
    assert judge("engine", ["V6", "V8"] * 40).units == ()
    cells = cells_of_rows([{"engine": "250HP 3.5L"}, {"engine": "electric"}, {"engine": None}])
    found = within_texts(reading._replace(words=("electric",)), cells, 0)
    np.testing.assert_array_equal(
        found, [[0.0, 250.0, 3.5], [1.0, np.nan, np.nan], [np.nan, np.nan, np.nan]]
    )


def test_amounts_for_periods_are_of_one_currency():
    column = ["90.637 € p.a."] * 20 + ["EUR 51,597", "82.201 € p.a."]
    reading = judge("pay", column)
    assert (reading.kind, reading.grouped) == ("number in text", True)
    assert [reading.number(text) for text in column[19:]] == [90637.0, 51597.0, 82201.0]
    reading = judge("rent", ["$1,200 /mo"] * 20 + ["$12,000 a year", "$900"])
    assert reading.number("$12,000 a year") == 1000.0
    assert reading.number("$900") == 900.0
    assert judge("pay", ["$10"] * 20 + ["20 € p.a."] * 20).kind == "category"


@pytest.mark.parametrize(
    ("texts", "grouped"),
    [
        (["1.299 €", "899,50 €"], True),
        (["1.299 €", "2.000.000 €"], True),
        (["1.299,00 €", "899,50 €"], True),
        (["1.299 €", "1,299 €"], True),
        (["1.299 €", "1.389 €"], False),  # of a litre
        (["1.299 €", "899.50 €"], False),
        (["0.299 €", "1,299 €"], False),
        (["1,299.00 €", "1.299 €"], False),
    ],
)
def test_points_between_thousands(texts: list[str], grouped: bool):
    reading = judge("price", texts * 20)
    assert reading.grouped == grouped
    assert reading.number("1.299 €") == (1299.0 if grouped else 1.299)
    assert reading.number("€ 7") == 7.0


def test_spellings_of_one_category_are_one():
    reading = judge("state", ["Open", "open", "OPEN ", "closed"] * 10)
    assert (reading.kind, reading.folded) == ("category", True)
    assert reading.why == "4 of the first 40 values differ, 2 of them apart from case and spaces"
    for apart in (["k", "K", "q"], ["mW", "MW", "kilo"], ["Open", "closed"]):
        assert not judge("state", apart * 10).folded
    assert given_kind("category", ["Open", "open"]).folded


def test_spellings_have_one_code_in_the_first_rows_and_later():
    rows = [{"state": state} for state in ("Open", "OPEN", " open", "closed") * 40]
    form = RowForm(PreparationParameters()).after(cells_of_rows(rows))
    assert form.schema is not None
    (column,) = form.schema.columns
    assert column.texts == ("open", "closed")
    codes = form.encoded(cells_of_rows([{"state": state} for state in ("oPen", "oPEN", "Closed")]))
    assert codes[2, 0] == 1.0
    assert codes[0, 0] != codes[1, 0]  # neither is written as words are
    many = [{"town": f"{town}{i}"} for i in range(40) for town in ("Bari ", "BARI ", "Lodi ")]
    form = RowForm(PreparationParameters()).after(cells_of_rows(many * 2))
    a, b = form.encoded(cells_of_rows([{"town": "Bari 39"}, {"town": "BARI 39"}]))[:, -1]
    assert a == b > 32.0


def test_hours_and_weekdays_are_those_of_the_clocks_that_wrote_them():
    here = ["2025-03-02 23:30:00 -0500", "2025-03-03 00:30:00 -0500", "2025-03-03T05:30:00Z"]
    reading = judge("when", here)
    assert reading.zone == -18000.0
    rows = [{"when": when} for when in here * 50]
    form = RowForm(PreparationParameters()).after(cells_of_rows(rows))
    encoded = form.encoded(cells_of_rows(rows[:3]))
    hours, weekdays = encoded[:, -4].tolist(), encoded[:, -3].tolist()
    assert (hours, weekdays) == ([23.0, 0.0, 0.0], [6.0, 0.0, 0.0])
    assert encoded[1, -2:].tolist() == encoded[2, -2:].tolist()


def test_padded_keys_are_the_same_as_others():
    rows = [{"key": key} for key in ("00123", "123", "A77", "9", "0009", "B1") * 30]
    form = RowForm(PreparationParameters()).after(cells_of_rows(rows))
    keys = ("00123", "123", "A77", "9")
    encoded = form.encoded(cells_of_rows([{"key": key} for key in keys]))
    np.testing.assert_array_equal(encoded[0], encoded[1])
    assert encoded[0, 0] == 123.0


def test_a_reading_is_the_same_after_it_was_saved():
    readings = [
        judge("when", ["13/02/2025"]),
        judge("when", ["2025-02-13 04:12:00 -0500"]),
        judge("x", ["12,5 EUR"]),
        judge("note", [f"paid {w} at the web store" for w in ("one", "two") * 40]),
        judge("engine", [f"{k}.0HP 3.7L" for k in range(40)]),
        given_kind("number", ["$5"]),
        judge("price", ["1.299 €", "899,50 €"]),
        judge("state", ["Open", "open"]),
    ]
    for reading in readings:
        parts = list(reading.words), list(reading.units)
        saved = [*reading[:-4], *parts, reading.zone, reading.ordered]
        assert reading_from_plain(saved) == reading
    for wrong in (["mood", *ColumnReading()[1:]], ["number", "", "", 1, *ColumnReading()[4:]]):
        with pytest.raises(ValueError, match="saved columns"):
            reading_from_plain(wrong)


CELL = st.one_of(
    st.none(),
    st.floats(-1e6, 1e6),
    st.booleans(),
    st.sampled_from(["$5.00", "7%", "True", "n/a", "-", "2025-03-01", "13/02/2025", "a b c d"]),
    st.text(max_size=8),
)
ROW = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), CELL, min_size=1)


@given(st.lists(ROW, min_size=1, max_size=20), st.integers(1, 7), st.integers(0, 2 * SETTLING))
def test_blocks_of_any_length_find_the_same_columns(
    rows: list[dict[str, object]], step: int, n: int
):
    rows = [{**row, "text": "some words of a text"} for row in rows * (1 + n // len(rows))]
    whole = RowForm(PreparationParameters()).after(cells_of_rows(rows))
    form = RowForm(PreparationParameters())
    for start in range(0, len(rows), step):
        form = form.after(cells_of_rows(rows[start : start + step]))
    assert form == whole
    encoded = whole.encoded(cells_of_rows(rows))
    assert np.isfinite(encoded[~np.isnan(encoded)]).all()
    words = whole.words(cells_of_rows(rows))
    assert words is None or words.shape == (len(rows), MOST_CODES)


def test_a_number_among_texts_counts_by_its_length_as_they_do():
    column = [ReadAs("note", ColumnReading("text"))]
    cells = read(
        column, cells_of_rows([{"note": "seven"}, {"note": 7.0}, {"note": "7.25 is it"}]), [0]
    )
    assert cells.numbers[:, 0].tolist() == [math.log1p(n) for n in (5, 1, 10)]
    numbers = read(
        column, cells_of_rows([{"note": 7.0}, {"note": 125.0}]), [0]
    )  # a block without any text
    assert numbers.numbers[:, 0].tolist() == [math.log1p(1), math.log1p(3)]


@given(st.text())
def test_codes_tell_the_column_that_they_are_of(text: str):
    columns = [columns_of(np.array(codes_of_words(column_key(c), text))) for c in ("a", "b")]
    assert all(len(set(found.tolist())) == 1 for found in columns)
    assert columns[0][0] != columns[1][0]
    assert np.isnan(columns_of(np.array([math.nan]))).all()


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["0,010", "0,956", "1,000"], [0.01, 0.956, 1.0]),
        (["3,000 %", "0,000 %", "2,500 %"], [3.0, 0.0, 2.5]),
        (["2,124E-03", "1,782E-02"], [2.124e-3, 1.782e-2]),
        (["1,024", "2,048"], [1024.0, 2048.0]),
    ],
)
def test_thousands_begin_with_no_zero_and_have_no_exponent(
    texts: list[str], numbers: list[float]
) -> None:
    reading = judge("a", texts)
    assert [reading.number(text) for text in texts] == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("name", "values", "seconds"),
    [
        ("Date", [20250101.0, 20240229.0], [1735689600.0, 1709164800.0]),
        ("created", ["20250101", 20240229.0], [1735689600.0, 1709164800.0]),
        ("order date", [45658.0, 45658.5], [1735689600.0, 1735732800.0]),
        ("Datum", [45658.25], [1735711200.0]),
        ("Zeitstempel", ["45658,25", "45658,5", 45658.0], [1735711200.0, 1735732800.0, 1735689600]),
    ],
)
def test_numbers_are_dates_where_they_are_named_so(
    name: str, values: list[float | str], seconds: list[float]
) -> None:
    reading = judge(name, values)
    assert reading.kind == "time"
    read = [reading.number_of(x) if isinstance(x, float) else reading.number(x) for x in values]
    assert read == seconds
    assert math.isnan(reading.number_of(7.0))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("amount", [20250101.0, 20240229.0]),
        ("Date", [20250101.0, 20250230.0]),
        ("Date", [20250101.0, 20240229.5]),
        ("time", [45658.0, 45659.0]),
        ("date", [0.425, 0.5]),
        ("date", [45658.0, 3.0]),
    ],
)
def test_other_numbers_are_no_dates(name: str, values: list[float]) -> None:
    assert judge(name, values).kind == "number"


@pytest.mark.parametrize(
    ("texts", "places", "first"),
    [
        ([f"{110 + k}/{70 + k % 20}" for k in range(64)], ("#1", "#2"), [110.0, 70.0]),
        ([f"{4 + k % 2}'{k % 12}\"" for k in range(64)], ("#1", "#2"), [4.0, 0.0]),
        ([f"2024-W{k % 52 + 1:02d}" for k in range(64)], ("#2",), [1.0]),
        ([f"{9 - k % 9}-{k % 5}" for k in range(64)], ("#1", "#2"), [9.0, 0.0]),
        ([f"{k} ({k % 7})" for k in range(64)], ("#1", "#2"), [0.0, 0.0]),
        ([f"8.{k % 3}.{k}" for k in range(64)], ("#2", "#3"), [0.0, 0.0]),
    ],
)
def test_numbers_of_texts_with_as_many_are_learned_by_their_places(
    texts: list[str], places: tuple[str, ...], first: list[float]
) -> None:
    reading = judge("a", texts)
    assert (reading.kind, reading.units, reading.wordy) == ("category", places, False)
    cells = cells_of_rows([{"a": text} for text in texts])
    assert within_texts(reading, cells, 0)[0].tolist() == first


@pytest.mark.parametrize(
    "texts",
    [
        [f"{k} bags at gate {k % 9}" if k % 2 else f"gate {k % 9}, row {k}" for k in range(64)],
        [f"Model {k} of {['red', 'green', 'blue'][k % 3]} {k}" for k in range(64)],
        [f"{k % 2}-{k % 2}" for k in range(64)],
        [f"10.{k % 3}.{k}.{k % 9}" for k in range(64)],
    ],
)
def test_numbers_of_other_texts_have_no_places(texts: list[str]) -> None:
    assert not any(unit.startswith("#") for unit in judge("a", texts).units)


def test_degrees_of_both_scales_are_one_number() -> None:
    texts = [f"{k}.5 °C" if k % 3 else f"{1.8 * (k + 0.5) + 32:.1f} °F" for k in range(64)]
    reading = judge("a", texts)
    assert reading.kind == "number in text"
    assert reading.why.endswith("with '°c' around the digits, into which °f is converted")
    assert [reading.number(text) for text in texts] == pytest.approx([k + 0.5 for k in range(64)])


def test_months_beside_years_are_no_minutes() -> None:
    reading = judge("age", [f"{k % 20 + 3}y" if k % 4 else f"{k % 24}m" for k in range(64)])
    assert reading.number("18m") == pytest.approx(1.5)


def test_a_currency_has_a_sign_and_a_code() -> None:
    reading = judge("a", [f"{k}.50 €" if k % 3 else f"EUR {k}.50" for k in range(64)])
    assert [reading.number(text) for text in ("7.50 €", "€7.50", "EUR 7.50")] == [7.5] * 3
    assert math.isnan(reading.number("$7.50"))


def test_hours_by_halves_of_the_day_are_times_of_day() -> None:
    reading = judge("KO", ["3pm", "12:30pm", "8pm", "12am"] * 20)
    values = [reading.number(text) for text in ("3pm", "12:30pm", "12am", "13pm")]
    assert values[:3] == [54_000.0, 45_000.0, 0.0]
    assert math.isnan(values[3])


def test_a_pace_is_a_duration() -> None:
    reading = judge("pace", [f"{4 + k % 3}:{k % 60:02d} /km" for k in range(64)])
    assert reading.number("5:10 /km") - reading.number("5:09 /km") == 60.0


def test_units_that_depend_on_the_substance_have_columns_of_their_own() -> None:
    texts = [f"{k / 10 + 4:.1f} mmol/L" if k % 4 else f"{k + 70} mg/dL" for k in range(64)]
    reading = judge("glucose", texts)
    assert (reading.kind, reading.units, reading.wordy) == ("category", ("mmol", "mg"), False)


@pytest.mark.parametrize(
    "texts", [["ja", "Nein", "JA"], ["oui", "non"], ["sí", "no"], ["✅", "❌"]]
)
def test_yes_and_no_may_be_in_other_languages(texts: list[str]) -> None:
    reading = judge("a", texts * 20)
    assert reading.kind == "boolean"
    assert [reading.number(text) for text in texts[:2]] == [1.0, 0.0]


def test_numbers_of_telephones_are_identifiers() -> None:
    assert (
        judge("a", [f"+41 76 {k + 100} 21 {k % 90 + 10}" for k in range(128)]).kind == "identifier"
    )
    assert judge("a", [f"{k + 100} {k % 7} 21 4" for k in range(128)]).kind != "identifier"


@given(
    st.sampled_from(["", "$", "£", "EUR ", "~", "<", "(", "-"]),
    st.sampled_from(["7", "0.50", ".5", "6.", "1.234", "1,234", "1.234.567", "007", ""]),
    st.sampled_from(["", "%", " kg", "k", "M", " MB", " B", "°", "° N", " S", ".-", "e3", ")"]),
    st.sampled_from(["#", "$#", "#%", "#kg", "#mb", "#b", "eur#", "#°", "#S", "£#", "#.-"]),
    st.booleans(),
)
def test_digits_within_a_unit_are_what_a_numeral_is(
    before: str, digits: str, after: str, unit: str, commas: bool
) -> None:
    text = f"{before}{digits}{after}".strip()
    within, quantity = text_within(text, unit), numeral(text, commas=commas)
    if within is not None and plain_number(text) is None:
        assert quantity is not None
        assert quantity.unit in (unit, "#")
        assert quantity.value == float(within)
