"""The calibration of a learner of classes: probabilities, sets, and how good they are.

All of it comes from prequential scores, each made before the label of its row, and changes at
counts of them alone (`points`). So the same stream gives the same bits, and so does a replay.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.conformal import (
    RECENT,
    adapted,
    first_misses,
    threshold,
    thresholds,
)
from wolfstream.solver.calibration.platt import Scaling, fitted, identity, probabilities
from wolfstream.solver.calibration.points import until_next
from wolfstream.solver.calibration.ranking import (
    Ranked,
    Ranking,
    no_ranking,
    of_all,
    of_recent,
    ranked,
)
from wolfstream.solver.calibration.recent import appended
from wolfstream.solver.calibration.reliability import (
    ROWS,
    SCORE,
    Totals,
    added,
    judged,
    no_totals,
    summary,
)

# The last decisions that the scaling is fitted to. Learners change as they learn: of 250, 500,
# 1,000 and 2,000 these were the best on nearly all streams (`benchmarks.calibration`).
_FITTED = 256
# Of learners that listen to each other one answers with logarithms of probabilities. They take in
# at different samples, none of which ends a chunk of 32.
_PHASE, _PHASE_OF_LOGS = 80, 208


class ClassConfidence:
    """An immutable view of a calibration.

    scaling: None if scores are logarithms of probabilities. misses: alpha of each confidence.
    recent: (ROWS, at most 1,000) columns of the last rows. totals: over all rows. ranking: how
    their probabilities rank, of the same rows.
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
        """(n, K) of scores (n, K); see `platt.probabilities`."""
        return probabilities(self.scaling_of(scores.shape[1]), scores)

    def scaling_of(self, classes: int) -> Scaling:
        """The scaling with an offset for so many classes; that of one that came since is 0."""
        if self.scaling is None:
            return identity(classes)
        missing = classes - len(self.scaling.offset)
        if missing <= 0:
            return self.scaling
        return Scaling(self.scaling.slope, np.pad(self.scaling.offset, (0, missing)))

    def sets(self, probability: Float64Array, confidence: float) -> NDArray[np.bool_]:
        """Return which classes, (n, K), are in the prediction sets; the likeliest always is."""
        limit = threshold(self.recent[SCORE], self.misses, confidence)
        inside = 1.0 - probability <= limit
        inside[np.arange(len(inside)), np.argmax(probability, axis=1)] = True
        return inside

    def is_like(self, other: "ClassConfidence") -> bool:
        """Return whether it comes from as many rows as another one, or from enough."""
        return self.totals.samples >= min(other.totals.samples, RECENT)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """How good probabilities and sets were; see `reliability.summary`."""
        return summary(self.totals, self.recent)

    @cached_property
    def ranked(self) -> Ranked:
        """How well all probabilities so far rank rows."""
        return of_all(self.ranking)

    @cached_property
    def ranked_recently(self) -> Ranked:
        """How well the last 1,000 probabilities rank rows."""
        return of_recent(self.ranking)


