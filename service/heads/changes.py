"""Changes of a prequential loss: when the predictions of a head became worse.

Losses l_1, l_2, ... in [0, 1] are summed in blocks of 64. Let m(i, j) be the mean loss of the n
samples of the blocks i+1 .. j, and let their losses be independent with a mean mu. Then
(Hoeffding 1963, theorem 1)

    P(m(i, j) >= x) <= exp(-n kl(x, mu)) for x >= mu, and the same for m(i, j) <= x <= mu,

with kl(p, q) the Kullback-Leibler divergence of two Bernoulli distributions; it also holds for
losses of different means where mu bounds all of them from that side. With

    L_j = log(2 j^2 (j + 1) / alpha)

the chance that for any interval whatever n kl(m, mu) > L_j is at most

    sum_j sum_{i < j} 2 exp(-L_j) = sum_j 2 j alpha / (2 j^2 (j + 1))
                                  = sum_j alpha / (j (j + 1)) = alpha.

So with probability 1 - alpha all intervals keep these bounds for ever, whichever of them are looked
at, and however often. kl(p, q) is at least 2 (p - q)^2 and, with M the larger of p and q,
(p - q)^2 / (2 M), hence

    mu <= m + min(sqrt(L / 2n), L/n + sqrt((L/n)^2 + 2 m L/n)),
    mu >= m - min(sqrt(L / 2n), sqrt(2 m L/n)).

After each block the samples since the last change are cut in two in some fifty places, those of
an exponential histogram (Datar et al. 2002, as in ADWIN, Bifet and Gavalda 2007). Where the bound
from below on the mean of the newer part is above that from above on the older part, the loss has
risen: that is a change, and the older part is forgotten. Where the loss has fallen, as it does
while a model learns, the older part is forgotten too, and nothing is said. So a head whose losses
are independent and never rise in the mean is ever said to have changed with probability alpha at
most. Losses that depend on each other may be said to have changed more often.

Errors e >= 0 of numbers have no bound: their losses are e / (e + s), s being the median of the
first 256 errors since the last change, so that the losses are about a half at first.
"""

import copy
from collections.abc import Iterable, Mapping
from math import fsum, log
from typing import Any, NamedTuple

import numpy as np

from solver.arrays import Float64Array

ALPHA = 0.01
_BLOCK = 64
# Blocks from which the scale of errors is taken.
_BLOCKS_OF_SCALE = 4
# Buckets of one size in the histogram.
_ALIKE = 5
_KEPT = 20


class Change(NamedTuple):
    """A rise of the mean loss.

    sequence: of the model when it was noticed. before, after: the mean losses, between 0 and 1.
    samples: how many had come since the change, about.
    """

    sequence: int
    before: float
    after: float
    samples: int


