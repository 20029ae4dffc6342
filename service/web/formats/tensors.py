"""Tensors of the Open Inference Protocol: numbers in, labels and numbers out.

In JSON a tensor's data are a list in row-major order, flat or nested as the shape is. Binary data
are the elements' little-endian bytes in row-major order; before each BYTES element is its length,
a 4-byte unsigned integer.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.calls.problems import Fault
from wolfstream.service.errors import Invalid
from wolfstream.service.samples.targets import Label
from wolfstream.service.samples.validation import read_rows
from wolfstream.solver.arrays import Float64Array

_LIMITS: dict[str, tuple[str, Any]] = {  # numpy's names and limits
    "FP64": ("<f8", np.finfo("f8")),
    "FP32": ("<f4", np.finfo("f4")),
    "FP16": ("<f2", np.finfo("f2")),
    "INT64": ("<i8", np.iinfo("i8")),
    "INT32": ("<i4", np.iinfo("i4")),
    "INT16": ("<i2", np.iinfo("i2")),
    "INT8": ("<i1", np.iinfo("i1")),
    "UINT64": ("<u8", np.iinfo("u8")),
    "UINT32": ("<u4", np.iinfo("u4")),
    "UINT16": ("<u2", np.iinfo("u2")),
    "UINT8": ("<u1", np.iinfo("u1")),
}
NUMERIC = tuple(_LIMITS)
"""The datatypes of inputs."""

_OUTPUT = {"FP64": "<f8", "INT64": "<i8", "BOOL": "?"}
_LONGEST = 2**40
# With a hundred numbers each, they take some milliseconds.
_ROWS_AT_A_TIME = 1024


class Output(NamedTuple):
    """A tensor of a response, its values in row-major order, or as an array of its shape."""

    name: str
    datatype: str
    shape: list[int]
    values: list[Any] | Float64Array


class _Input(NamedTuple):
    """A tensor of n rows of d numbers: unchecked values from JSON, or numbers from binary data."""

    name: str
    datatype: str
    shape: tuple[int, int]
    values: list[Any]
    numbers: Float64Array | None


def read_numbers(tensors: Iterable[tuple[dict[str, Any], bytes | None]]) -> list[Float64Array]:
    """Return the finite numbers of inputs, each (n, d) float64; (n, 1) where a shape is [n].

    Each input comes with its binary data, or None if its data are in the JSON; the latter are
    checked together, because there may be thousands of small ones. Raises Invalid.
    """
    inputs = [_read_input(tensor, binary) for tensor, binary in tensors]
    checked = _check_values([one for one in inputs if one.numbers is None])
    return [next(checked) if one.numbers is None else one.numbers for one in inputs]


def _read_input(tensor: dict[str, Any], binary: bytes | None) -> _Input:
    name, datatype = tensor["name"], tensor.get("datatype")
    if not isinstance(datatype, str) or datatype not in _LIMITS:
        refuse(name, f"datatype must be one of {', '.join(NUMERIC)}")
    n, d = shape = _read_shape(name, tensor.get("shape"))
    if binary is None:
        return _Input(name, datatype, shape, _flat(name, tensor.get("data"), n, d), None)
    dtype = np.dtype(_LIMITS[datatype][0])
    expected = n * d * dtype.itemsize
    if len(binary) != expected:
        refuse(name, f"binary_data_size is {len(binary)}, shape and datatype need {expected}")
    with np.errstate(invalid="ignore"):  # a signalling NaN is refused below, like any other
        numbers = np.frombuffer(binary, dtype).astype(np.float64).reshape(shape)
    if not np.isfinite(numbers).all():
        row, number = np.argwhere(~np.isfinite(numbers))[0].tolist()
        refuse(name, f"number {number} of row {row} is not finite")
    return _Input(name, datatype, shape, [], numbers)


def _read_shape(name: str, shape: Any) -> tuple[int, int]:
    if (
        not isinstance(shape, list)
        or not 1 <= len(shape) <= 2
        or not all(type(length) is int and 1 <= length <= _LONGEST for length in shape)
    ):
        refuse(name, "shape must be one or two lengths, each 1 or more")
    return shape[0], shape[1] if len(shape) == 2 else 1


def _flat(name: str, data: Any, n: int, d: int) -> list[Any]:
    """Return the n times d values of nested or flat data. Raises Invalid for more or fewer."""
    if not isinstance(data, list):
        refuse(name, "data must be a list, flat or nested; or give binary_data_size")
    if data and isinstance(data[0], list):
        if len(data) != n or not all(isinstance(row, list) and len(row) == d for row in data):
            refuse(name, f"data are not {n} rows of {d} numbers, as shape says")
        return list(chain.from_iterable(data))
    if len(data) != n * d:
        refuse(name, f"data have {len(data)} numbers, shape needs {n * d}")
    return data


def _check_values(inputs: list[_Input]) -> Iterator[Float64Array]:
    """Values of JSON as numbers. Raises Invalid for any that is not a finite number."""
    if not inputs:
        return
    try:
        numbers = read_rows({"x": [list(chain.from_iterable(one.values for one in inputs))]})
    except Invalid as error:
        place = int(error.errors[0]["pointer"].rpartition("/")[2])
        for one in inputs:
            if place < len(one.values):
                row, number = divmod(place, one.shape[1])
                detail = error.errors[0]["detail"]
                refuse(one.name, f"number {number} of row {row}: {detail}")
            place -= len(one.values)
        raise
    assert isinstance(numbers, np.ndarray)
    start = 0
    for one in inputs:
        stop = start + len(one.values)
        part = numbers[0, start:stop].reshape(one.shape)
        start = stop
        if one.datatype != "FP64":
            _check_kind(one, part)
        yield part


def _check_kind(given: _Input, numbers: Float64Array) -> None:
    """Refuse JSON numbers outside the datatype's range, and fractions as integers."""
    limits = _LIMITS[given.datatype][1]
    fits = (numbers >= float(limits.min)) & (numbers <= float(limits.max))
    if isinstance(limits, np.iinfo):
        fits &= numbers == np.trunc(numbers)
    if not fits.all():
        refuse(given.name, f"{float(numbers[~fits][0])!r} is not of type {given.datatype}")


