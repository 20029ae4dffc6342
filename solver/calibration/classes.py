"""The calibration of a classifier: probabilities, prediction sets, and their measured quality.

All of it is computed from prequential scores, each made before the label of its row, and changes at
certain counts of them alone (`points`). So a replay of a stream gives the same bits.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.conformal import (
    RECENT,
    first_misses,
    next_misses,
    threshold,
    thresholds,
)
from wolfstream.solver.calibration.platt import (
    Scaling,
    fit_scaling,
    identity_scaling,
    probabilities,
)
from wolfstream.solver.calibration.points import until_next
from wolfstream.solver.calibration.ranking import (
    Ranking,
    RankingScores,
    no_ranking,
    overall_scores,
    recent_scores,
    with_rows,
)
from wolfstream.solver.calibration.recent import appended
from wolfstream.solver.calibration.reliability import (
    ROWS,
    SCORE,
    Totals,
    no_totals,
    score_rows,
    summary,
    with_columns,
)

# How many of the last decisions the scaling is fitted to. Learners change as they learn: of 250,
# 500, 1,000 and 2,000 the fewest were the best on nearly all streams (`benchmarks.calibration`).
_FIT_ROWS = 256
# The phases of `points.until_next`. One of two heads that learn together has logarithms of
# probabilities as scores; with different phases they are calibrated at different samples, none of
# which ends a chunk of 32.
_PHASE, _LOG_PHASE = 80, 208


class ClassConfidence:
    """An immutable view of a calibration.

    scaling: None if scores are logarithms of probabilities.
    misses: (confidences,) alpha of each confidence.
    recent: (ROWS, at most 1,000) columns of the last rows (`reliability`).
    totals: over all rows.
    ranking: counts of the probabilities of all rows.
    """

    def __init__(
        self,
        scaling: Scaling | None,
        misses: Float64Array,
        recent: Float64Array,
        totals: Totals,
        ranking: Ranking,
    ) -> None:
        self.scaling, self.misses, self.recent, self.totals = scaling, misses, recent, totals
        self.ranking = ranking

    def probabilities(self, scores: Float64Array) -> Float64Array:
        """Return the probabilities (n, K) of scores (n, K)."""
        return probabilities(self.scaling_of(scores.shape[1]), scores)

    def scaling_of(self, classes: int) -> Scaling:
        """Return the scaling for this many classes; the offset of a new one is 0."""
        if self.scaling is None:
            return identity_scaling(classes)
        missing = classes - len(self.scaling.offset)
        if missing <= 0:
            return self.scaling
        return Scaling(self.scaling.slope, np.pad(self.scaling.offset, (0, missing)))

    def sets(self, probability: Float64Array, confidence: float) -> NDArray[np.bool_]:
        """Return which classes are in the prediction sets, (n, K); the likeliest always is.

        probability: (n, K).
        confidence: of the sets, in (0, 1).
        """
        limit = threshold(self.recent[SCORE], self.misses, confidence)
        inside = 1.0 - probability <= limit
        inside[np.arange(len(inside)), np.argmax(probability, axis=1)] = True
        return inside

    def is_mature(self, other: "ClassConfidence") -> bool:
        """Return whether it is based on as many rows as another one, or on 1,000."""
        return self.totals.samples >= min(other.totals.samples, RECENT)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The quality of probabilities and sets (`reliability.summary`)."""
        return summary(self.totals, self.recent)

    @cached_property
    def ranking_scores(self) -> RankingScores:
        """The ranking scores of all rows."""
        return overall_scores(self.ranking)

    @cached_property
    def recent_ranking_scores(self) -> RankingScores:
        """The ranking scores of the last 1,000 rows."""
        return recent_scores(self.ranking)


