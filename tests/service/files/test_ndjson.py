"""NDJSON files: flat rows and samples, and what is refused with its line."""

from pathlib import Path

import numpy as np
import pytest

from wolfstream.service.files.labelled import DataFileError, LabelledFile, open_data
from wolfstream.service.files.roles import NO_ROLES, Roles

CSV = "amount,shop,Outcome\n12.5,north,ok\n99,,fraud\n"
FLAT = '{"amount": 12.5, "shop": "north", "Outcome": "ok"}\n\n{"Outcome": "fraud", "amount": 99}\n'


def opened(path: Path, content: str, roles: Roles = NO_ROLES) -> LabelledFile:
    path.write_bytes(content.encode())
    return open_data(path, roles, texts=True)


def everything(data: LabelledFile) -> tuple[list[object], list[object], list[float] | None]:
    (batch,) = data.batches(100)
    X = batch.X.tolist() if isinstance(batch.X, np.ndarray) else batch.X
    assert isinstance(X, list)
    return X, list(batch.labels), batch.weights


@pytest.mark.parametrize("name", ["a.ndjson", "a.jsonl", "a.txt"])
def test_flat_rows_are_what_the_same_csv_is(tmp_path: Path, name: str) -> None:
    roles = Roles(label="Outcome")
    read = opened(tmp_path / name, FLAT, roles)
    same = opened(tmp_path / "a.csv", CSV, roles)
    assert (
        everything(read)
        == everything(same)
        == ([[12.5, "north"], [99, None]], ["ok", "fraud"], None)
    )
    assert (read.names, read.samples, read.plain) == (same.names, same.samples, same.plain)


def test_samples_have_rows_labels_and_weights(tmp_path: Path) -> None:
    first = '{"x": {"a": 1, "b": 2}, "y": 7, "weight": 2}'
    text = first + '\n{"x": {"b": 4, "a": 3}, "y": 8, "weight": 1}\n'
    read = opened(tmp_path / "a.ndjson", text)
    assert everything(read) == ([[1, 2], [3, 4]], [7, 8], [2, 1])
    assert read.names == ("a", "b")


def test_values_in_values_are_columns_and_texts(tmp_path: Path) -> None:
    first = '{"user": {"age": 3, "home": {"city": "Bari"}}, "tags": ["a", "b"], "y": "u"}'
    read = opened(tmp_path / "a.ndjson", first + '\n{"y": "v"}')
    assert read.names == ("user.age", "user.home.city", "tags")
    assert everything(read) == ([[3, "Bari", "a, b"], [None] * 3], ["u", "v"], None)


def test_rows_that_are_arrays_have_no_names(tmp_path: Path) -> None:
    read = opened(tmp_path / "a.ndjson", '{"x": [1, 2], "y": "b"}\n{"x": [3, 4], "y": "a"}')
    assert everything(read) == ([[1, 2], [3, 4]], ["b", "a"], None)
    assert (read.names, read.features, read.plain) == (None, 2, True)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "has no samples"),
        ('{"a": 1, "y": 2}\n[1]', "line 2: must be an object"),
        ('{"a": 1, "y": 2}\n{"a": ', "line 2: is not JSON"),
        ('{"a": 1, "a": 1, "y": 2}', "line 1: is not JSON: an object has a name twice"),
        ('{"a": [1], "y": 2}', "line 1: 'a' must be a number, a text"),
        ('{"a": {"b": 1}, "a.b": 1, "y": 2}', "in it a column of its own"),
        ('{"a": 1e999, "y": 2}', "line 1: 'a' is not a finite number"),
        ('{"a": 1' + "0" * 400 + ', "y": 2}', "line 1: 'a' is beyond float64"),
        ('{"a": ' + "[" * 100_000, "line 1: is not JSON"),
        ('{"a": 1, "b": 2}', "none of the columns is named y"),
        ('{"x": {"a": 1}, "y": 2}\n{"x": [1], "y": 2}', "line 2: x must be an object"),
        ('{"x": [1], "y": 2}\n{"a": 1, "y": 2}', "line 2: x must be an array"),
        ('{"x": {"y": 1}, "y": 2}', "line 1: 'y' is in x and beside it"),
        ('{"x": [1], "y": 2, "head": "a"}', "line 1: 'head' is not one of x, y, weight"),
        ('{"x": [1], "y": null}', "the label of row 1 is missing"),
        ('{"x": [1], "y": [{}]}', "line 1: 'y' must be a number"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str, detail: str) -> None:
    with pytest.raises(DataFileError, match=detail.replace("[", r"\[")):
        opened(tmp_path / "a.ndjson", text)


def test_rows_of_ever_new_names_make_no_table(tmp_path: Path) -> None:
    text = "".join(f'{{"n{i}": 1, "y": 1}}\n' for i in range(17_000))
    with pytest.raises(DataFileError, match="too many for a table"):
        opened(tmp_path / "a.ndjson", text)


def test_columns_of_samples_are_not_named(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="samples with x have none"):
        opened(tmp_path / "a.ndjson", '{"x": [1], "y": 2}', Roles(label="y"))


ENCLOSED = '{"count": 2, "data": [{"amount": 12.5, "shop": "north", "Outcome": "ok"},\n' + (
    '  {"Outcome": "fraud", "amount": 99}]}\n'
)


@pytest.mark.parametrize("text", [ENCLOSED, ENCLOSED.replace("\n", "") + "\n"])
def test_rows_within_an_object_are_the_same(tmp_path: Path, text: str) -> None:
    roles = Roles(label="Outcome")
    read = opened(tmp_path / "a.json", text, roles)
    assert everything(read) == everything(opened(tmp_path / "b.ndjson", FLAT, roles))


def test_nested_first_line_is_a_row(tmp_path: Path) -> None:
    line = '{"columns": {"0": 1, "1": 2}, "data": {"0": 3, "1": 4}}'
    read = opened(tmp_path / "a.ndjson", f"{line}\n\n{line}\n", Roles(label="data.1"))
    assert (read.samples, read.names) == (2, ("columns.0", "columns.1", "data.0"))
