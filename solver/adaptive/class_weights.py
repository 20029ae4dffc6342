"""Weights of classes in a bank's predictions: a mistake about a class costs its weight.

    prediction = argmax_k w_k p_k

is the label of the least expected cost (Elkan 2001, eq. 1), where p are the probabilities of the
bank, its trees and the labels before together. Learning and probabilities are the same as without
weights: a rare class is predicted more often, but its probability stays its frequency. Weighting
samples in learning instead (of the bank, of trees, or of their combination) and dividing the
weights out of the probabilities ranked rare classes worse on nearly all streams and found fewer of
them (benchmarks/README.md, What weights of classes cost).
"""

from collections.abc import Mapping
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.temporal_answers import TemporalAnswers
from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.labels import Label, text_of

# Text of a label -> weight, 1 for others; "balanced": n / (K n_k) for n samples, n_k of class k.
ClassWeight: TypeAlias = Literal["balanced"] | Mapping[str, float]


class WeightedAnswers:
    """Answers of a bank whose predictions have the largest weighted probability.

    answers: of the bank.
    weight: (n, K) weights of the classes when each row was predicted, or (K,).
    bare: the answers without weights.
    probability: (n, K) without weights.
    prediction, decision: see `ClassAnswers`, by weighted probabilities.
    """

    def __init__(self, answers: ClassAnswers | TemporalAnswers, weight: Float64Array) -> None:
        assert answers.probability is not None
        self.bare, self.probability = answers, answers.probability
        share = answers.probability * weight
        total = share.sum(axis=1, keepdims=True)
        likeliest = np.argmax(share, axis=1)
        self._weighted = ClassAnswers(
            np.where(answers.prediction < 0, -1, likeliest),
            share / np.where(total > 0.0, total, 1.0),
        )
        self.prediction = self._weighted.prediction

    @property
    def decision(self) -> Float64Array:
        """The decision of weighted probabilities."""
        return self._weighted.decision


class ClassWeights:
    """The weights of the classes so far.

    class_weight: see `ClassWeight`; labels may be added to it before they are met.
    """

    def __init__(self, class_weight: ClassWeight) -> None:
        self.class_weight = class_weight
        # By class code: the given weight, and the number of samples.
        self._weight: list[float] = []
        self._counts: list[int] = []

    @property
    def _balanced(self) -> bool:
        return isinstance(self.class_weight, str)

    def meet(self, label: Label) -> None:
        """Prepare for the next class code, which is that of this label."""
        by_label = {} if isinstance(self.class_weight, str) else self.class_weight
        self._weight.append(float(by_label.get(text_of(label), 1.0)))
        self._counts.append(0)

    def now(self) -> Float64Array:
        """Return the weights (K,) of the classes for the next sample."""
        if not self._balanced:
            return np.array(self._weight)
        return balanced(np.array([self._counts], np.int64)).ravel()

    def absorb(self, codes: NDArray[np.int64]) -> Float64Array:
        """Count samples with class codes (n,); return the weights (n, K) just before each."""
        if not self._balanced:
            return np.broadcast_to(np.array(self._weight), (len(codes), len(self._weight)))
        counts = np.zeros((len(codes) + 1, len(self._counts)), np.int64)
        counts[0] = self._counts
        counts[np.arange(1, len(counts)), codes] = 1
        counts = counts.cumsum(axis=0)
        self._counts = counts[-1].tolist()
        return balanced(counts[:-1])

    def add(self, other: Self, codes: NDArray[np.int64]) -> None:
        """Add the counts of another stream; codes: (K,) the codes here of its classes."""
        for code, count in zip(codes.tolist(), other.counts, strict=False):
            self._counts[code] += count

    @property
    def counts(self) -> list[int]:
        """The number of samples of each class: the state."""
        return self._counts.copy()

    def restore(self, counts: list[int]) -> None:
        """Restore `counts`, after all classes were met."""
        self._counts = list(counts)


def balanced(counts: NDArray[np.int64]) -> Float64Array:
    """Return n / (K n_k) for each row of counts (rows, K), 1 for a class without samples."""
    n, met = counts.sum(axis=1, keepdims=True), (counts > 0).sum(axis=1, keepdims=True)
    return np.where(counts > 0, n / np.maximum(met * counts, 1), 1.0)
