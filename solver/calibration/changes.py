"""Detects changes: rises of a prequential loss, i.e. predictions of a head that become worse.

Losses l_1, l_2, ... in [0, 1] are summed in blocks of 64. For blocks a < c < k let m0 be the mean
loss of the n0 samples of the blocks a+1 .. c, m1 that of the n1 samples of c+1 .. k, p the mean of
both parts together, and kl(p, q) the Kullback-Leibler divergence of Bernoulli distributions. Let
the losses be independent, and let their means not rise: those of the older part are at least some
mu, those of the newer at most mu. Then (Hoeffding 1963, theorem 1), for x below and above mu,

    P(m0 <= x) <= exp(-n0 kl(x, mu)),    P(m1 >= x) <= exp(-n1 kl(x, mu)),

so Z0 = n0 kl(m0, mu) where m0 < mu, else 0, is at least z with probability exp(-z) at most, and so
is Z1, defined likewise. They are independent, so Z0 + Z1 is at least x with at most the probability
of the sum of two exponential variables, (1 + x) exp(-x). Where m0 < m1, the statistic

    T(a, c, k) = n0 kl(m0, p) + n1 kl(m1, p) = min over q of n0 kl(m0, q) + n1 kl(m1, q)

is at most Z0 + Z1. At block k there are k (k - 1) / 2 pairs a < c; with x_k such that

    (1 + x_k) exp(-x_k) = 2 alpha / (k^3 (k + 1))

the probability that T(a, c, k) >= x_k for any a, c and k is at most the sum over k of
(k^2 / 2) 2 alpha / (k^3 (k + 1)) = alpha / (k (k + 1)), which is alpha. So if losses are
independent and never rise in the mean, the probability of ever reporting a change is at most alpha,
however long the stream is. Dependent losses may be reported as changed more often.

After each block, the samples since the last change are split in two at each of the some fifty
bounds of an exponential histogram (Datar et al. 2002, as in ADWIN, Bifet and Gavalda 2007). If
T >= x_k and m0 < m1, the loss has risen: a change is reported, and the older part is dropped. If
T >= x_k and m0 > m1, as while a model learns, the older part is dropped without a report.

Absolute errors e of regression are unbounded. Their losses are e / (e + s), where s is the median
of the first 256 errors since the last change, so losses are about a half at first.
"""

from collections.abc import Iterable, Mapping
from math import fsum, log, log1p
from typing import Any, NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array

ALPHA = 0.01  # bound on the probability of ever reporting a false change
_BLOCK = 64
# The number of blocks from which the scale of errors is set.
_BLOCKS_OF_SCALE = 4
# Bound on the buckets of equal size in the histogram.
_BUCKETS_OF_A_SIZE = 5
# Bound on the changes that are listed.
_MAX_LISTED = 20
# More than the rounding of a bound.
_ROUNDING = 1.0 + 1e-6
# Iterations of a fixed point; each reduces the error at least tenfold.
_ITERATIONS = 12


class Change(NamedTuple):
    """A rise of the mean loss.

    Attributes:
        sequence: the model's sequence when the rise was detected.
        before: the mean loss before the rise, between 0 and 1.
        after: the mean loss since then.
        samples: the approximate number of samples between the rise and its detection.
    """

    sequence: int
    before: float
    after: float
    samples: int