def datatype_of_labels(labels: Iterable[Label | float]) -> str:
    """The datatype of predictions: BOOL, INT64 or FP64 if all are such, else BYTES, as text."""
    kinds = {type(label) for label in labels}
    if kinds == {bool}:
        return "BOOL"
    if kinds == {int}:
        return "INT64"
    return "FP64" if kinds and kinds <= {int, float} else "BYTES"


def as_text(label: Label) -> str:
    """Return a label as an element of BYTES: strings as they are, others as in JSON."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label)


def write_tensor(output: Output, binary: bool) -> tuple[dict[str, Any], bytes]:
    """Return an output's JSON and its binary data, which is empty unless it is binary."""
    tensor: dict[str, Any] = {
        "name": output.name,
        "datatype": output.datatype,
        "shape": output.shape,
    }
    values = output.values
    if not binary:
        return tensor | {"data": values if isinstance(values, list) else _as_list(values)}, b""
    if output.datatype == "BYTES":
        elements = [text.encode() for text in values]
        data = b"".join(chain.from_iterable((struct.pack("<I", len(e)), e) for e in elements))
    else:
        dtype = _OUTPUT[output.datatype]
        array = as_array(values, dtype) if isinstance(values, list) else values.astype(dtype)
        data = array.tobytes()
    return tensor | {"parameters": {"binary_data_size": len(data)}}, data


def as_array(rows: list[Any], dtype: str = "<f8") -> NDArray[Any]:
    """Rows of numbers as an array, some at a time: each conversion holds the interpreter lock."""
    starts = range(0, len(rows), _ROWS_AT_A_TIME)
    return np.concatenate([np.array(rows[at : at + _ROWS_AT_A_TIME], dtype) for at in starts])


def _as_list(array: Float64Array) -> list[float]:
    """Return the numbers of an array in row-major order, some rows at a time, as in `as_array`."""
    parts = (
        array[at : at + _ROWS_AT_A_TIME].ravel().tolist()
        for at in range(0, len(array), _ROWS_AT_A_TIME)
    )
    return list(chain.from_iterable(parts))


def in_one_sentence(detail: str, errors: Sequence[Fault]) -> str:
    """Return the detail with the first of the errors: the protocol has one string for an error."""
    for error in errors[:1]:
        place = error.get("pointer", "")
        if place not in detail:
            return f"{detail}: {place} {error['detail']}"
    return detail


def refuse(name: str, detail: str) -> NoReturn:
    """Raise Invalid for an input or output."""
    raise Invalid(f"tensor {name[:100]!r}: {detail}")
