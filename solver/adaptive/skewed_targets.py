"""Decides by the first samples whether to learn logarithms of targets.

Targets that are skewed to the right, such as prices, are often products of features, so that their
logarithms are sums; others, such as fares by distance, are sums themselves. Both are tried on the
first FIRST samples by ridge regression on the shared features, with leave-one-out predictions y_i'
(PRESS, Allen 1974):

    H = K (K + rho I)^-1,   y_i - y_i' = (y_i - (H y)_i) / (1 - H_ii),   K = Phi Phi'

Logarithms are learned, from the first sample again, if their predictions have the smaller mean
absolute error in the units of the targets.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.bends import bend_of_targets, bent

FIRST = 128
_RIDGES = (0.1, 1.0, 10.0)


class FirstSamples(NamedTuple):
    """The first n samples of a stream."""

    rows: Float64Array  # (n, features)
    codes: Float64Array  # (n, texts) of the rows' texts
    y: Float64Array  # (n,)
    weight: Float64Array  # (n,)

    @property
    def bend(self) -> float:
        """The bend b of targets whose asinh(y / b) is to be learned; 0 if y is."""
        bend = bend_of_targets(self.y)
        return bend if bend and _suits(bend, self.rows, self.y) else 0.0


class FirstTargets:
    """Stores the first samples until they decide whether logarithms are learned."""

    def __init__(self, features: int, texts: int) -> None:
        self._widths = features, texts
        self.samples = self._none()

    @property
    def nbytes(self) -> int:
        """Memory in bytes, at most."""
        return 8 * FIRST * (sum(self._widths) + 2)

    def take(self, samples: FirstSamples, before: int) -> None:
        """Store samples if `before` samples came before them; all or none are among the FIRST."""
        if before < FIRST:
            each = zip(self.samples, samples, strict=True)
            self.samples = FirstSamples(*(np.concatenate(pair) for pair in each))

    def decided(self) -> FirstSamples | None:
        """Return the samples and forget them, once there are FIRST of them; else None."""
        samples = self.samples
        if len(samples.y) < FIRST:
            return None
        self.samples = self._none()
        return samples

    def _none(self) -> FirstSamples:
        rows, codes = (np.empty((0, width)) for width in self._widths)
        return FirstSamples(rows, codes, np.empty(0), np.empty(0))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return {f"early_{name}": array.copy() for name, array in self.samples._asdict().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned, when rows had at most as many texts as now."""
        fields = FirstSamples._fields
        samples = FirstSamples(*(np.array(state[f"early_{field}"]) for field in fields))
        codes = np.full((len(samples.y), self._widths[1]), np.nan)
        codes[:, : samples.codes.shape[1]] = samples.codes
        self.samples = samples._replace(codes=codes)


def _suits(bend: float, rows: Float64Array, y: Float64Array) -> bool:
    """Return whether predictions by logarithms are nearer to the targets."""
    u = bent(y, bend)
    straight, curved = np.inf, np.inf
    values, vectors = np.linalg.eigh(rows @ rows.T)
    for ridge in _RIDGES:
        H = (vectors * (values / (values + ridge))) @ vectors.T
        straight = min(straight, float(np.abs(_left_out(H, y) - y).mean()))
        predicted = bend * np.sinh(np.clip(_left_out(H, u), u.min(), u.max()))
        curved = min(curved, float(np.abs(predicted - y).mean()))
    return curved < straight


def _left_out(H: Float64Array, y: Float64Array) -> Float64Array:
    """Return the leave-one-out predictions of a ridge regression around the mean."""
    difference = y - y.mean()
    residual = (difference - H @ difference) / (1.0 - np.diag(H))
    return np.asarray(y - residual)
