"""Rows and labels out of decoded bodies, checked; and as they stand in the log."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Annotated, Any, NamedTuple, NoReturn

import msgpack
import numpy as np
from pydantic import FailFast, Field, TypeAdapter, ValidationError

from service.errors import Invalid, InvalidSamples, SampleError, pointer_to
from service.names import NamedRows, Rows, joined, n_rows, named_rows
from solver.rows import Float64Array

Label = str | int | bool

_LONGEST_LABEL = 256
_LONGEST_NAME = 256
_MOST_ERRORS = 20
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Row = Annotated[list[_Number], FailFast()]
_NUMBER = TypeAdapter(_Number)
_ROWS = TypeAdapter(Annotated[list[_Row], FailFast()])
_RAW_DTYPES = {"<f4", "<f8", "<i8"}
_RAW_FIELDS = {"dtype", "shape", "data"}
_NUMERIC = {int, float}
# Of named rows in a record: lengths, places, values.
_COLUMNS = ("<u4", "<u4", "<f8")


class Samples(NamedTuple):
    """Rows, (n, d) finite float64 or finite named numbers, and their n labels."""

    X: Rows
    labels: list[Label]


def read_samples(body: Any) -> Samples:
    """Samples of a learning request; raises InvalidSamples naming every wrong place."""
    fields = _fields(body, ("x", "y"))
    X, single = _read_rows(fields["x"])
    labels = _read_labels(fields["y"], single)
    if len(labels) != n_rows(X):
        _refuse("/y", f"there are {n_rows(X)} rows in x and {len(labels)} labels in y")
    return Samples(X, labels)


def read_rows(body: Any) -> Rows:
    """Rows of a prediction request."""
    return _read_rows(_fields(body, ("x",))["x"])[0]


def to_record(samples: Samples) -> bytes:
    """The samples as one log entry's payload.

    Arrays: [shape, numbers, labels]. Named rows: [names, lengths, places, numbers, labels].
    """
    packed: bytes
    if isinstance(samples.X, NamedRows):
        names, *columns = samples.X
        as_bytes = [c.astype(t).tobytes() for c, t in zip(columns, _COLUMNS, strict=True)]
        packed = msgpack.packb([names, *as_bytes, samples.labels])
    else:
        shape = list(samples.X.shape)
        packed = msgpack.packb([shape, samples.X.astype("<f8").tobytes(), samples.labels])
    return packed


def from_record(record: bytes) -> Samples:
    """Inverse of `to_record`."""
    head, *columns, labels = msgpack.unpackb(record)
    if len(columns) == 1:
        # Copied, because compiled code takes a read-only array for another type.
        return Samples(np.frombuffer(columns[0], "<f8").reshape(head).copy(), labels)
    return Samples(NamedRows(head, *map(np.frombuffer, columns, _COLUMNS)), labels)


def one_after_another(parts: Sequence[Samples]) -> Samples:
    """The samples of all parts, which have one kind of rows."""
    labels = [label for part in parts for label in part.labels]
    arrays = [part.X for part in parts if not isinstance(part.X, NamedRows)]
    if arrays:
        return Samples(np.concatenate(arrays), labels)
    return Samples(joined([part.X for part in parts if isinstance(part.X, NamedRows)]), labels)


def _fields(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Invalid(f"the body must be an object with {' and '.join(names)}")
    unknown = (name for name in body if name not in names)
    problems: list[SampleError] = [
        {"pointer": pointer_to(name), "detail": "unknown field"}
        for name in islice(unknown, _MOST_ERRORS)
    ]
    problems += [{"pointer": f"/{n}", "detail": "field is missing"} for n in names if n not in body]
    if problems:
        raise Invalid(f"the body must have {' and '.join(names)} and nothing else", problems)
    return body


def _read_rows(x: Any) -> tuple[Rows, bool]:
    """Rows, and whether `x` was one row without a list around it."""
    if isinstance(x, dict):
        if _is_raw(x):
            return _read_raw_rows(x)
        return _read_named_rows([x], ["/x"]), True
    if not isinstance(x, list):
        _refuse("/x", "must be an array of rows, or one row")
    if not x:
        _refuse("/x", "is empty")
    if isinstance(x[0], dict):
        return _read_named_rows(x, (f"/x/{i}" for i in range(len(x)))), False
    single = not isinstance(x[0], list)
    try:
        rows = _ROWS.validate_python([x] if single else x)
    except ValidationError:
        wrong = _wrong_numbers(x, 0, "/x") if single else _wrong_in_rows(x)
        _refuse_all("some rows are not arrays of finite numbers", wrong)
    width = len(rows[0])
    _refuse_all("rows differ in length", _uneven(rows, width))
    return _two_dimensional(np.array(rows)), single


def _is_raw(x: dict[Any, Any]) -> bool:
    """Whether an object is a raw array: a row may have these names too, but has numbers there."""
    return x.keys() == _RAW_FIELDS and not all(type(value) in _NUMERIC for value in x.values())


def _read_named_rows(x: list[Any], pointers: Iterable[str]) -> NamedRows:
    """Rows of named numbers, of which each stands at its pointer."""
    if all(type(row) is dict for row in x) and _are_named_numbers(x):
        try:
            rows = named_rows(x)
        except OverflowError:
            pass  # a whole number beyond float64; found below
        else:
            if np.isfinite(rows.value).all():
                return rows
    wrong = (_wrong_named(row, i, at) for i, (row, at) in enumerate(zip(x, pointers, strict=True)))
    _refuse_all("some rows are not objects of named finite numbers", chain.from_iterable(wrong))
    raise AssertionError("rows that were refused have nothing wrong")


def _are_named_numbers(x: list[dict[Any, Any]]) -> bool:
    """Whether all names will do and all values are numbers, if not finite ones."""
    if not {type(value) for row in x for value in row.values()} <= _NUMERIC:
        return False
    return not any(_name_problem(name) for name in set(chain.from_iterable(x)))


def _wrong_named(row: Any, i: int, pointer: str) -> Iterator[SampleError]:
    """What is wrong with a row. A name that will not do is not repeated in a pointer."""
    if type(row) is not dict:
        detail = "must be an object of named numbers: all rows of a request are of one kind"
        yield {"row": i, "pointer": pointer, "detail": detail}
        return
    for name, value in row.items():
        detail = _name_problem(name)
        if detail:
            yield {"row": i, "pointer": pointer, "detail": f"has a name that {detail}"}
            continue
        detail = _number_problem(value)
        if detail:
            yield {"row": i, "pointer": pointer + pointer_to(name), "detail": detail}


def _name_problem(name: Any) -> str:
    """What is wrong with a feature's name; empty if nothing is."""
    if type(name) is not str:
        return "is not text"
    if not 1 <= len(name) <= _LONGEST_NAME:
        return f"does not have 1 to {_LONGEST_NAME} characters"
    return "" if _is_unicode(name) else "is not valid Unicode"


