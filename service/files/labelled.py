"""Labelled data files: text, npz, NDJSON, Arrow and Parquet, checked, then read batch by batch.

A text file may be of any size, because it is read twice: first to check every line, count the
samples and determine the type of the labels, then to yield batches. Other files are held in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.files.arrow import Columns, is_arrow, is_parquet, read_table_file
from wolfstream.service.files.charset import TextFile
from wolfstream.service.files.foreign import refuse_foreign
from wolfstream.service.files.left_out import LeftOut, left_out_parts
from wolfstream.service.files.ndjson import is_ndjson, read_ndjson
from wolfstream.service.files.npz import Label, dense_rows, read_npz, sparse_rows
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.files.separated import CsvText
from wolfstream.service.files.svmlight import SvmlightText, looks_like_svmlight
from wolfstream.service.files.tables import rows_of_columns
from wolfstream.service.files.text import MAX_FEATURES, DataFileError, Watch, number_in
from wolfstream.solver.prepare.read_cells import number_of
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, take_rows

__all__ = [
    "MAX_FEATURES",
    "Batch",
    "DataFileError",
    "Label",
    "LabelledFile",
    "kind_of",
    "label_reader",
    "open_data",
]

# A longer text is not read as a number: Python refuses integers of more than 4,300 digits.
_LONGEST_NUMBER = 1000
_SVMLIGHT_SUFFIXES = {".svm", ".svmlight", ".libsvm"}


class Batch(NamedTuple):
    """Some of a file's rows, with their labels, weights and ids.

    Attributes:
        X: dense or sparse rows, float64; lists if there are texts or missing values.
        labels: the labels of the rows; [] if the file has none.
        weights: the weights of the rows; None if all are 1.
        ids: the ids of the rows; [] if the file has none.
    """

    X: Matrix | list[list[Any]]
    labels: list[Label]
    weights: list[float] | None = None
    ids: Sequence[str | int] = ()


class ReadOptions(NamedTuple):
    """The arguments of `open_data` besides the path."""

    roles: Roles = NO_ROLES
    features: int | None = None
    sparse: bool | None = False
    labelled: bool | None = True
    first_index: int | None = None
    watch: Watch | None = None
    texts: bool = False
    charset: str | None = None


@dataclass(frozen=True)
class LabelledFile:
    """A checked file of `samples` rows with `features` numbers each.

    Attributes:
        samples: the number of rows.
        features: the number of features.
        sparse: whether rows are sparse.
        labelled: whether each row has a label.
        first_index: the index of an svmlight file's first feature; None for other files.
        word: part of a sentence about the first label that is not a number, not even one with a
            unit or a currency; "" if all labels are numbers.
        names: the names of the features, from the header of a table; None for other files.
        plain: whether all values are numbers.
        left_out: what of a table is left out without being refused.
    """

    samples: int
    features: int
    sparse: bool
    labelled: bool
    first_index: int | None
    word: str
    names: tuple[str, ...] | None
    plain: bool
    _read: Callable[[int, int, int], Iterator[Batch]]
    left_out: Sequence[LeftOut] = ()

    def for_task(self, task: str) -> "LabelledFile":
        """Return the file for a model of a task; for regression, with its labels as numbers.

        Raises DataFileError if the task is regression and a label is not a number.
        """
        if task != "regression":
            return self
        if self.word:
            raise DataFileError(f"the task is regression, but {self.word}, not a number")

        def read(size: int, skip: int, stop: int) -> Iterator[Batch]:
            for batch in self._read(size, skip, stop):
                targets: list[Label] = [
                    x for label in batch.labels if (x := _target(label)) is not None
                ]
                yield batch._replace(labels=targets)

        return replace(self, _read=read)

    def batches(self, size: int, skip: int = 0, limit: int | None = None) -> Iterator[Batch]:
        """Yield batches of `size` rows: at most `limit` rows, after the first `skip`."""
        for batch in self._read(size, skip, self.samples if limit is None else skip + limit):
            X = batch.X
            if isinstance(X, list):
                yield batch
                continue
            if self.sparse and not isinstance(X, SparseRows):
                X = sparse_rows(np.asarray(X, np.float64))
            elif not self.sparse:
                dense = dense_rows(X, self.features) if isinstance(X, SparseRows) else X
                X = np.asarray(dense, np.float64)
            yield batch._replace(X=X)


def open_data(
    path: Path,
    roles: Roles = NO_ROLES,
    features: int | None = None,
    *,
    sparse: bool | None = False,
    labelled: bool | None = True,
    first_index: int | None = None,
    watch: Watch | None = None,
    texts: bool = False,
    charset: str | None = None,
) -> LabelledFile:
    """Check a file from end to end. Its suffix, or else its content, determines its format.

    Args:
        path: the path of the file.
        roles: the columns of a table that are not features.
        features: the width of svmlight and CSR rows; None for what the largest index needs.
        sparse: whether to return sparse rows; None for svmlight files and CSR arrays only.
        labelled: whether rows must have labels; None if they may lack them. Then a CSV file has
            none if it has `features` columns, or if no column of its header names labels.
        first_index: the first index of svmlight rows, 0 or 1; None for 0 if that index occurs.
        watch: called repeatedly with the number of bytes of a text file read so far.
        texts: whether a table may have texts and missing values.
        charset: the charset of a text; None for UTF-8, or UTF-16 with its byte order mark.

    Raises DataFileError.
    """
    if path.is_fifo():
        raise DataFileError(
            "is a pipe, and a file is checked from end to end before it is read: save it as a file"
        )
    wanted = ReadOptions(roles, features, sparse, labelled, first_index, watch, texts, charset)
    source = TextFile(path, charset)
    try:
        if _is_npz(path):
            return _open_npz(path, wanted)
        if is_parquet(path) or is_arrow(path):
            return _open_table(read_table_file(path), wanted)
        refuse_foreign(path)
        if path.suffix != ".csv" and is_ndjson(source):
            return _open_ndjson(source, wanted)
        if path.suffix in _SVMLIGHT_SUFFIXES or (
            path.suffix != ".csv" and looks_like_svmlight(source)
        ):
            return _open_svmlight(source, wanted)
        return _open_csv(source, wanted)
    except OSError as error:
        raise DataFileError(f"cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"is neither text in {charset or 'UTF-8'} nor another data file: {error.reason}; if it "
            "is text, name its charset, as in --charset windows-1252 for what older spreadsheets "
            "export, or save it as UTF-8"
        ) from None


def _open_ndjson(source: TextFile, wanted: ReadOptions) -> LabelledFile:
    table = read_ndjson(source, wanted.watch)
    if table.roles is not None:
        if wanted.roles != NO_ROLES:
            raise DataFileError("label, id and weight name columns, and samples with x have none")
        wanted = wanted._replace(roles=table.roles)
    opened = _open_table(table.columns, wanted)
    return opened if table.named else replace(opened, names=None)


def _open_table(columns: Columns, wanted: ReadOptions) -> LabelledFile:
    table = rows_of_columns(columns, wanted.roles, wanted.labelled)
    X, labels = table.X, table.labels or []
    if not len(X):
        raise DataFileError("has no samples")
    plain = not isinstance(X, list) and not np.isnan(X).any()
    if not plain and not wanted.texts:
        raise DataFileError(
            "has texts or missing values; leave their columns out, or train with --algorithm "
            "adaptive, which learns them"
        )

    def read(size: int, skip: int, stop: int) -> Iterator[Batch]:
        for start in range(skip, min(stop, len(X)), size):
            part = slice(start, min(start + size, stop))
            weights = None if table.weights is None else table.weights[part]
            yield Batch(X[part], labels[part], weights, (table.ids or [])[part])

    words = (_word(i, y) for i, y in enumerate(labels, 1) if _target(y) is None)
    return LabelledFile(
        len(X),
        len(table.names),
        bool(wanted.sparse),
        table.labels is not None,
        None,
        next(words, ""),
        tuple(table.names),
        plain,
        read,
        left_out_parts(titles=0, unnamed=table.unnamed),
    )


def _is_npz(path: Path) -> bool:
    """Return whether a file is npz, by its suffix or as an archive whose first member is an array.

    Spreadsheets are archives, too.
    """
    with path.open("rb") as file:
        header = file.read(30)
        name = file.read(int.from_bytes(header[26:28], "little"))
    return path.suffix == ".npz" or (header[:4] == b"PK\x03\x04" and name.endswith(b".npy"))


def _open_csv(source: TextFile, wanted: ReadOptions) -> LabelledFile:
    unlabelled_columns = wanted.features if wanted.labelled is None else None
    lines = CsvText(
        source,
        wanted.roles,
        wanted.labelled,
        unlabelled_columns,
        wanted.watch,
        texts=wanted.texts,
    )
    return _open_text(lines, bool(wanted.sparse), None)


def _open_svmlight(source: TextFile, wanted: ReadOptions) -> LabelledFile:
    sparse = wanted.sparse is not False
    lines = SvmlightText(
        source,
        wanted.features,
        sparse,
        wanted.first_index,
        wanted.labelled is not False,
        wanted.watch,
    )
    return _open_text(lines, sparse, lines)


def _open_text(
    lines: CsvText | SvmlightText, sparse: bool, indexed: SvmlightText | None
) -> LabelledFile:
    samples = 0
    kinds: set[type] = set()
    word = ""
    plain = True
    for row, text, _, _ in lines:
        samples += 1
        plain = plain and not isinstance(row, list)
        kinds.add(kind_of(text))
        if str in kinds and not word and _target(text) is None:
            word = _word(samples, text)
    if not samples:
        raise DataFileError("has no samples")
    features = lines.features()
    label = label_reader(kinds)

    def read(size: int, skip: int, stop: int) -> Iterator[Batch]:
        wanted = islice(lines, skip, stop)
        while records := list(islice(wanted, size)):
            rows, texts, weights, ids = zip(*records, strict=True)
            labels = [label(text) for text in texts] if lines.labelled else []
            X = _matrix_or_lists(lines, rows)
            yield Batch(X, labels, None if weights[0] is None else list(weights), ids)

    first_index = indexed.first_index if indexed else None
    header = lines.names if isinstance(lines, CsvText) else None
    names = None if header is None else tuple(header)
    left_out = lines.left_out if isinstance(lines, CsvText) else ()
    return LabelledFile(
        samples, features, sparse, lines.labelled, first_index, word, names, plain, read, left_out
    )


def _matrix_or_lists(
    lines: CsvText | SvmlightText, rows: Sequence[Any]
) -> Matrix | list[list[Any]]:
    if any(isinstance(row, list) for row in rows):
        return [row if isinstance(row, list) else row.tolist() for row in rows]
    return lines.matrix(rows)


def _word(sample: int, label: Label) -> str:
    """Return part of a sentence about a label that is not a number."""
    return f"the label of sample {sample:,} is {str(label)[:40]!r}"


def _target(label: Label) -> float | None:
    """Return a label as a number, also with a unit or a currency; None if it is not a number."""
    if isinstance(label, str):
        number = number_in(label)
        return number_of(label) if number is None else number
    return None if isinstance(label, bool) else float(label)


def kind_of(text: str) -> type:
    """Return the type that a single label suggests; 2.0 suggests an integer."""
    value = number_in(text) if len(text) <= _LONGEST_NUMBER else None
    if value is None or not value.is_integer():
        return str if value is None else float
    if _is_integer(text):
        return int if -(2**63) <= int(text) < 2**63 else str
    return int if abs(value) <= 2**53 else float


def label_reader(kinds: set[type]) -> Callable[[str], Label]:
    """Return a function that reads labels of these types as integers, else floats, else strings."""
    if kinds == {int}:
        # A float cannot hold every 64-bit integer, so only texts such as 2.0 go through one.
        return lambda text: int(text) if _is_integer(text) else int(float(text))
    return str if str in kinds else float


def _is_integer(text: str) -> bool:
    return text.lstrip("+-").isdecimal()


def _open_npz(path: Path, wanted: ReadOptions) -> LabelledFile:
    sparse = wanted.sparse
    X, labels = read_npz(path, sparse is not False, wanted.labelled)
    stays_sparse = isinstance(X, SparseRows) if sparse is None else sparse
    width = X.width if isinstance(X, SparseRows) else X.shape[1]

    def read(size: int, skip: int, stop: int) -> Iterator[Batch]:
        for start in range(skip, min(stop, n_rows(X)), size):
            part = slice(start, min(start + size, stop))
            yield Batch(take_rows(X, part), labels[part])

    if wanted.features and isinstance(X, SparseRows):
        if width > wanted.features and not stays_sparse:
            raise DataFileError(f"has {width} features: more than {wanted.features}")
        width = wanted.features
    words = (_word(i, y) for i, y in enumerate(labels, 1) if _target(y) is None)
    word = next(words, "")
    return LabelledFile(n_rows(X), width, stays_sparse, bool(labels), None, word, None, True, read)
