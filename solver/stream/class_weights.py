"""Weights of classes in what a bank predicts: a mistake about a class costs its weight.

    prediction = argmax_k w_k p_k

is the label of the least expected cost (Elkan 2001, eq. 1), p being what the bank, trees and the
labels before answer together. What is learned and its probabilities stay as they are without
weights: a rare class is predicted more often, and still has the probability with which it comes.
Weights of the samples in what is learned, of the bank and trees, of trees alone, or of the bank's
and trees' combination, divided out of the probabilities afterwards, ranked rare classes worse on
nearly all streams and found fewer of them (benchmarks/README.md, What weights of classes cost).
"""

from collections.abc import Mapping
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.stream.labels import Label, text_of
from wolfstream.solver.stream.placed import PlacedAnswers

# By a label's text, 1 for others. "balanced": n / (K n_k) of the n samples so far, n_k of class k.
ClassWeight: TypeAlias = Literal["balanced"] | Mapping[str, float]


class WeightedAnswers:
    """Answers of a bank, of which those with the largest weighted probability are predicted.

    prediction, decision: as of `ClassAnswers`, of weighted probabilities. probability: (n, K) of
    the bank. bare: its own answers.
    """

    def __init__(self, answers: ClassAnswers | PlacedAnswers, weight: Float64Array) -> None:
        """weight: (n, K) of the classes when each row was answered, or (K,)."""
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
        """As above."""
        return self._weighted.decision


class ClassWeights:
    """The weight of each class that was met.

    class_weight: as of `ClassWeight`; more labels may be added before they are met.
    """

    def __init__(self, class_weight: ClassWeight) -> None:
        self.class_weight = class_weight
        # By class number: the given weight, and how many samples came.
        self._weight: list[float] = []
        self._counts: list[int] = []

    @property
    def _balanced(self) -> bool:
        return isinstance(self.class_weight, str)

    def meet(self, label: Label) -> None:
        """Prepare for the next class number, which is this label's."""
        by_label = {} if isinstance(self.class_weight, str) else self.class_weight
        self._weight.append(float(by_label.get(text_of(label), 1.0)))
        self._counts.append(0)

    def now(self) -> Float64Array:
        """(K,) the weights of the next sample's classes."""
        if not self._balanced:
            return np.array(self._weight)
        return balanced(np.array([self._counts], np.int64)).ravel()

    def absorb(self, codes: NDArray[np.int64]) -> Float64Array:
        """Count samples with class numbers (n,); the weights (n, K) just before each of them."""
        if not self._balanced:
            return np.broadcast_to(np.array(self._weight), (len(codes), len(self._weight)))
        counts = np.zeros((len(codes) + 1, len(self._counts)), np.int64)
        counts[0] = self._counts
        counts[np.arange(1, len(counts)), codes] = 1
        counts = counts.cumsum(axis=0)
        self._counts = counts[-1].tolist()
        return balanced(counts[:-1])

    def add(self, other: Self, places: NDArray[np.int64]) -> None:
        """Count the samples of another one, too. places: the numbers here of its classes."""
        for code, count in zip(places.tolist(), other.counts, strict=False):
            self._counts[code] += count

    @property
    def counts(self) -> list[int]:
        """How many samples of each class came; what a state has to keep."""
        return self._counts.copy()

    def restore(self, counts: list[int]) -> None:
        """Take over counts, of classes that were all met."""
        self._counts = list(counts)


def balanced(counts: NDArray[np.int64]) -> Float64Array:
    """n / (K n_k) of each row of counts (rows, classes), 1 for a class without samples."""
    n, met = counts.sum(axis=1, keepdims=True), (counts > 0).sum(axis=1, keepdims=True)
    return np.where(counts > 0, n / np.maximum(met * counts, 1), 1.0)