def _read_raw_rows(x: dict[str, Any]) -> tuple[Float64Array, bool]:
    with np.errstate(invalid="ignore"):  # a signalling NaN is refused below like any other
        values = _read_raw(x, "/x").astype(np.float64)
    single = values.ndim == 1
    rows = _two_dimensional(values[None, :] if single else values)
    wrong = np.argwhere(~np.isfinite(rows))[:_MOST_ERRORS]
    if len(wrong):
        raise InvalidSamples(
            "some numbers are not finite",
            [
                {"row": int(i), "pointer": f"/x/{i}/{k}", "detail": "is NaN or infinite"}
                for i, k in wrong
            ],
        )
    return rows, single


def _read_raw(raw: dict[str, Any], pointer: str) -> np.ndarray[Any, Any]:
    """An array sent as {"dtype", "shape", "data"}; a copy, aligned and writable."""
    if raw.keys() != _RAW_FIELDS:
        _refuse(pointer, "must be an array, or {dtype, shape, data}")
    dtype, shape, data = raw["dtype"], raw["shape"], raw["data"]
    if not isinstance(dtype, str) or dtype not in _RAW_DTYPES:
        _refuse(f"{pointer}/dtype", 'must be "<f4", "<f8" or "<i8"')
    if (
        not isinstance(shape, list)
        or not 1 <= len(shape) <= 2
        or not all(type(length) is int and 0 <= length < 2**31 for length in shape)
    ):
        _refuse(f"{pointer}/shape", "must be one or two lengths")
    if not isinstance(data, bytes):
        _refuse(f"{pointer}/data", "must be bytes, which only MessagePack can carry")
    count = 1
    for length in shape:
        count *= length
    expected = count * np.dtype(dtype).itemsize
    if len(data) != expected:
        _refuse(f"{pointer}/data", f"has {len(data)} bytes, dtype and shape need {expected}")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _two_dimensional(rows: Float64Array) -> Float64Array:
    if rows.shape[0] == 0:
        _refuse("/x", "is empty")
    if rows.shape[1] == 0:
        _refuse("/x/0", "has no numbers")
    return np.ascontiguousarray(rows, np.float64)


