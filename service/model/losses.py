"""The losses of a model's predictions just before learning, stored for its challengers."""

from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

_NAME = "losses"


class BlockLosses(NamedTuple):
    """The losses of a block.

    Attributes:
        losses: of its samples; NaN where not known.
        epoch: of the model; None if not known.
    """

    losses: Float64Array
    epoch: str | None


def unknown_losses(samples: int) -> BlockLosses:
    """Return losses of this many samples, none of which is known."""
    return BlockLosses(np.full(samples, np.nan), None)


class RecentLosses:
    """The losses of a model's last samples, without gaps in their sequences. Used by one thread.

    Args:
        after: the sequence before the first of them.
        epoch: of the model from there on.
    """

    def __init__(self, after: int, epoch: str) -> None:
        self._after = after
        self._values = array("d")
        # (sequence, epoch that begins there), ascending
        self._epochs = [(after, epoch)]

    def add(self, before: int, losses: Float64Array) -> None:
        """Add the losses of the samples after a sequence; after a gap, forget all others."""
        if before != self._after + len(self._values):
            self._begin(before, self._epochs[-1][1])
        self._values.frombytes(np.ascontiguousarray(losses, np.float64).tobytes())

    def begin_epoch(self, sequence: int, epoch: str) -> None:
        """Note that another epoch begins at a sequence."""
        if sequence != self._after + len(self._values):
            self._begin(sequence, epoch)
        self._epochs.append((sequence, epoch))

    def _begin(self, after: int, epoch: str) -> None:
        self._after, self._values, self._epochs = after, array("d"), [(after, epoch)]

    def between(self, begin: int, end: int) -> BlockLosses:
        """Return the losses of the samples after `begin`, up to `end`."""
        start, stop = begin - self._after, end - self._after
        if start < 0 or stop > len(self._values):
            return unknown_losses(end - begin)
        losses = np.array(self._values[start:stop], np.float64)
        return BlockLosses(losses, next(name for at, name in reversed(self._epochs) if at <= begin))

    def forget(self, up_to: int) -> None:
        """Forget the losses of samples up to a sequence."""
        n = min(up_to - self._after, len(self._values))
        if n <= 0:
            return
        del self._values[:n]
        self._after += n
        later = [mark for mark in self._epochs if mark[0] > self._after]
        current = [mark for mark in self._epochs if mark[0] <= self._after][-1]
        self._epochs = [(self._after, current[1]), *later]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and an array, from which `restored_losses` continues."""
        plain = {"after": self._after, "epochs": [list(mark) for mark in self._epochs]}
        return {_NAME: plain}, {_NAME: np.array(self._values, np.float64)}


def restored_losses(
    plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> RecentLosses | None:
    """Invert `RecentLosses.state`; None for a model without challengers."""
    if _NAME not in plain or _NAME not in arrays:
        return None
    (first, epoch), *later = plain[_NAME]["epochs"]
    losses = RecentLosses(first, epoch)
    losses.add(first, arrays[_NAME])
    losses._epochs += [(sequence, name) for sequence, name in later]
    return losses
