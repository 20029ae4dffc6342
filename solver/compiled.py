"""What turns numerical functions into machine code that uses vector registers."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import types
from numba.extending import intrinsic, overload

Function = TypeVar("Function", bound=Callable[..., object])

# Sums may be reordered so that they use vector registers, and comparisons may assume that
# no NaN occurs: every row is checked to be finite before it reaches a solver.
_FASTMATH = {"reassoc", "contract", "nnan", "nsz"}


def compiled(function: Function) -> Function:
    """Compile with numba: cached on disk, without the interpreter lock, sums in vector order.

    The disk cache notices an edit of the function's own file only. Whoever edits these files
    keys the cache directory on all of them (`service.compile_cache`).
    """
    jit = numba.njit(cache=True, nogil=True, fastmath=_FASTMATH, error_model="numpy")
    return cast(Function, jit(function))


def larger(a: float, b: float) -> float:
    """The larger one of two float64 numbers. A loop that gathers it uses vector registers.

    With numba's own max it does not: the selection there lacks the permission to assume that
    no NaN occurs, and a search takes seven times as long.
    """
    return a if a > b else b


def smaller(a: float, b: float) -> float:
    """The smaller one of two float64 numbers, like `larger`."""
    return a if a < b else b


def _selection(comparison: str) -> Any:
    """Machine code for one of two numbers, with that permission."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        flags = ("nnan", "nsz")
        chosen = builder.fcmp_ordered(comparison, *arguments, flags=flags)
        return builder.select(chosen, *arguments, flags=flags)

    return intrinsic(
        lambda _typing, _a, _b: (types.float64(types.float64, types.float64), generate)
    )


_larger, _smaller = _selection(">"), _selection("<")
overload(larger)(lambda _a, _b: lambda _a, _b: _larger(_a, _b))
overload(smaller)(lambda _a, _b: lambda _a, _b: _smaller(_a, _b))
