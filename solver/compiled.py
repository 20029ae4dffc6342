"""The one decorator that turns a numerical function into machine code."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

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