class Changes:
    """Detects the changes of one head as its losses arrive.

    Args:
        scaled: whether losses are unbounded errors, to be scaled.

    Attributes:
        latest: the last 20 changes.
        total: the number of changes so far.
    """

    def __init__(self, scaled: bool = False) -> None:
        self.latest: tuple[Change, ...] = ()
        self.total = 0
        self._scaled = scaled
        self._scale: float | None = None  # s; None until it is set
        self._blocks = 0  # k, the number of blocks examined
        self._waiting: list[float] = []  # losses of an incomplete block
        # The histogram of the losses since the last change, oldest first: the number of blocks in
        # each bucket, and the sum of their losses.
        self._sizes: list[int] = []
        self._sums: list[float] = []
        # Changes to which `date` has not yet assigned a sequence.
        self._undated: list[Change] = []

    def add(self, losses: Iterable[float]) -> None:
        """Add losses or errors; the result does not depend on how they are grouped into calls."""
        waiting, start = [*self._waiting, *losses], 0
        while len(waiting) - start >= (size := self._block_size()):
            self._add_block(waiting[start : start + size])
            start += size
        self._waiting = waiting[start:]

    def date(self, sequence: int) -> None:
        """Assign a sequence to the changes detected since the last call."""
        if self._undated:
            dated = [change._replace(sequence=sequence) for change in self._undated]
            self.latest = (*self.latest, *dated)[-_MAX_LISTED:]
            self._undated = []

    def copy(self) -> "Changes":
        """Return an independent copy; both share lists, which are replaced and never changed."""
        other = Changes.__new__(Changes)
        vars(other).update(vars(self))  # copy.copy would take four times as long
        return other

    def state(self) -> dict[str, Any]:
        """Return plain data for `restore`; JSON keeps every bit of a number."""
        return {
            "found": [list(change) for change in self.latest],
            "total": self.total,
            "scale": self._scale,
            "blocks": self._blocks,
            "waiting": list(self._waiting),
            "buckets": [list(self._sizes), list(self._sums)],
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self.latest = tuple(Change(*change) for change in plain["found"])
        self.total, self._scale, self._blocks = plain["total"], plain["scale"], plain["blocks"]
        self._waiting = list(plain["waiting"])
        self._sizes, self._sums = (list(column) for column in plain["buckets"])

    def _block_size(self) -> int:
        return _BLOCK if self._scale is not None or not self._scaled else _BLOCK * _BLOCKS_OF_SCALE

    def _add_block(self, losses: list[float]) -> None:
        """Process a block of losses, or the errors that set the scale."""
        if not self._scaled:
            self._detect(fsum(losses))
        elif self._scale is None:
            self._scale = float(np.median(losses))
        else:
            scale = self._scale
            self._detect(fsum(error / (error + scale) if error > 0.0 else 0.0 for error in losses))

    def _detect(self, total: float) -> None:
        """Add the sum of a block to the histogram, then test for a change."""
        self._blocks += 1
        self._sizes, self._sums = [*self._sizes, 1], [*self._sums, total]
        self._merge()
        if len(self._sizes) < 2:
            return
        n = _BLOCK * np.cumsum(self._sizes, dtype=np.float64)
        s = np.cumsum(self._sums)
        older, newer = n[:-1], n[-1] - n[:-1]
        if _most_evidence(n, s) < _least_threshold(self._blocks):
            return
        before, after = s[:-1] / older, (s[-1] - s[:-1]) / newer
        evidence = older * _divergence(before, s[-1] / n[-1])
        evidence += newer * _divergence(after, s[-1] / n[-1])
        cut = int(np.argmax(evidence))
        if evidence[cut] < _threshold(self._blocks):
            return
        if before[cut] < after[cut]:
            change = Change(-1, float(before[cut]), float(after[cut]), int(newer[cut]))
            self._undated = [*self._undated, change][-_MAX_LISTED:]
            self.total += 1
        self._forget(cut + 1)

    def _merge(self) -> None:
        """Join the two oldest buckets of each size that has too many, from the newest back."""
        size, stop = 1, len(self._sizes)
        while stop > 0:
            start = stop
            while start > 0 and self._sizes[start - 1] == size:
                start -= 1
            if stop - start <= _BUCKETS_OF_A_SIZE:
                return
            self._sizes[start : start + 2] = [2 * size]
            self._sums[start : start + 2] = [self._sums[start] + self._sums[start + 1]]
            size, stop = 2 * size, start + 1

    def _forget(self, buckets: int) -> None:
        """Drop the oldest losses; all of them if errors need a new scale."""
        if self._scaled:
            self._scale, buckets = None, len(self._sizes)
        del self._sizes[:buckets], self._sums[:buckets]


def _divergence(mean: Float64Array, reference: float) -> Float64Array:
    """Return kl(mean, reference) for each mean, with 0 log 0 = 0.

    reference: a mean of the means.
    """
    if not 0.0 < reference < 1.0:  # then all means equal it
        return np.zeros_like(mean)
    tiny = np.finfo(np.float64).tiny
    ones = mean * np.log(np.maximum(mean, tiny) / reference)
    zeros: Float64Array = (1.0 - mean) * np.log(np.maximum(1.0 - mean, tiny) / (1.0 - reference))
    return ones + zeros


def _most_evidence(n: Float64Array, s: Float64Array) -> float:
    """Return a bound on T over all pairs of parts, which takes a third of the time of T.

    As kl(m, p) <= (m - p)^2 / (p (1 - p)), T is at most n (s0 - n0 p)^2 / (n0 n1 p (1 - p)), where
    s0 and s1 are the sums of the parts.

    n, s: number and sum of the losses up to the end of each bucket.
    """
    samples, mean = float(n[-1]), float(s[-1] / n[-1])
    if not 0.0 < mean < 1.0:  # then all losses are equal
        return 0.0
    older = n[:-1]
    difference = s[:-1] - mean * older
    largest = float((difference * difference / (older * (samples - older))).max())
    return _ROUNDING * samples * largest / (mean * (1.0 - mean))


def _least_threshold(blocks: int) -> float:
    """Return log(k^3 (k + 1) / (2 alpha)), which `_threshold` exceeds."""
    return log(blocks**3 * (blocks + 1) / (2.0 * ALPHA))


def _threshold(blocks: int) -> float:
    """Return the solution x of (1 + x) exp(-x) = 2 alpha / (k^3 (k + 1)), iterating from above."""
    least = _least_threshold(blocks)
    x = 2.0 * least
    for _ in range(_ITERATIONS):
        x = least + log1p(x)
    return x