class ClassCalibration:
    """Computes the calibration of scores and labels.

    log_scores: whether the scores are logarithms of probabilities, up to a constant for each row.
    """

    def __init__(self, *, log_scores: bool = False) -> None:
        self._log_scores = log_scores
        self._view = _first_view()
        # The decisions that the scaling is fitted to.
        self._scores, self._codes = np.empty((0, 0)), np.empty(0, np.int64)
        # The first `_n_waiting` rows of these wait for the next point. The arrays have room for
        # more: joining one array for each call would take longer than the rest.
        self._waiting, self._waiting_codes = np.empty((0, 0)), np.empty(0, np.int64)
        self._n_waiting = self._seen = 0

    def absorb(self, scores: Float64Array, codes: NDArray[np.int64]) -> None:
        """Add decisions.

        scores: (n, K); NaN for a class that was not known. Rows of NaN alone are ignored.
        codes: (n,) the class numbers of the labels.
        """
        n, start, phase = len(codes), 0, _LOG_PHASE if self._log_scores else _PHASE
        while start < n:
            # A forged state may have more rows waiting than until the next point.
            room = max(until_next(self._seen, phase) - self._n_waiting, 1)
            part = slice(start, start + room)
            self._append_waiting(scores[part], codes[part])
            if n - start >= room:
                self._update()
            start += room

    def _append_waiting(self, scores: Float64Array, codes: NDArray[np.int64]) -> None:
        """Store decisions until the next point."""
        start, stop, width = self._n_waiting, self._n_waiting + len(codes), scores.shape[1]
        if stop > len(self._waiting) or width > self._waiting.shape[1]:
            self._make_room(2 * stop, width)
        self._waiting[start:stop, :width], self._waiting_codes[start:stop] = scores, codes
        self._n_waiting = stop

    def _make_room(self, rows: int, width: int) -> None:
        """Allocate room for this many rows, filled with NaN."""
        scores, codes = self._waiting_rows(width)
        self._waiting = np.full((rows, scores.shape[1]), np.nan)
        self._waiting_codes = np.empty(rows, np.int64)
        self._waiting[: self._n_waiting], self._waiting_codes[: self._n_waiting] = scores, codes

    def view(self) -> ClassConfidence:
        """Return the calibration at the last point; it never changes."""
        return self._view

    def _update(self) -> None:
        """Score the waiting decisions by the present calibration, then update it."""
        scores, codes = self._waiting_rows(0)
        self._seen += self._n_waiting
        self._waiting, self._waiting_codes = np.empty((0, 0)), np.empty(0, np.int64)
        self._n_waiting = 0
        valid = ~np.isnan(scores).all(axis=1)
        scores, codes = scores[valid], codes[valid]
        if not len(codes):
            return
        old = self._view
        limits = thresholds(np.sort(old.recent[SCORE]), old.misses)
        probability = old.probabilities(scores)
        scored, plain = score_rows(probability, codes, limits)
        columns = scored.columns()
        scaling = None if self._log_scores else self._fit(scores, codes)
        self._view = ClassConfidence(
            scaling,
            next_misses(old.misses, plain),
            appended(old.recent, columns, RECENT),
            with_columns(old.totals, columns),
            with_rows(old.ranking, probability, codes, RECENT),
        )

    def _waiting_rows(self, classes: int) -> tuple[Float64Array, NDArray[np.int64]]:
        """Return the waiting scores, with at least `classes` columns, and labels."""
        rows = slice(self._n_waiting)
        scores, codes = self._waiting[rows], self._waiting_codes[rows]
        return _widened(scores, max(classes, scores.shape[1])), codes

    def _fit(self, scores: Float64Array, codes: NDArray[np.int64]) -> Scaling | None:
        """Return the scaling fitted to the last decisions whose class was known."""
        width = scores.shape[1]
        inside = codes < width
        met = inside & ~np.isnan(scores[np.arange(len(codes)), np.where(inside, codes, 0)])
        kept = slice(max(0, len(self._codes) + int(met.sum()) - _FIT_ROWS), None)
        self._scores = np.concatenate([_widened(self._scores[kept], width), scores[met]])
        self._codes = np.concatenate([self._codes[kept], codes[met]])
        if not len(self._codes):
            return self._view.scaling
        return fit_scaling(self._view.scaling, self._scores, self._codes)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays from which `restore` continues bit for bit."""
        view = self._view
        waiting, waiting_codes = self._waiting_rows(self._scores.shape[1])
        arrays: dict[str, NDArray[Any]] = {
            "samples": np.array([view.totals.samples, self._seen, self._n_waiting], np.int64),
            "sums": view.totals.sums,
            "bins": view.totals.bins,
            "misses": view.misses,
            "recent": view.recent,
            "scores": _without_nan(self._scores),
            "codes": self._codes,
            "waiting": _without_nan(waiting),
            "waiting_codes": waiting_codes,
            "ranking": view.ranking.counts,
            "ranking_bins": view.ranking.bins,
            "ranking_codes": view.ranking.codes,
        }
        if view.scaling is not None:
            arrays["scaling"] = np.array([view.scaling.slope, *view.scaling.offset])
        return {name: array.copy() for name, array in arrays.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        arrays = {name: np.array(array) for name, array in state.items()}
        scaling = None
        if "scaling" in arrays:
            scaling = Scaling(float(arrays["scaling"][0]), arrays["scaling"][1:])
        scored, self._seen, self._n_waiting = arrays["samples"].tolist()
        totals = Totals(scored, arrays["sums"], arrays["bins"])
        names = "ranking", "ranking_bins", "ranking_codes"
        ranking = Ranking(*(arrays[name] for name in names))
        self._view = ClassConfidence(scaling, arrays["misses"], arrays["recent"], totals, ranking)
        self._scores, self._codes = _with_nan(arrays["scores"]), arrays["codes"]
        self._waiting, self._waiting_codes = np.empty((0, 0)), np.empty(0, np.int64)
        if self._n_waiting:
            self._waiting, self._waiting_codes = (
                _with_nan(arrays["waiting"]),
                arrays["waiting_codes"],
            )


def _first_view() -> ClassConfidence:
    return ClassConfidence(None, first_misses(), np.empty((ROWS, 0)), no_totals(), no_ranking())


def _without_nan(scores: Float64Array) -> Float64Array:
    """Replace NaN by -inf, which no score is, so that saved arrays can be compared."""
    return np.where(np.isnan(scores), -np.inf, scores)


def _with_nan(scores: Float64Array) -> Float64Array:
    """Undo `_without_nan`."""
    return np.where(np.isneginf(scores), np.nan, scores)


def _widened(scores: Float64Array, width: int) -> Float64Array:
    """Append columns of NaN up to a width."""
    missing = width - scores.shape[1]
    return scores if not missing else np.pad(scores, ((0, 0), (0, missing)), constant_values=np.nan)
