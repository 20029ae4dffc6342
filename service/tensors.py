"""Tensors of the Open Inference Protocol: numbers in, labels and numbers out.

In JSON a tensor's data are one flat list in row-major order or nested as its shape is; as binary
data they are the elements' little-endian bytes in row-major order, and BYTES elements are each
behind their length, a 4-byte unsigned integer.
"""

import struct
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from service.errors import Invalid, SampleError
from service.samples import Label, read_rows
from solver.rows import Float64Array

NUMERIC = {
    "FP64": "<f8",
    "FP32": "<f4",
    "FP16": "<f2",
    "INT64": "<i8",
    "INT32": "<i4",
    "INT16": "<i2",
    "INT8": "<i1",
    "UINT64": "<u8",
    "UINT32": "<u4",
    "UINT16": "<u2",
    "UINT8": "<u1",
}
"""The datatypes of inputs, with numpy's names of them."""

_OUTPUT = {"FP64": "<f8", "INT64": "<i8", "BOOL": "?"}
_LONGEST = 2**40


class Output(NamedTuple):
    """A tensor of an answer: its values in row-major order."""

    name: str
    datatype: str
    shape: list[int]
    values: list[Any]


def read_numbers(tensor: dict[str, Any], binary: bytes | None) -> Float64Array:
    """The finite numbers of an input, (n, d) float64; (n, 1) where its shape is [n].

    binary: its data, unless they stand in the JSON. Raises Invalid.
    """
    name, datatype = tensor["name"], tensor.get("datatype")
    if not isinstance(datatype, str) or datatype not in NUMERIC:
        refuse(name, f"datatype must be a numeric one: {', '.join(NUMERIC)}")
    dtype = np.dtype(NUMERIC[datatype])
    n, d = _read_shape(name, tensor.get("shape"))
    if binary is None:
        rows: Any = _nested(name, tensor.get("data"), n, d)
    else:
        expected = n * d * dtype.itemsize
        if len(binary) != expected:
            refuse(name, f"binary_data_size is {len(binary)}, shape and datatype need {expected}")
        with np.errstate(invalid="ignore"):  # a signalling NaN is refused below like any other
            data = np.frombuffer(binary, dtype).astype("<f8").tobytes()
        rows = {"dtype": "<f8", "shape": [n, d], "data": data}
    try:
        numbers = read_rows({"x": rows})
    except Invalid as error:
        refuse(name, in_one_sentence(error.detail, error.errors))
    assert isinstance(numbers, np.ndarray)
    if binary is None:
        _check_kind(name, numbers, datatype, dtype)
    return numbers


def _read_shape(name: str, shape: Any) -> tuple[int, int]:
    if (
        not isinstance(shape, list)
        or not 1 <= len(shape) <= 2
        or not all(type(length) is int and 1 <= length <= _LONGEST for length in shape)
    ):
        refuse(name, "shape must be one or two lengths, each of them 1 or more")
    return shape[0], shape[1] if len(shape) == 2 else 1


def _nested(name: str, data: Any, n: int, d: int) -> list[Any]:
    """The data as n lists of d. Raises Invalid where there are more or fewer."""
    if not isinstance(data, list):
        refuse(name, "data must be a list, flat or nested; or give binary_data_size")
    if data and isinstance(data[0], list):
        if len(data) != n or not all(isinstance(row, list) and len(row) == d for row in data):
            refuse(name, f"data are not {n} rows of {d} numbers, as shape says")
        return data
    if len(data) != n * d:
        refuse(name, f"data have {len(data)} numbers, shape needs {n * d}")
    return [data[start : start + d] for start in range(0, n * d, d)]


def _check_kind(
    name: str, numbers: Float64Array, datatype: str, dtype: np.dtype[np.generic]
) -> None:
    """Refuse JSON numbers that their datatype cannot hold, but for the last digits of fractions."""
    if dtype.kind == "f":
        fits = np.abs(numbers) <= np.finfo(dtype.name).max
    else:
        bounds = np.iinfo(dtype.name)
        fits = (numbers == np.trunc(numbers)) & (numbers >= bounds.min) & (numbers <= bounds.max)
    if not fits.all():
        wrong = float(numbers[~fits][0])
        refuse(name, f"{wrong!r} is no {datatype}")


def datatype_of_labels(labels: Iterable[Label | float]) -> str:
    """How predictions are sent: BOOL, INT64 or FP64 if all are such, else BYTES, which is text."""
    kinds = {type(label) for label in labels}
    if kinds == {bool}:
        return "BOOL"
    if kinds == {int}:
        return "INT64"
    return "FP64" if kinds and kinds <= {int, float} else "BYTES"


def as_text(label: Label) -> str:
    """A label as an element of BYTES: text itself, others as JSON writes them."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label)


def write_tensor(output: Output, binary: bool) -> tuple[dict[str, Any], bytes]:
    """An output's JSON, and the bytes that follow all JSON; none unless it is binary."""
    told: dict[str, Any] = {
        "name": output.name,
        "datatype": output.datatype,
        "shape": output.shape,
    }
    if not binary:
        return told | {"data": output.values}, b""
    if output.datatype == "BYTES":
        elements = [text.encode() for text in output.values]
        data = b"".join(chain.from_iterable((struct.pack("<I", len(e)), e) for e in elements))
    else:
        array: NDArray[Any] = np.array(output.values, _OUTPUT[output.datatype])
        data = array.tobytes()
    return told | {"parameters": {"binary_data_size": len(data)}}, data


def in_one_sentence(detail: str, errors: list[SampleError]) -> str:
    """What is wrong, and the first place where: the protocol's errors are one string."""
    for error in errors[:1]:
        place = error.get("pointer", "")
        if place not in detail:
            return f"{detail}: {place} {error['detail']}"
    return detail


def refuse(name: str, detail: str) -> NoReturn:
    """Raise Invalid for an input or output."""
    raise Invalid(f"tensor {name[:100]!r}: {detail}")