class ClassCalibration:
    """Takes scores and labels; `view` is the calibration that follows from them.

    log_scores: whether the scores are logarithms of probabilities already, up to a constant a row.
    """

    def __init__(self, *, log_scores: bool = False) -> None:
        self._log_scores = log_scores
        self._view = _nothing()
        # Decisions that the scaling is fitted to.
        self._scores, self._codes = np.empty((0, 0)), np.empty(0, np.int64)
        # The first `_held` wait for the next point, as wide as the widest of them. Room grows with
        # them: to join as many arrays as rows takes longer than all else that is done there.
        self._waiting, self._waiting_codes = np.empty((0, 0)), np.empty(0, np.int64)
        self._held = self._seen = 0

    def absorb(self, scores: Float64Array, codes: NDArray[np.int64]) -> None:
        """Take in scores (n, K) of rows and their labels (n,), numbers of classes.

        NaN is a class of which nothing was known; rows of NaN alone are left out.
        """
        n, start, phase = len(codes), 0, _PHASE_OF_LOGS if self._log_scores else _PHASE
        while start < n:
            # A state that was made up may have more waiting than is waited for.
            room = max(until_next(self._seen, phase) - self._held, 1)
            part = slice(start, start + room)
            self._wait(scores[part], codes[part])
            if n - start >= room:
                self._take_in()
            start += room

    def _wait(self, scores: Float64Array, codes: NDArray[np.int64]) -> None:
        """Hold decisions until the next point."""
        start, stop, width = self._held, self._held + len(codes), scores.shape[1]
        if stop > len(self._waiting) or width > self._waiting.shape[1]:
            self._make_room(2 * stop, width)
        self._waiting[start:stop, :width], self._waiting_codes[start:stop] = scores, codes
        self._held = stop

    def _make_room(self, rows: int, width: int) -> None:
        """Have room for so many, NaN where nothing is written."""
        scores, codes = self._of_waiting(width)
        self._waiting = np.full((rows, scores.shape[1]), np.nan)
        self._waiting_codes = np.empty(rows, np.int64)
        self._waiting[: self._held], self._waiting_codes[: self._held] = scores, codes

    def view(self) -> ClassConfidence:
        """As of the last point; nothing changes it."""
        return self._view

    def _take_in(self) -> None:
        """Judge what waits by what was known before, then learn from it."""
        scores, codes = self._of_waiting(0)
        self._seen += self._held
        self._waiting, self._waiting_codes = np.empty((0, 0)), np.empty(0, np.int64)
        self._held = 0
        valid = ~np.isnan(scores).all(axis=1)
        scores, codes = scores[valid], codes[valid]
        if not len(codes):
            return
        old = self._view
        limits = thresholds(np.sort(old.recent[SCORE]), old.misses)
        probability = old.probabilities(scores)
        calibrated, plain = judged(probability, codes, limits)
        columns = calibrated.columns()
        scaling = None if self._log_scores else self._fitted(scores, codes)
        self._view = ClassConfidence(
            scaling,
            adapted(old.misses, plain),
            appended(old.recent, columns, RECENT),
            added(old.totals, columns),
            ranked(old.ranking, probability, codes, RECENT),
        )

    def _of_waiting(self, classes: int) -> tuple[Float64Array, NDArray[np.int64]]:
        """Return what waits, for `classes` at least."""
        scores = self._waiting[: self._held]
        return _widened(scores, max(classes, scores.shape[1])), self._waiting_codes[: self._held]

    def _fitted(self, scores: Float64Array, codes: NDArray[np.int64]) -> Scaling | None:
        """Return the scaling of the last decisions, of those whose class was known."""
        width = scores.shape[1]
        inside = codes < width
        met = inside & ~np.isnan(scores[np.arange(len(codes)), np.where(inside, codes, 0)])
        kept = slice(max(0, len(self._codes) + int(met.sum()) - _FITTED), None)
        self._scores = np.concatenate([_widened(self._scores[kept], width), scores[met]])
        self._codes = np.concatenate([self._codes[kept], codes[met]])
        if not len(self._codes):
            return self._view.scaling
        return fitted(self._view.scaling, self._scores, self._codes)

    def state(self) -> dict[str, NDArray[Any]]:
        """Plain arrays from which `restore` goes on bit for bit."""
        view = self._view
        waiting, waiting_codes = self._of_waiting(self._scores.shape[1])
        arrays: dict[str, NDArray[Any]] = {
            "samples": np.array([view.totals.samples, self._seen, self._held], np.int64),
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
        """Take over a state."""
        arrays = {name: np.array(array) for name, array in state.items()}
        scaling = None
        if "scaling" in arrays:
            scaling = Scaling(float(arrays["scaling"][0]), arrays["scaling"][1:])
        judged_so_far, self._seen, self._held = arrays["samples"].tolist()
        totals = Totals(judged_so_far, arrays["sums"], arrays["bins"])
        names = "ranking", "ranking_bins", "ranking_codes"
        ranking = Ranking(*(arrays[name] for name in names))
        self._view = ClassConfidence(scaling, arrays["misses"], arrays["recent"], totals, ranking)
        self._scores, self._codes = _with_nan(arrays["scores"]), arrays["codes"]
        self._waiting, self._waiting_codes = np.empty((0, 0)), np.empty(0, np.int64)
        if self._held:
            self._waiting, self._waiting_codes = (
                _with_nan(arrays["waiting"]),
                arrays["waiting_codes"],
            )


def _nothing() -> ClassConfidence:
    return ClassConfidence(None, first_misses(), np.empty((ROWS, 0)), no_totals(), no_ranking())


def _without_nan(scores: Float64Array) -> Float64Array:
    """Scores to be saved: NaN is no number that equals itself, and no score is infinite."""
    return np.where(np.isnan(scores), -np.inf, scores)


def _with_nan(scores: Float64Array) -> Float64Array:
    """Inverts `_without_nan`."""
    return np.where(np.isneginf(scores), np.nan, scores)


def _widened(scores: Float64Array, width: int) -> Float64Array:
    """Scores with so many columns, NaN in those that are new."""
    missing = width - scores.shape[1]
    return scores if not missing else np.pad(scores, ((0, 0), (0, missing)), constant_values=np.nan)
