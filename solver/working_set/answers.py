"""The results of a working set for the samples of a call, for any number of classes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe.pairs import couple, coupled_scores, one_versus_one_scores


class SetAnswers(NamedTuple):
    """The predictions for n samples just before each was learned, and the steps it caused."""

    # (n,) class numbers, -1 while fewer than two classes were known.
    prediction: NDArray[np.int64]
    # (n,) decision values where at most two classes are known after the last sample, otherwise
    # (n, classes) scores, -f/2 and f/2 of a decision f while two were known; NaN where there was
    # no model yet.
    decision: Float64Array
    # (n,) whether any problem admitted the sample to its working set.
    admitted: NDArray[np.bool_]
    # (n,) bit 1 << kind for each kind of step that the problems took for the sample.
    step: NDArray[np.uint8]
    # (n,) the number under which the sample was stored, now or in an earlier pass; -1 where it is
    # not in the set. A further pass over the same rows passes it to `absorb`.
    entered: NDArray[np.int64]
    # (n,) decision / q of the problem of the first two classes (`decisions.Trace`).
    margin: Float64Array
    # (n, classes) coupled scores (`predictions.SetPredictions`); None where the decisions are the
    # scores.
    scores: Float64Array | None = None


class BlockTrace(NamedTuple):
    """The results of all P problems for a block of n samples."""

    # (n, P) decisions and margins of `decisions.Trace`.
    decision: Float64Array
    margin: Float64Array
    # (n,) whether any problem admitted the sample.
    admitted: NDArray[np.bool_]
    # (P, n) the kinds of step.
    step: NDArray[np.int8]
    # How many classes were known before the first sample, and before the others.
    classes: tuple[int, int]
    # (n,) see `SetAnswers`.
    entered: NDArray[np.int64]


def no_answers(n_classes: int) -> SetAnswers:
    """Return the results for zero samples."""
    none = np.empty(0, np.int64)
    shape = (0,) if n_classes <= 2 else (0, n_classes)
    flags, bits = none.astype(np.bool_), none.astype(np.uint8)
    return SetAnswers(none, np.empty(shape), flags, bits, none, np.empty(0))


def join_answers(answers: list[SetAnswers]) -> SetAnswers:
    """Join the results of consecutive blocks."""
    if len(answers) == 1:
        return answers[0]
    coupled = answers[0].scores is not None
    return SetAnswers(
        np.concatenate([part.prediction for part in answers]),
        np.concatenate([part.decision for part in answers]),
        np.concatenate([part.admitted for part in answers]),
        np.concatenate([part.step for part in answers]),
        np.concatenate([part.entered for part in answers]),
        np.concatenate([part.margin for part in answers]),
        np.concatenate([part.scores for part in answers if part.scores is not None])
        if coupled
        else None,
    )


def block_answers(trace: BlockTrace, n_classes: int, *, coupled: bool) -> SetAnswers:
    """Return the results of a block, whose first class may be new.

    They share no memory with the trace, which is much larger where classes are many.

    n_classes: how many classes are known at the end of the call.
    coupled: whether scores are those of `frank_wolfe.pairs.coupled_scores`.
    """
    n, (first, last) = len(trace.admitted), trace.classes
    if first == last == n_classes == 2:
        return _two_class_answers(trace, coupled=coupled)
    prediction = np.full(n, -1, np.int64)
    decision = np.full((n,) if n_classes <= 2 else (n, n_classes), np.nan)
    scores = np.full((n, n_classes), np.nan)
    parts = [(slice(None), last)]
    if first != last:
        parts = [(slice(0, 1), first), (slice(1, None), last)]
    for part, classes in parts:
        if classes < 2:
            continue
        margin = trace.margin[part, : classes * (classes - 1) // 2]
        if coupled:
            scores[part, :classes] = coupled_scores(margin, classes)
        if n_classes <= 2:
            prediction[part] = margin[:, 0] > 0.0
            decision[part] = trace.decision[part, 0]
            continue
        if classes == 2:
            prediction[part] = margin[:, 0] > 0.0
            decision[part, :2] = trace.decision[part, :1] * (-0.5, 0.5)
            continue
        votes = one_versus_one_scores(margin, classes)
        prediction[part] = np.argmax(votes, axis=1)
        decision[part, :classes] = votes
    bits = np.bitwise_or.reduce(1 << trace.step, axis=0) & ~1
    return SetAnswers(
        prediction,
        decision,
        trace.admitted,
        bits.astype(np.uint8),
        trace.entered,
        trace.margin[:, 0].copy(),
        scores if coupled else None,
    )


def _two_class_answers(trace: BlockTrace, *, coupled: bool) -> SetAnswers:
    """Return the results of a block that begins and ends with two classes."""
    n, margin = len(trace.admitted), trace.margin[:, 0]
    prediction, bits = np.empty(n, np.int64), np.empty(n, np.uint8)
    scores = np.empty((n, 2))
    _write_two_class_answers(margin, trace.step[0], prediction, bits, scores)
    coupled_only = scores if coupled else None
    return SetAnswers(
        prediction, trace.decision[:, 0], trace.admitted, bits, trace.entered, margin, coupled_only
    )


@compiled
def _write_two_class_answers(
    margin: Float64Array,
    step: NDArray[np.int8],
    prediction: NDArray[np.int64],
    bits: NDArray[np.uint8],
    scores: Float64Array,
) -> None:
    """Write prediction, step bits and coupled scores of n samples of two classes."""
    for i in range(len(margin)):
        prediction[i] = 1 if margin[i] > 0.0 else 0
        bits[i] = (1 << step[i]) & ~1
        couple(margin[i : i + 1], scores[i])
