"""Compares the losses of two models on the same samples, with a confidence interval.

For each sample both models have a loss l >= 0, of their predictions just before learning it. The
comparison is of

    d_i = (l_i(champion) - l_i(challenger)) / (l_i(champion) + l_i(challenger)),  0 if both are 0,

which lies in [-1, 1]. In classification a loss is 0 or 1, and d_i the difference of the two. In
regression it is the absolute error: d_i is the share by which the challenger was closer, so that
neither the unit of the targets nor a few extreme targets decide.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array

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
