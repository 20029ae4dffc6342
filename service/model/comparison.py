"""Compares a challenger with its champion: their losses on the same samples, with an interval.

For each sample both models have a loss l >= 0, of their predictions just before learning it. A
model with challengers stores its last losses, for challengers that learn a sample later. The
comparison is of

    d_i = (l_i(champion) - l_i(challenger)) / (l_i(champion) + l_i(challenger)),  0 if both are 0,

which lies in [-1, 1]. In classification a loss is 0 or 1, and d_i the difference of the two. In
regression it is the absolute error: d_i is the share by which the challenger was closer, so that
neither the unit of the targets nor a few extreme targets decide.
"""

import math
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


# The probability that the interval is right at all times together.
LEVEL = 0.95
# The parameters of the stitched boundary: epochs of the variance grow by the factor _GROWTH, the
# first begins at _LEAST, and the share of the error that epoch k may use is k^-_POWER.
_GROWTH, _LEAST, _POWER = 2.0, 1.0, 1.4
_ZETA = 3.1055472779775810  # the Riemann zeta function at _POWER
_ROOT = math.sqrt(math.sqrt(_GROWTH))
_K1, _K2 = (_ROOT + 1.0 / _ROOT) / math.sqrt(2.0), (math.sqrt(_GROWTH) + 1.0) / 2.0
# The length of the interval in which d lies.
_RANGE = 2.0


def boundary(variance: float, error: float, scale: float) -> float:
    """Return a bound that a sum exceeds, at any time, with a probability of at most `error`.

    The stitched boundary of Howard, Ramdas, McAuliffe and Sekhon (Annals of Statistics 49, 2021,
    eq. 10), for a sum S with an accumulated variance V for which exp(l S - psi(l) V) is a
    supermartingale, psi(l) = (-log(1 - c l) - c l) / c^2, c = `scale`:

        u(v) = sqrt(k1^2 v L + k2^2 c^2 L^2) + k2 c L,
        L = s log(log_g(v / m) + 1) + log(zeta(s) / error)

    with v at least m. For each l the sum stays below the line (log(1 / error_k) + psi(l) V) / l
    with the probability 1 - error_k (Ville). In the epoch g^k m <= V < g^(k+1) m the line of one l
    lies below u, with error_k = error / (zeta(s) (k + 1)^s); all of these sum to `error`.
    """
    v = max(variance, _LEAST)
    epochs = math.log(v / _LEAST, _GROWTH) + 1.0
    depth = _POWER * math.log(epochs) + math.log(_ZETA / error)
    reach = _K2 * scale * depth
    return math.sqrt(_K1 * _K1 * v * depth + reach * reach) + reach


class Interval(NamedTuple):
    """An interval for the mean difference."""

    low: float
    high: float


class Comparison(NamedTuple):
    """Sums over the samples that two models have both predicted; replaced as a whole.

    Attributes:
        epoch: of the champion, in which they were counted; None before the first sample.
        samples: their number n.
        total: sum of d_i.
        variance: sum of (d_i - mean of d_1 to d_(i-1))^2.
        champion, challenger: sums of the losses.
    """

    epoch: str | None = None
    samples: int = 0
    total: float = 0.0
    variance: float = 0.0
    champion: float = 0.0
    challenger: float = 0.0

    def after(
        self, epoch: str | None, champion: Float64Array, challenger: Float64Array
    ) -> "Comparison":
        """Return the comparison after more samples.

        Args:
            epoch: of the champion. In a new one the sums start from zero. None if it is not known;
                then nothing is counted.
            champion: losses, (n,); a sample with NaN here or below is not counted.
            challenger: losses of the same samples, (n,).
        """
        counted = np.isfinite(champion) & np.isfinite(challenger)
        if epoch is None or not counted.any():
            return self
        before = self if self.epoch in (None, epoch) else Comparison()
        first, second = champion[counted], challenger[counted]
        both = first + second
        d = np.divide(first - second, both, out=np.zeros_like(both), where=both > 0.0)
        counts = before.samples + np.arange(len(d))
        # Each centre is the mean of the samples before, so that it does not depend on its own d.
        centre = (before.total + np.cumsum(d) - d) / np.maximum(counts, 1)
        return Comparison(
            epoch,
            before.samples + len(d),
            before.total + float(d.sum()),
            before.variance + float(((d - centre) ** 2).sum()),
            before.champion + float(first.sum()),
            before.challenger + float(second.sum()),
        )

    @property
    def difference(self) -> float | None:
        """The mean of d; above zero if the challenger is better; None without samples."""
        return self.total / self.samples if self.samples else None

    @property
    def interval(self) -> Interval | None:
        """An interval for the mean of the expectations of all d; None without samples.

        An empirical Bernstein confidence sequence (Howard et al. 2021, Theorem 4; for two models on
        one stream Choe and Ramdas, Operations Research 72, 2024). The expectation of d_i is given
        all that came before, so the samples may depend on each other, and drift. With a centre c_i
        that was known before d_i, both in an interval of length 2, the product of

            exp(l (d_i - E d_i) - psi(l) (d_i - c_i)^2)

        is a supermartingale (Fan, Grama and Liu 2015), for either sign of d: `boundary` at half of
        the error to each side. The interval holds at all times together with the probability
        `LEVEL`, so that it may be checked after each sample, until it excludes zero.
        """
        if not self.samples:
            return None
        mean = self.total / self.samples
        reach = boundary(self.variance, (1.0 - LEVEL) / 2.0, _RANGE) / self.samples
        return Interval(max(mean - reach, -1.0), min(mean + reach, 1.0))

    @property
    def mean_losses(self) -> tuple[float, float] | None:
        """The mean losses of the champion and of the challenger; None without samples."""
        if not self.samples:
            return None
        return self.champion / self.samples, self.challenger / self.samples

    def plain(self) -> list[Any]:
        """Return JSON data, from which `Comparison(*plain)` continues bit for bit."""
        return list(self)


class ChallengerStanding(NamedTuple):
    """How a challenger compares with its champion; replaced as a whole.

    Attributes:
        comparison: with the champion.
        passed_over: the number of samples that its spec has refused.
        reason: of the last of these.
    """

    comparison: Comparison = Comparison()
    passed_over: int = 0
    reason: str | None = None

    def passing_over(self, samples: int, reason: str) -> "ChallengerStanding":
        """Return the state after more samples that the challenger's spec refuses."""
        return self._replace(passed_over=self.passed_over + samples, reason=reason)

    def plain(self) -> dict[str, Any]:
        """Return JSON data for a snapshot."""
        return {
            "comparison": self.comparison.plain(),
            "passed_over": self.passed_over,
            "reason": self.reason,
        }


def restored_following(plain: dict[str, Any] | None) -> ChallengerStanding:
    """Invert `ChallengerStanding.plain`; return a new one for None."""
    if plain is None:
        return ChallengerStanding()
    return ChallengerStanding(
        Comparison(*plain["comparison"]), plain["passed_over"], plain["reason"]
    )
