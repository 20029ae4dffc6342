"""Rows and labels out of decoded bodies, checked; and as they stand in the log."""

from typing import Annotated, Any, NamedTuple, NoReturn

import msgpack
import numpy as np
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from service.errors import Invalid, InvalidSamples, SampleError
from solver.kernels import Float64Array

Label = str | int | bool

_LONGEST_LABEL = 256
_MOST_ERRORS = 20
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_ONE_ROW = TypeAdapter(list[_Number])
_ROWS = TypeAdapter(list[list[_Number]])
_RAW_DTYPES = {"<f4", "<f8", "<i8"}


class Samples(NamedTuple):
    """Rows (n, d), float64, finite, and their n labels."""

    X: Float64Array
    labels: list[Label]


def read_samples(body: Any) -> Samples:
    """Samples of a learning request; raises InvalidSamples naming every wrong place."""
    fields = _fields(body, ("x", "y"))
    X, single = _read_rows(fields["x"])
    labels = _read_labels(fields["y"], single)
    if len(labels) != len(X):
        _refuse("/y", f"there are {len(X)} rows in x and {len(labels)} labels in y")
    return Samples(X, labels)


def read_rows(body: Any) -> Float64Array:
    """Rows of a prediction request."""
    return _read_rows(_fields(body, ("x",))["x"])[0]


def to_record(samples: Samples) -> bytes:
    """The samples as one log entry's payload."""
    shape = list(samples.X.shape)
    packed: bytes = msgpack.packb([shape, samples.X.astype("<f8").tobytes(), samples.labels])
    return packed


def from_record(record: bytes) -> Samples:
    """Inverse of `to_record`."""
    shape, data, labels = msgpack.unpackb(record)
    # Copied, because compiled code takes a read-only array for another type.
    return Samples(np.frombuffer(data, "<f8").reshape(shape).copy(), labels)


def _fields(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Invalid(f"the body must be an object with {' and '.join(names)}")
    problems: list[SampleError] = [
        {"pointer": f"/{name}", "detail": "unknown field"} for name in body if name not in names
    ]
    problems += [{"pointer": f"/{n}", "detail": "field is missing"} for n in names if n not in body]
    if problems:
        raise Invalid(f"the body must have {' and '.join(names)} and nothing else", problems)
    return body


def _read_rows(x: Any) -> tuple[Float64Array, bool]:
    """Rows, and whether `x` was one row without a list around it."""
    if isinstance(x, dict):
        return _read_raw_rows(x)
    if not isinstance(x, list):
        _refuse("/x", "must be an array of rows, or one row of numbers")
    if not x:
        _refuse("/x", "is empty")
    single = not isinstance(x[0], list | dict)
    try:
        if single:
            return _two_dimensional(np.array(_ONE_ROW.validate_python(x))[None, :]), True
        rows = _ROWS.validate_python(x)
    except ValidationError as error:
        raise InvalidSamples(
            "some rows are not arrays of finite numbers", _row_errors(error, single)
        ) from None
    width = len(rows[0])
    uneven: list[SampleError] = [
        {"row": i, "pointer": f"/x/{i}", "detail": f"has {len(row)} numbers, row 0 has {width}"}
        for i, row in enumerate(rows)
        if len(row) != width
    ]
    if uneven:
        raise InvalidSamples("rows differ in length", uneven[:_MOST_ERRORS])
    return _two_dimensional(np.array(rows)), False


def _read_raw_rows(x: dict[str, Any]) -> tuple[Float64Array, bool]:
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
    if set(raw) != {"dtype", "shape", "data"}:
        _refuse(
            pointer,
            "must be an array of rows, or {dtype, shape, data}; rows of named numbers are not "
            "supported by this version",
        )
    dtype, shape, data = raw["dtype"], raw["shape"], raw["data"]
    if dtype not in _RAW_DTYPES:
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
    wrong: list[SampleError] = []
    for i, label in enumerate(y):
        detail = _label_problem(label)
        if detail:
            wrong.append({"row": i, "pointer": "/y" if single else f"/y/{i}", "detail": detail})
    if wrong:
        raise InvalidSamples("some labels are not valid", wrong[:_MOST_ERRORS])
    return y


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
    try:
        label.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return ""


def _row_errors(error: ValidationError, single: bool) -> list[SampleError]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [_row_error(item, single) for item in found[:_MOST_ERRORS]]


def _row_error(item: ErrorDetails, single: bool) -> SampleError:
    place = [0, *item["loc"]] if single else list(item["loc"])
    pointer = "".join(f"/{part}" for part in item["loc"])
    return {"row": int(place[0]), "pointer": f"/x{pointer}", "detail": item["msg"]}


def _refuse(pointer: str, detail: str) -> NoReturn:
    raise InvalidSamples(f"{pointer} {detail}", [{"pointer": pointer, "detail": detail}])
