"""Data files: what is read, and what is refused with the line that is wrong."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.service.files.labelled import MAX_FEATURES, DataFileError, LabelledFile, open_data
from wolfstream.service.files.npz import dense_rows, sparse_rows
from wolfstream.service.files.roles import Roles
from wolfstream.service.files.separated import CsvText
from wolfstream.service.files.svmlight import SvmlightText
from wolfstream.service.files.text import LONGEST_ROW
from wolfstream.solver.rows.matrix import SparseRows, take_rows, to_csr

DATA = Path(__file__).parents[2] / "data"

ROW = st.lists(st.sampled_from([0.0, -1.5, 2.0]), min_size=3, max_size=3)
Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def everything(data: LabelledFile, size: int = 2, **part: int) -> tuple[list, list]:
    rows, labels = [], []
    for X, y, *_ in data.batches(size, **part):
        assert X.dtype == np.float64
        assert X.shape == (len(y), data.features)
        assert 1 <= len(y) <= size
        rows += X.tolist()
        labels += y
    return rows, labels


def typed(labels: list) -> list:
    return [(type(label), label) for label in labels]


class TestCsv:
    @pytest.mark.parametrize("name", ["y", "label", "Class", "TARGET"])
    def test_label_by_header(self, write: Write, name: str):
        data = open_data(write("a.csv", f"a,{name},b\n1,7,2\n3,8,4.5\n"))
        assert (data.samples, data.features) == (2, 2)
        assert everything(data) == ([[1, 2], [3, 4.5]], [7, 8])

    def test_no_column_is_the_label_by_default(self, write: Write):
        with pytest.raises(DataFileError, match="--label NAME: h1, h2, h3"):
            open_data(write("a.csv", "h1,h2,h3\n1,2,cat\n"))

    def test_no_header(self, write: Write):
        with pytest.raises(DataFileError, match="no header, and the first row is 1, 2, cat"):
            open_data(write("a.csv", "1,2,cat\n3,4,dog"))
        assert everything(open_data(write("a.csv", "1,2,cat\n3,4,dog"), Roles("3"))) == (
            [[1, 2], [3, 4]],
            ["cat", "dog"],
        )

    def test_header_of_numbers_with_a_label_name(self, write: Write):
        assert everything(open_data(write("a.csv", "0,1,y\n5,6,1\n"))) == ([[5, 6]], [1])

    @pytest.mark.parametrize("column", ["kind", "2"])
    def test_label_column(self, write: Write, column: str):
        path = write("a.csv", "a,kind,y\n1,7,2\n")
        assert everything(open_data(path, Roles(column))) == ([[1, 2]], [7])

    def test_quotes_line_ends_blank_lines_and_byte_order_mark(self, write: Write):
        content = b'\xef\xbb\xbfa,y\r\n1,"a ""b"", c"\r\n\r\n 2 ,"two\r\nlines"\r\n'
        assert everything(open_data(write("a.csv", content))) == (
            [[1], [2]],
            ['a "b", c', "two\r\nlines"],
        )

    @pytest.mark.parametrize("delimiter", [";", "\t"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    def test_other_separators(self, write: Write, delimiter: str, mark: str):
        lines = ["a,kind,y", "1,2.5,yes", '3,4,"a;b, c\td"']
        content = mark + "\n".join(line.replace(",", delimiter, 2) for line in lines)
        labelled = open_data(write("a.csv", content))
        assert everything(labelled) == ([[1, 2.5], [3, 4]], ["yes", "a;b, c\td"])

    def test_a_comma_in_the_first_line_separates(self, write: Write):
        data = open_data(write("a.csv", "1,a;b\n2,c\n"), Roles("2"))
        assert everything(data) == ([[1], [2]], ["a;b", "c"])
        content = '"a, b";y\n1;2\n'
        assert everything(open_data(write("b.csv", content))) == ([[1]], [2])

    def test_empty_lines_at_the_end_and_format_by_content(self, write: Write):
        assert open_data(write("data.txt", "a,y\n1,2\n3,4\n\n\n")).samples == 2

    @pytest.mark.parametrize(
        ("content", "line", "detail"),
        [
            ("a,y\n1,2\nx,3\n", 3, "column 1 (a): 'x' is not a finite number"),
            ("y,a\n1,2\n3,x\n", 3, "column 2 (a): 'x'"),
            ("a,y\n1,2\n,3\n", 3, "column 1 (a): a number is missing"),
            ("a,y\n1,2\nnan,3\n", 3, "'nan'"),
            ("a,y\n1,2\n1e999,3\n", 3, "'1e999'"),
            ("a,y\n1,2\n1_0,3\n", 3, "'1_0'"),
            ("a,y\n1,2\n3\n", 3, "has 1 columns, the first line has 2"),
            ("a,y\n1,2\n3,4,5\n", 3, "has 3 columns"),
            ("a,y\n1,2\n3,\n", 3, "label is missing"),
            ("a,y\n1,2.0\n3,nan\n", 3, "label is nan"),
            ("a,y\n1,2.0\n3,1e400\n", 3, "label is 1e400"),
            ('a,y\n1,2\n3,"a"b\n', 3, "not CSV"),
            ('a,y\n1,2\n3,"a\n', 3, "not CSV"),
            ("y\n1\n", 1, "bars (|) or spaces separate columns"),
            ("a,y\n1,2\nNaN,3\n", 3, "train with --algorithm adaptive, which takes missing values"),
            ("a,y\n1,2\n,3\n", 3, "a number is missing; fill it in, or train with --algorithm"),
            ("a,b,y\n1,NA,3\n", 2, "'NA'"),
            ("a;y\n1,5;0\n", 2, "column 1 (a): '1,5' has a decimal comma; write it with a point"),
            ("a,b,y\n1,5;2,5\n", 2, "'5;2' holds the separator ';': numbers need decimal points"),
            (
                "room,colour,y\n1,red,0\n",
                2,
                "column 2 (colour): 'red' is not a finite number; leave the column out, write its "
                "words as numbers (0 and 1 in a column for each word), or train with --algorithm",
            ),
            ("a,b,y\n1,red,0\n", 2, "column 2 (b): 'red' is not a finite number; leave"),
        ],
    )
    def test_malformed(self, write: Write, content: str, line: int, detail: str):
        with pytest.raises(DataFileError) as caught:
            open_data(write("a.csv", content))
        assert caught.value.line == line
        assert f"line {line}: " in str(caught.value)
        assert detail in str(caught.value)

    @pytest.mark.parametrize(
        ("cell", "value"),
        [
            (" 12 ", 12.0),
            ("-1e3", -1000.0),
            ("", None),
            (" NaN ", None),
            ("NA", "NA"),
            ("1e400", "1e400"),
            ("inf", "inf"),
            ("747_380_1127", "747_380_1127"),
            ("1_000", "1_000"),
            (" $124.17 ", "$124.17"),
            ("1,5", "1,5"),
            ("x" * 5000, "x" * 5000),
        ],
    )
    def test_a_cell_is_a_number_or_a_text(self, write: Write, cell: str, value: Any):
        path = write("a.csv", f'word,n,y\nred,"{cell}",3\n')
        (batch,) = open_data(path, texts=True).batches(9)
        assert [["red", value]] == batch.X

    @pytest.mark.parametrize("word", ["NA", "n/a", "null", "None"])
    def test_a_missing_value_of_a_column_without_a_name(self, write: Write, word: str):
        (batch,) = open_data(write("a.csv", f"{word},3\n"), Roles("2"), texts=True).batches(9)
        assert batch.X == [[None]]

    def test_columns_without_a_name_are_left_out(self, write: Write):
        path = write("a.csv", ",a,y,\n0,5,x,\n1,6,z,\n")
        assert everything(open_data(path)) == ([[5], [6]], ["x", "z"])
        assert CsvText(path).unnamed == [1, 4]

    def test_words_that_come_again_are_no_header(self, write: Write):
        path = write("a.csv", "e,x,y\np,x,n\ne,b,n\n")
        data = open_data(path, Roles("1"), texts=True)
        assert (data.samples, data.names) == (3, None)
        with pytest.raises(DataFileError, match="no header, and the first row is e, x, y"):
            open_data(path, texts=True)

    def test_a_value_that_is_the_name_of_its_column(self, write: Write):
        content = "amount,male,y\n1,male,u\n2,female,v\n"
        assert open_data(write("a.csv", content), texts=True).names == ("amount", "male")

    def test_a_header_that_comes_again_is_a_header(self, write: Write):
        data = open_data(write("a.csv", "a,y\n1,u\na,y\n2,v\n"), texts=True)
        assert data.names == ("a",)

    def test_two_columns_that_could_be_the_label(self, write: Write):
        with pytest.raises(DataFileError, match="label and y could each be the label"):
            open_data(write("a.csv", "label,a,y\n1,2,3\n"))

    def test_y_beside_another_y(self, write: Write):
        assert everything(open_data(write("a.csv", "Y,y,b\n1,7,2\n"))) == ([[1, 2]], [7])

    def test_weights_and_ids(self, write: Write):
        path = write("a.csv", "order,a,w,y\n007,1,0.5,u\n-12,2,2,v\n")
        (batch,) = open_data(path, Roles(id="order", weight="3")).batches(9)
        assert (np.asarray(batch.X).tolist(), batch.labels) == ([[1], [2]], ["u", "v"])
        assert (batch.weights, list(batch.ids)) == ([0.5, 2.0], ["007", -12])
        with pytest.raises(DataFileError, match="line 2: the weight is '007x', not a number"):
            open_data(write("b.csv", "w,a,y\n007x,1,u\n"), Roles(weight="w"))
        with pytest.raises(DataFileError, match="different columns"):
            open_data(path, Roles("a", "a"))
        with pytest.raises(DataFileError, match="no column 'v'; choose the weight, as weight=NAME"):
            open_data(path, Roles(weight="v"))

    @pytest.mark.parametrize("encoding", ["utf-16-le", "latin-1"])
    def test_another_encoding(self, write: Write, encoding: str):
        path = write("a.csv", "größe,y\n1,0\n".encode(encoding))
        with pytest.raises(DataFileError, match="UTF-8"):
            open_data(path)

    @pytest.mark.parametrize(
        ("encoding", "charset"),
        [("utf-16", None), ("utf-16-le", "UTF-16LE"), ("cp1252", "windows-1252"), ("utf-8", None)],
    )
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a.csv", "größe;y\n1;0\n"),
            ("a.tsv", "größe\ty\r\n1\t0\r\n"),
            ("a.ndjson", '{"größe": 1, "y": 0}\n'),
            ("a.json", '[\n {"größe": 1,\n  "y": 0}]\n'),
        ],
    )
    def test_text_in_another_charset_is_read(
        self, write: Write, name: str, text: str, encoding: str, charset: str | None
    ):
        data = open_data(write(name, text.encode(encoding)), charset=charset)
        assert data.names == ("größe",)
        assert everything(data) == ([[1]], [0])

    def test_a_charset_that_is_not_known(self, write: Write):
        with pytest.raises(DataFileError, match="'ebcdic' is not known; use one of utf-8"):
            open_data(write("a.csv", "a,y\n1,2\n"), charset="ebcdic")

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("a|y\n1,5|2\n", ("a",)),
            ("temp, C;b;y\n1;2;3\n", ("temp, C", "b")),
            ("a;b,c,y\n1,2,3\n", ("a;b", "c")),
            ("a|b,c,y\n1,2,3\n1,2\n", ("a|b", "c")),
        ],
    )
    def test_the_separator_divides_all_rows_alike(
        self, write: Write, text: str, names: tuple[str, ...]
    ):
        path = write("a.csv", text)
        if text.endswith("1,2\n"):
            with pytest.raises(DataFileError, match="line 3: has 2 columns, the first line has 3"):
                open_data(path, texts=True)
        else:
            assert open_data(path, texts=True).names == names

    def test_a_cell_may_be_long(self, write: Write):
        path = write("a.csv", f"a,y\n{'word ' * 100_000},u\n1,v\n")
        (batch,) = open_data(path, texts=True).batches(9)
        assert [len(str(row[0])) for row in batch.X] == [499_999, 3]

    def test_an_open_quotation_mark_is_located(self, write: Write):
        path = write("a.csv", 'a,y\n1,u\n"2,v\n3,w\n')
        with pytest.raises(DataFileError, match="nothing ends, in the row that begins on line 3"):
            open_data(path)

    def test_empty_rows_of_a_spreadsheet_are_skipped(self, write: Write):
        path = write("a.csv", "a,b,y\n1,2,u\n,,\n3,,v\n ,,\n")
        (batch,) = open_data(path, texts=True).batches(9)
        assert (batch.X, batch.labels) == ([[1, 2], [3, None]], ["u", "v"])
        (rows,) = open_data(path, Roles(label="y"), labelled=False, texts=True).batches(9)
        assert len(rows.X) == 4  # each row is predicted

    @pytest.mark.parametrize("content", ["", "\n\n", "a,y\n"])
    def test_nothing_in_it(self, write: Write, content: str):
        with pytest.raises(DataFileError):
            open_data(write("a.csv", content))

    @pytest.mark.parametrize("column", ["absent", "0", "4"])
    def test_no_such_label_column(self, write: Write, column: str):
        with pytest.raises(DataFileError, match="no column"):
            open_data(write("a.csv", "a,b,c\n1,2,3\n"), Roles(column))


class TestLabels:
    @pytest.mark.parametrize(
        ("written", "read"),
        [
            (["1", "-2", "+3"], [1, -2, 3]),
            (["1.0", "2.", "3e0"], [1, 2, 3]),
            (["9223372036854775807", "0"], [2**63 - 1, 0]),
            (["1", "2.5"], [1.0, 2.5]),
            (["1", "b"], ["1", "b"]),
            (["007", "x7"], ["007", "x7"]),
            (["true", "false"], ["true", "false"]),
            (["1_0", "2"], ["1_0", "2"]),
            ([str(2**64), "1"], [str(2**64), "1"]),
            (["0" * 5000 + "1", "1"], ["0" * 5000 + "1", "1"]),
        ],
    )
    def test_one_kind_for_the_whole_column(self, write: Write, written: list, read: list):
        content = "a,y\n" + "".join(f"1,{text}\n" for text in written)
        data = open_data(write("a.csv", content))
        assert typed(everything(data)[1]) == typed(read)


class TestSvmlight:
    def test_indices_from_one(self, write: Write):
        content = "# comment\n+1 1:0.5 3:2 # a note\n\n-1 qid:7 2:1e-3\n1\n"
        data = open_data(write("a.svm", content))
        assert data.features == 3
        assert everything(data) == ([[0.5, 0, 2], [0, 0.001, 0], [0, 0, 0]], [1, -1, 1])

    def test_indices_from_zero(self, write: Write):
        assert everything(open_data(write("a", "a 1:1\nb 0:5 2:6\n"))) == (
            [[0, 1, 0], [5, 0, 6]],
            ["a", "b"],
        )

    def test_width_is_given(self, write: Write):
        assert everything(open_data(write("a.svm", "1 1:5\n"), features=3)) == ([[5, 0, 0]], [1])

    @pytest.mark.parametrize(
        ("content", "line", "detail"),
        [
            ("1 1:2\n1 2:1 1:2\n", 2, "grow"),
            ("1 1:2\n1 1:1 1:2\n", 2, "grow"),
            ("1 1:2\n1 a:2\n", 2, "'a:2' is not index:number"),
            ("1 1:2\n1 -1:2\n", 2, "'-1:2'"),
            ("1 1:2\n1 1:nan\n", 2, "'1:nan'"),
            ("1 1:2\n1 12\n", 2, "'12'"),
            ("1 1:2\nnan 1:2\n", 2, "label is nan"),
            ("1 1:2\n1:2 2:3\n", 2, "label is missing"),
            (f"1 1:2\n1 {'0' * 5000}1:2\n", 2, "is not index:number"),
            (f"1 1:2\n1 {MAX_FEATURES + 1}:2\n", 2, "rows are made dense"),
        ],
    )
    def test_malformed(self, write: Write, content: str, line: int, detail: str):
        with pytest.raises(DataFileError) as caught:
            open_data(write("a.libsvm", content))
        assert caught.value.line == line
        assert detail in str(caught.value)

    def test_wider_than_given(self, write: Write):
        with pytest.raises(DataFileError, match="more than 2 features"):
            open_data(write("a.svm", "1 3:1\n"), features=2)

    def test_no_features_at_all(self, write: Write):
        with pytest.raises(DataFileError, match="no line has a feature"):
            open_data(write("a.svm", "1\n2\n"))


class TestSparse:
    def test_svmlight_and_csr_may_stay_sparse_and_csv_may_become(self, write: Write):
        for name, content in [
            ("a.svm", "1 1:5 3:7\n2 2:0\n"),
            ("a.csv", "a,b,c,y\n5,0,7,1\n0,0,0,2\n"),
        ]:
            data = open_data(write(name, content), sparse=True)
            assert (data.sparse, data.features) == (True, 3)
            ((X, labels, *_),) = data.batches(9)
            assert isinstance(X, SparseRows)
            assert [array.tolist() for array in to_csr(X)] == [[5, 7], [0, 2], [0, 2, 2]]
            assert labels == [1, 2]

    def test_the_file_decides_where_nobody_does(self, tmp_path: Path, write: Write):
        assert open_data(write("a.svm", "1 1:5\n"), sparse=None).sparse
        assert not open_data(write("a.csv", "a,y\n5,1\n"), sparse=None).sparse
        np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.ones(2))
        assert not open_data(tmp_path / "a.npz", sparse=None).sparse

    def test_sparse_rows_are_as_wide_as_indices_can_be(self, write: Write):
        data = open_data(write("a.svm", f"1 1:1 {2**31 - 2}:2\n"), sparse=None)
        assert data.features == 2**31 - 2
        with pytest.raises(DataFileError, match="line 1: index 2147483647 is larger"):
            open_data(write("b.svm", f"1 1:1 {2**31 - 1}:2\n"), sparse=None)

    @pytest.mark.parametrize("sparse", [True, False])
    def test_the_first_index_may_be_given(self, write: Write, sparse: bool):
        path = write("a.svm", "1 2:5\n")
        ((X, *_),) = open_data(path, features=3, sparse=sparse, first_index=0).batches(1)
        dense = dense_rows(X, 3) if isinstance(X, SparseRows) else X
        assert dense.tolist() == [[0, 0, 5]]
        assert open_data(path).first_index == 1
        with pytest.raises(DataFileError, match="index 0 occurs"):
            open_data(write("b.svm", "1 0:5\n"), sparse=sparse, first_index=1)

    @given(
        st.lists(st.lists(st.sampled_from([0.0, -1.5, 2.0]), min_size=3, max_size=3), min_size=1)
    )
    def test_dense_and_back(self, rows: list[list[float]]):
        X = np.array(rows)
        sparse = sparse_rows(X)
        assert dense_rows(sparse, 3).tolist() == rows
        backwards = take_rows(sparse, slice(None, None, -1))
        assert isinstance(backwards, SparseRows)
        assert dense_rows(backwards, 3).tolist() == rows[::-1]
        if sparse.stop[-1] and sparse.indices.max() == 2:
            with pytest.raises(DataFileError, match="beyond the first 2"):
                dense_rows(sparse, 2)


class TestUnlabelled:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.csv", "1,2\n3,4\n"),
            ("a.csv", "a,b\n1,2\n3,4\n"),
            ("a.svm", "1:1 2:2\n1:3 2:4\n"),
            ("a.svm", "7 1:1 2:2\nx 1:3 2:4\n"),
        ],
    )
    def test_no_labels(self, write: Write, name: str, content: str):
        data = open_data(write(name, content), labelled=False)
        assert (data.samples, data.features, data.labelled) == (2, 2, False)
        ((X, labels, *_),) = data.batches(9)
        assert np.asarray(X).tolist() == [[1, 2], [3, 4]]
        assert labels == []

    def test_the_number_of_columns_decides(self, write: Write):
        path = write("a.csv", "1,2\n3,4\n")
        assert not open_data(path, features=2, labelled=None).labelled
        with pytest.raises(DataFileError, match="there is no header"):
            open_data(path, features=1, labelled=None)
        assert open_data(path, Roles("1"), features=2, labelled=None).labelled

    def test_npz_without_y(self, tmp_path: Path):
        np.savez(tmp_path / "a.npz", X=np.eye(2))
        assert not open_data(tmp_path / "a.npz", labelled=None).labelled
        np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.ones(2))
        assert not open_data(tmp_path / "a.npz", labelled=False).labelled
        assert open_data(tmp_path / "a.npz", labelled=None).labelled


class Endless(io.RawIOBase):
    """A file that repeats some bytes after others, and counts what is read."""

    def __init__(self, start: bytes, more: bytes) -> None:
        self.left, self.more, self.taken = start, more, 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        given = (self.left or self.more * 100)[: len(into)]
        self.left = self.left[len(given) :]
        into[: len(given)] = given
        self.taken += len(given)
        return len(given)


class Source:
    """What opens such a file, each time from its beginning."""

    def __init__(self, start: bytes, more: bytes) -> None:
        self.content, self.opened = (start, more), list[Endless]()

    def open(self, *, encoding: str, newline: str | None = None) -> TextIO:
        file = Endless(*self.content)
        self.opened.append(file)
        return io.TextIOWrapper(io.BufferedReader(file), encoding=encoding, newline=newline)


ARGUMENTS: dict[Any, list[Any]] = {CsvText: [Roles("2")], SvmlightText: [None]}


class TestRows:
    """What is read of a file before it is refused does not grow with its longest line."""

    @pytest.mark.parametrize(
        ("kind", "start", "more"),
        [
            (CsvText, b"", b"1,"),
            (CsvText, b"a,y\n", b"x"),
            (CsvText, b"a,y\n", b'"a\n",'),  # one row in many lines
            (SvmlightText, b"1 1:2\n", b"3 "),
        ],
    )
    def test_without_an_end_are_refused(self, kind: Any, start: bytes, more: bytes):
        source = Source(start, more)
        with pytest.raises(DataFileError, match="a row has more than 1,000 characters"):
            list(kind(source, *ARGUMENTS[kind], longest_row=1000))
        assert all(file.taken <= 3 * io.DEFAULT_BUFFER_SIZE for file in source.opened)

    @pytest.mark.parametrize("name", ["a.csv", "a"])
    def test_are_bounded_where_a_file_is_opened(self, write: Write, name: str):
        with pytest.raises(DataFileError, match=f"line 1: .* than {LONGEST_ROW:,} characters"):
            open_data(write(name, "1," * LONGEST_ROW))

    @pytest.mark.parametrize("kind", [CsvText, SvmlightText])
    def test_many_are_no_long_one(self, write: Write, kind: Any):
        lines = {CsvText: "1,2\n\n", SvmlightText: "1 1:2\n# x\n"}[kind]
        rows = kind(write("a", lines * 50), *ARGUMENTS[kind], longest_row=20)
        assert len(list(rows)) == 50


def test_watchers_see_the_bytes_go_by(write: Write):
    content = "1,2\n" * 5000
    for name, text in [("a.csv", f"a,y\n{content}"), ("a.svm", content.replace(",", " 1:"))]:
        seen: list[int] = []
        open_data(write(name, text), watch=seen.append)
        assert len(seen) > 5
        assert seen == sorted(seen)
        assert 0 < seen[0] <= seen[-1] <= len(text)


class TestNpz:
    def save(self, tmp_path: Path, **arrays: object) -> Path:
        np.savez_compressed(tmp_path / "a.npz", **arrays)
        return tmp_path / "a.npz"

    def test_the_committed_sets(self):
        data = open_data(DATA / "pendigits.npz")
        assert (data.samples, data.features) == (7494, 16)
        X, y, *_ = next(data.batches(5))
        assert X[0, :3].tolist() == [47, 100, 27]
        assert typed(y) == typed([8, 2, 1, 4, 1])
        data = open_data(DATA / "elec2.npz")
        assert (data.samples, data.features) == (45312, 8)
        X, y, *_ = next(data.batches(5))
        assert 0 <= X.min() <= X.max() <= 7
        assert typed(y) == typed([0, 0, 0, 0, 1])

    @pytest.mark.parametrize(
        ("y", "labels"),
        [
            (np.array([1, 2], np.uint8), [1, 2]),
            (np.array([1.0, -2.0]), [1, -2]),
            (np.array([1.5, 2.0], np.float32), [1.5, 2.0]),
            (np.array([True, False]), [True, False]),
            (np.array(["é", "b"]), ["é", "b"]),
            (np.array([b"a", b"b"]), ["a", "b"]),
        ],
    )
    def test_labels(self, tmp_path: Path, y: np.ndarray, labels: list):
        data = open_data(self.save(tmp_path, X=np.eye(2), y=y, X_test=np.eye(1)))
        assert typed(everything(data)[1]) == typed(labels)

    def test_csr(self, tmp_path: Path):
        csr = {
            "data": np.array([1.0, 2.0, 3.0, 4.0], np.float32),
            "indices": np.array([0, 2, 1, 1]),
            "indptr": np.array([0, 2, 2, 4]),
            "shape": np.array([3, 3]),
        }
        data = open_data(self.save(tmp_path, y=np.array([1, 2, 3]), **csr))
        assert everything(data)[0] == [[1, 0, 2], [0, 0, 0], [0, 7, 0]]
        assert everything(data, skip=1, limit=1) == ([[0, 0, 0]], [2])

    @pytest.mark.parametrize(
        ("arrays", "detail"),
        [
            ({"X": np.eye(2)}, "no array y"),
            ({"y": np.ones(2)}, "neither X nor"),
            ({"X": np.eye(2), "y": np.ones(3)}, "2 rows and 3 labels"),
            ({"X": np.ones(2), "y": np.ones(2)}, "two-dimensional"),
            ({"X": np.full((2, 1), np.nan), "y": np.ones(2)}, "row 0 of X"),
            ({"X": np.eye(2), "y": np.array([1.0, np.inf])}, "label 1"),
            ({"X": np.eye(2), "y": np.eye(2)}, "one-dimensional"),
            ({"X": np.eye(2), "y": np.array([{}, 1], object)}, "cannot be read as npz"),
            (
                {
                    "data": np.ones(1),
                    "indices": np.array([5]),
                    "indptr": np.array([0, 1]),
                    "shape": np.array([1, 3]),
                    "y": np.ones(1),
                },
                "contradict",
            ),
            (
                {
                    "data": np.ones(1),
                    "indices": np.array([5]),
                    "indptr": np.array([0, 1]),
                    "shape": np.array([1, MAX_FEATURES + 1]),
                    "y": np.ones(1),
                },
                "made dense",
            ),
        ],
    )
    def test_malformed(self, tmp_path: Path, arrays: dict, detail: str):
        with pytest.raises(DataFileError, match=detail):
            open_data(self.save(tmp_path, **arrays))

    def test_not_an_npz(self, write: Write):
        with pytest.raises(DataFileError, match="cannot be read as npz"):
            open_data(write("a.npz", "1,2\n"))

    def test_cut_off(self, write: Write):
        whole = (DATA / "pendigits.npz").read_bytes()
        with pytest.raises(DataFileError, match="cannot be read as npz"):
            open_data(write("a.npz", whole[:5000]))


class TestParts:
    @pytest.mark.parametrize("name", ["a.csv", "a.svm", "a.npz"])
    @pytest.mark.parametrize(
        ("skip", "limit", "expected"),
        [
            (0, None, [0, 1, 2, 3, 4]),
            (2, None, [2, 3, 4]),
            (1, 2, [1, 2]),
            (3, 9, [3, 4]),
            (9, None, []),
            (9, 1, []),
        ],
    )
    def test_skip_and_limit(
        self, tmp_path: Path, write: Write, name: str, skip: int, limit: int, expected: list
    ):
        write("a.csv", "a,y\n" + "".join(f"{i},{i}\n" for i in range(5)))
        write("a.svm", "".join(f"{i} 1:{i}\n" for i in range(5)))
        np.savez(tmp_path / "a.npz", X=np.arange(5)[:, None], y=np.arange(5))
        rows, labels = everything(open_data(tmp_path / name), skip=skip, limit=limit)
        assert labels == expected
        assert rows == [[i] for i in expected]

    def test_batches_can_be_read_again(self, write: Write):
        data = open_data(write("a.csv", "a,y\n1,2\n3,4\n"))
        assert everything(data) == everything(data)


ZIPPED = b"PK\x03\x04" + bytes(22) + b"\x0f\x00\x00\x00xl/workbook.xml<x/>"


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"\xff\xfe1,2", "neither text"),
        (b"\x00\x01\x02\xff", "neither text in UTF-8 nor .* --charset windows-1252"),
        (b"\x1f\x8b\x08\x00", "is compressed: unpack it first, as with gunzip"),
        (b"<html><table><tr><td>a", "is a web page or XML: save it as CSV"),
        (ZIPPED, "is a spreadsheet or another archive: save it as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a spreadsheet .* save it as CSV"),
        (b"SQLite format 3\x00", "is a database of SQLite"),
        (b"\x80\x04\x95\x0a", "is a pickle"),
    ],
)
def test_not_text(write: Write, content: bytes, detail: str):
    with pytest.raises(DataFileError, match=detail):
        open_data(write("a.csv", content))


def test_no_such_file(tmp_path: Path):
    with pytest.raises(DataFileError, match="cannot be read: No such file"):
        open_data(tmp_path / "absent.csv")


class TestTargets:
    """Labels as numbers, where the task is regression."""

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("a,y\n1,2\n2,-3.5\n", [2.0, -3.5]),
            ("a,y\n1,2\n2,1e3\n", [2.0, 1000.0]),
            ("a,y\n1,9223372036854775808\n2,1\n", [2.0**63, 1.0]),
        ],
    )
    def test_are_floats_whatever_they_look_like(
        self, tmp_path: Path, content: str, expected: list[float]
    ):
        (tmp_path / "a.csv").write_text(content)
        data = open_data(tmp_path / "a.csv").for_task("regression")
        told = [label for batch in data.batches(1) for label in batch.labels]
        assert told == expected
        assert {type(label) for label in told} == {float}

    @pytest.mark.parametrize(
        ("name", "content"),
        [("a.csv", "a,y\n1,2\n2,low\n3,high\n"), ("a.svm", "2 1:1\nlow 1:2\nhigh 1:3\n")],
    )
    def test_the_first_word_among_them_is_named(self, tmp_path: Path, name: str, content: str):
        (tmp_path / name).write_text(content)
        data = open_data(tmp_path / name)
        with pytest.raises(DataFileError, match="the label of sample 2 is 'low', not a number"):
            data.for_task("regression")

    def test_they_may_have_a_unit_or_a_currency(self, tmp_path: Path):
        (tmp_path / "a.csv").write_text('a,y\n1,"$1,200"\n2,$800.50\n3,-4\n')
        data = open_data(tmp_path / "a.csv").for_task("regression")
        assert next(iter(data.batches(3))).labels == [1200.0, 800.5, -4.0]

    def test_skipping_and_limits_stay(self, tmp_path: Path):
        np.savez(tmp_path / "a.npz", X=np.ones((9, 1)), y=np.arange(9))
        batches = open_data(tmp_path / "a.npz").for_task("regression").batches(2, skip=3, limit=3)
        assert [batch.labels for batch in batches] == [[3.0, 4.0], [5.0]]

    def test_booleans_are_not_numbers(self, tmp_path: Path):
        np.savez(tmp_path / "a.npz", X=np.ones((2, 1)), y=np.array([True, False]))
        with pytest.raises(DataFileError, match="sample 1 is 'True'"):
            open_data(tmp_path / "a.npz").for_task("regression")


@pytest.mark.parametrize("header", ["a,b,a,y", "y,a,b,a", "a,y,b,y"])
def test_a_header_that_names_two_columns_alike_is_refused(tmp_path: Path, header: str):
    """Its columns would be taken by their places, and nobody would be told."""
    path = tmp_path / "twice.csv"
    path.write_text(f"{header}\n1,2,3,4\n1,2,3,5\n")
    with pytest.raises(DataFileError, match=r"both named '[ay]': rename|could each be the label"):
        open_data(path)


def test_columns_of_one_name_in_a_row_are_a_list(tmp_path: Path):
    path = tmp_path / "issues.csv"
    path.write_text("key,tags,tags,tags,y\n1,ux, perf,,a\n2,,,,b\n3,,,web,a\n")
    data = open_data(path, texts=True)
    assert data.names == ("key", "tags")
    ((X, *_),) = data.batches(9)
    assert X == [[1, "ux, perf"], [2, None], [3, "web"]]


@pytest.mark.parametrize("header", ["tags,tags,y", "a,y,y"])
def test_labels_are_in_no_list(tmp_path: Path, header: str):
    path = tmp_path / "twice.csv"
    path.write_text(f"{header}\n1,2,3\n1,2,4\n")
    with pytest.raises(DataFileError, match=r"both named|could each be the label"):
        open_data(path, Roles(label="tags" if "tags" in header else "y"))


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (["3,5;17,123", "4,25;-8,001"], [17.123, -8.001]),
        (["3.5;17,123", "4.25;-8,001"], [17123.0, -8001.0]),
        (["3,5;1,017,123", "4,25;17,123"], [1017123.0, 17123.0]),
    ],
)
def test_labels_have_decimal_commas_where_the_file_has_them(
    tmp_path: Path, rows: list[str], labels: list[float]
):
    path = tmp_path / "comma.csv"
    path.write_text("\n".join(["a;y", *rows, ""]))
    data = open_data(path, texts=True).for_task("regression")
    assert [label for batch in data.batches(9) for label in batch.labels] == labels
