"""Tensors of the Open Inference Protocol: requests have numbers, responses numbers and labels.

In JSON, the data of a tensor are a list in row-major order, either flat or nested like the shape.
Binary data are the little-endian bytes of the elements in row-major order; each BYTES element is
preceded by its length, a 4-byte unsigned integer.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.calls.values import Fault
from wolfstream.service.errors import Invalid
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.validation import read_rows
from wolfstream.solver.arrays import Float64Array

_LIMITS: dict[str, tuple[str, Any]] = {  # datatype -> numpy's name and limits
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
_MAX_LENGTH = 2**40
# Converting this many rows of a hundred numbers takes some milliseconds.
_ROWS_AT_A_TIME = 1024


class Output(NamedTuple):
    """A tensor of a response.

    Attributes:
        values: a list in row-major order, or an array of this shape.
    """

    name: str
    datatype: str
    shape: list[int]
    values: list[Any] | Float64Array


class _Input(NamedTuple):
    """A tensor of a request."""

    name: str
    datatype: str
    shape: tuple[int, int]
    values: list[Any]  # from JSON, flat and unchecked
    numbers: Float64Array | None  # from binary data, checked


def read_numbers(tensors: Iterable[tuple[dict[str, Any], bytes | None]]) -> list[Float64Array]:
    """Return the finite numbers of inputs, each (n, d) float64; (n, 1) where a shape is [n].

    Args:
        tensors: each input with its binary data, or None if its data are in the JSON.

    Raises Invalid.
    """
    inputs = [_read_input(tensor, binary) for tensor, binary in tensors]
    # Inputs in JSON are checked together, because there may be thousands of small ones.
    checked = _check_values([tensor for tensor in inputs if tensor.numbers is None])
    return [next(checked) if tensor.numbers is None else tensor.numbers for tensor in inputs]


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
    with np.errstate(invalid="ignore"):  # a signalling NaN is refused below, like other NaNs
        numbers = np.frombuffer(binary, dtype).astype(np.float64).reshape(shape)
    if not np.isfinite(numbers).all():
        row, number = np.argwhere(~np.isfinite(numbers))[0].tolist()
        refuse(name, f"number {number} of row {row} is not finite")
    return _Input(name, datatype, shape, [], numbers)


def _read_shape(name: str, shape: Any) -> tuple[int, int]:
    if (
        not isinstance(shape, list)
        or not 1 <= len(shape) <= 2
        or not all(type(length) is int and 1 <= length <= _MAX_LENGTH for length in shape)
    ):
        refuse(name, "shape must be one or two lengths, each 1 or more")
    return shape[0], shape[1] if len(shape) == 2 else 1


def _flat(name: str, data: Any, n: int, d: int) -> list[Any]:
    """Return the values of nested or flat data. Raises Invalid unless they are n times d."""
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
    """Yield the values of JSON as arrays of numbers. Raises Invalid if any is not finite."""
    if not inputs:
        return
    try:
        numbers = read_rows({"x": [list(chain.from_iterable(given.values for given in inputs))]})
    except Invalid as error:
        index = int(error.errors[0]["pointer"].rpartition("/")[2])
        for given in inputs:
            if index < len(given.values):
                row, number = divmod(index, given.shape[1])
                detail = error.errors[0]["detail"]
                refuse(given.name, f"number {number} of row {row}: {detail}")
            index -= len(given.values)
        raise
    assert isinstance(numbers, np.ndarray)
    start = 0
    for given in inputs:
        stop = start + len(given.values)
        array = numbers[0, start:stop].reshape(given.shape)
        start = stop
        if given.datatype != "FP64":
            _check_datatype(given, array)
        yield array


def _check_datatype(given: _Input, numbers: Float64Array) -> None:
    """Raise Invalid for numbers outside the datatype's range, and fractions in integers."""
    limits = _LIMITS[given.datatype][1]
    fits = (numbers >= float(limits.min)) & (numbers <= float(limits.max))
    if isinstance(limits, np.iinfo):
        fits &= numbers == np.trunc(numbers)
    if not fits.all():
        refuse(given.name, f"{float(numbers[~fits][0])!r} is not of type {given.datatype}")


def datatype_of_labels(labels: Iterable[Label | float]) -> str:
    """Return the datatype of predictions: BOOL, INT64 or FP64 if it fits all, else BYTES."""
    kinds = {type(label) for label in labels}
    if kinds == {bool}:
        return "BOOL"
    if kinds == {int}:
        return "INT64"
    return "FP64" if kinds and kinds <= {int, float} else "BYTES"


def as_text(label: Label) -> str:
    """Return a label as an element of BYTES: strings unchanged, other labels as in JSON."""
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
    """Convert rows of numbers to an array.

    It converts some rows at a time, because each conversion holds the interpreter lock.
    """
    starts = range(0, len(rows), _ROWS_AT_A_TIME)
    return np.concatenate([np.array(rows[i : i + _ROWS_AT_A_TIME], dtype) for i in starts])


def _as_list(array: Float64Array) -> list[float]:
    """Return the numbers of an array in row-major order, some rows at a time, as in `as_array`."""
    parts = (
        array[i : i + _ROWS_AT_A_TIME].ravel().tolist()
        for i in range(0, len(array), _ROWS_AT_A_TIME)
    )
    return list(chain.from_iterable(parts))


def as_one_sentence(detail: str, errors: Sequence[Fault]) -> str:
    """Return the detail with the first error: the protocol has a single string for errors."""
    for error in errors[:1]:
        pointer = error.get("pointer", "")
        if pointer not in detail:
            return f"{detail}: {pointer} {error['detail']}"
    return detail


def refuse(name: str, detail: str) -> NoReturn:
    """Raise Invalid for an input or output."""
    raise Invalid(f"tensor {name[:100]!r}: {detail}")