class Changes:
    """The changes of one head, found while its losses come, one after another.

    scaled: whether losses are errors without a bound. found: the last 20. total: how many there
    were.
    """

    def __init__(self, scaled: bool = False) -> None:
        self.found: tuple[Change, ...] = ()
        self.total = 0
        self._scaled = scaled
        self._scale: float | None = None
        self._blocks = 0  # whose losses were looked at
        self._waiting: list[float] = []  # losses of an incomplete block
        # Of the losses since the last change, the oldest first: how many blocks, and their sum.
        self._sizes: list[int] = []
        self._sums: list[float] = []
        # Changes whose sequence is not known yet; without a model it never is.
        self._undated: list[Change] = []

    def add(self, losses: Iterable[float]) -> None:
        """Add losses, or errors; what is found does not depend on the parts that they come in."""
        self._waiting += losses
        start = 0
        while len(self._waiting) - start >= (size := self._wanted()):
            self._take(self._waiting[start : start + size])
            start += size
        del self._waiting[:start]

    def date(self, sequence: int) -> None:
        """Say at which sequence the changes were noticed that were found since the last call."""
        if self._undated:
            dated = [change._replace(sequence=sequence) for change in self._undated]
            self.found = (*self.found, *dated)[-_KEPT:]
            self._undated = []

    def copy(self) -> "Changes":
        """An independent copy."""
        other = copy.copy(self)
        other._waiting, other._undated = self._waiting.copy(), self._undated.copy()
        other._sizes, other._sums = self._sizes.copy(), self._sums.copy()
        return other

    def state(self) -> dict[str, Any]:
        """Plain data for `restore`; JSON keeps every bit of a number."""
        return {
            "found": [list(change) for change in self.found],
            "total": self.total,
            "scale": self._scale,
            "blocks": self._blocks,
            "waiting": list(self._waiting),
            "buckets": [list(self._sizes), list(self._sums)],
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state."""
        self.found = tuple(Change(*change) for change in plain["found"])
        self.total, self._scale, self._blocks = plain["total"], plain["scale"], plain["blocks"]
        self._waiting = list(plain["waiting"])
        self._sizes, self._sums = (list(column) for column in plain["buckets"])

    def _wanted(self) -> int:
        return _BLOCK if self._scale is not None or not self._scaled else _BLOCK * _BLOCKS_OF_SCALE

    def _take(self, losses: list[float]) -> None:
        """Take a block of losses, or the errors that give the scale."""
        if not self._scaled:
            self._look(fsum(losses))
        elif self._scale is None:
            self._scale = float(np.median(losses))
        else:
            scale = self._scale
            self._look(fsum(error / (error + scale) if error > 0.0 else 0.0 for error in losses))

    def _look(self, total: float) -> None:
        """Add the sum of a block, and look for a change."""
        self._blocks += 1
        self._sizes.append(1)
        self._sums.append(total)
        self._merge()
        if len(self._sizes) < 2:
            return
        n = _BLOCK * np.cumsum(self._sizes, dtype=np.float64)
        s = np.cumsum(self._sums)
        older, newer = n[:-1], n[-1] - n[:-1]
        before, after = s[:-1] / older, (s[-1] - s[:-1]) / newer
        bound = log(2.0 * self._blocks**2 * (self._blocks + 1) / ALPHA)
        rise = after - _below(after, bound / newer) - before - _above(before, bound / older)
        fall = before - _below(before, bound / older) - after - _above(after, bound / newer)
        cut = int(np.argmax(rise))
        if rise[cut] > 0.0:
            change = Change(-1, float(before[cut]), float(after[cut]), int(newer[cut]))
            self._undated = [*self._undated, change][-_KEPT:]
            self.total += 1
            self._forget(cut + 1)
        elif fall.max() > 0.0:
            self._forget(int(np.argmax(fall)) + 1)

    def _merge(self) -> None:
        """Join the two oldest of more than `_ALIKE` buckets of one size, from the newest on."""
        size, stop = 1, len(self._sizes)
        while stop > 0:
            start = stop
            while start > 0 and self._sizes[start - 1] == size:
                start -= 1
            if stop - start <= _ALIKE:
                return
            self._sizes[start : start + 2] = [2 * size]
            self._sums[start : start + 2] = [self._sums[start] + self._sums[start + 1]]
            size, stop = 2 * size, start + 1

    def _forget(self, buckets: int) -> None:
        """Forget the oldest losses; all of them where they have to be scaled anew."""
        if self._scaled:
            self._scale, buckets = None, len(self._sizes)
        del self._sizes[:buckets], self._sums[:buckets]


def _above(mean: Float64Array, bound: Float64Array) -> Float64Array:
    """How far the true mean may be above these means. bound: L/n of each."""
    bernoulli: Float64Array = bound + np.sqrt(bound * bound + 2.0 * mean * bound)
    return np.minimum(np.sqrt(bound / 2.0), bernoulli)


def _below(mean: Float64Array, bound: Float64Array) -> Float64Array:
    """How far the true mean may be below these means. bound: L/n of each."""
    return np.minimum(np.sqrt(bound / 2.0), np.sqrt(2.0 * mean * bound))