def _read_labels(y: Any, single: bool) -> list[Label]:
    if isinstance(y, dict):
        raw = _read_raw(y, "/y")
        if raw.dtype.kind != "i" or raw.ndim != 1:
            _refuse("/y", 'a raw array of labels must have dtype "<i8" and one dimension')
        return list(raw.tolist())
    if single:
        y = [y]
    if not isinstance(y, list):
        _refuse("/y", "must be an array of labels, one for each row")
    _refuse_all("some labels are not valid", _wrong_labels(y, single))
    return y


def _wrong_labels(y: list[Any], single: bool) -> Iterator[SampleError]:
    for i, label in enumerate(y):
        detail = _label_problem(label)
        if detail:
            yield {"row": i, "pointer": "/y" if single else f"/y/{i}", "detail": detail}


def _label_problem(label: Any) -> str:
    """What is wrong with a label; empty if nothing is."""
    if type(label) is bool:
        return ""
    if type(label) is int:
        return "" if -(2**63) <= label < 2**63 else "does not fit into 64 bits"
    if type(label) is not str:
        return "must be a string, an integer or a boolean"
    if len(label) > _LONGEST_LABEL:
        return f"is longer than {_LONGEST_LABEL} characters"
    return "" if _is_unicode(label) else "is not valid Unicode"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wrong_in_rows(x: list[Any]) -> Iterator[SampleError]:
    for i, row in enumerate(x):
        if isinstance(row, list):
            yield from _wrong_numbers(row, i, f"/x/{i}")
        else:
            detail = "must be an array of numbers"
            if isinstance(row, dict):
                detail += ": all rows of a request are of one kind"
            yield {"row": i, "pointer": f"/x/{i}", "detail": detail}


def _wrong_numbers(row: list[Any], i: int, pointer: str) -> Iterator[SampleError]:
    for k, value in enumerate(row):
        detail = _number_problem(value)
        if detail:
            yield {"row": i, "pointer": f"{pointer}/{k}", "detail": detail}


def _number_problem(value: Any) -> str:
    """What is wrong with a number; empty if nothing is."""
    try:
        _NUMBER.validate_python(value)
    except ValidationError as error:
        return error.errors(include_url=False)[0]["msg"]
    return ""


def _uneven(rows: list[list[float]], width: int) -> Iterator[SampleError]:
    for i, row in enumerate(rows):
        if len(row) != width:
            detail = f"has {len(row)} numbers, row 0 has {width}"
            yield {"row": i, "pointer": f"/x/{i}", "detail": detail}


def _refuse_all(detail: str, wrong: Iterable[SampleError]) -> None:
    """Raise with the first of the wrong places, if there is any; no more are looked for."""
    errors = list(islice(wrong, _MOST_ERRORS))
    if errors:
        raise InvalidSamples(detail, errors)


def _refuse(pointer: str, detail: str) -> NoReturn:
    raise InvalidSamples(f"{pointer} {detail}", [{"pointer": pointer, "detail": detail}])
