"""A bank for classification: any number of classes, met as they come."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import (
    Combiner,
    combination_arrays,
    combination_from_arrays,
    known_classes,
    new_combination,
)
from wolfstream.solver.adaptive.expert_weights import ExpertWeights
from wolfstream.solver.adaptive.infinite_horizon import InfiniteHorizonWatches
from wolfstream.solver.adaptive.inputs import Inputs
from wolfstream.solver.adaptive.learners import Learners
from wolfstream.solver.adaptive.losses import Losses
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.adaptive.settings import CLASSIFICATION, Settings
from wolfstream.solver.adaptive.view import ClassAnswers, ClassView, joined, take_external
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights, as_numbers


class AdaptiveClassifier:
    """Learns prepared rows with class codes 0, 1, 2, ... in order of appearance.

    columns: number of columns of dense rows; None for sparse rows.
    settings: the learners of the bank.
    texts: how many text columns rows have.
    seed: of the random features.
    external_experts: names of learners whose scores the caller passes with each block.
    """

    def __init__(
        self,
        columns: int | None,
        settings: Settings = CLASSIFICATION,
        *,
        texts: int = 0,
        seed: int = 0,
        external_experts: Sequence[str] = (),
    ) -> None:
        self.settings, self.external = settings, tuple(external_experts)
        self.texts = texts
        self.inputs = Inputs(columns, seed)
        self.learners = Learners(
            settings,
            self.inputs.features,
            wide=self.inputs.wide,
            texts=texts,
            regression=False,
        )
        self.watches = InfiniteHorizonWatches(self.learners)
        self.kinds = self._kinds()
        prior = np.ones(len(self.kinds))
        prior[: self.learners.count] = self.learners.prior
        self.combination = new_combination(prior, settings.stackers)
        self._combiner, self.losses = Combiner(prior), Losses(len(prior))
        self.n_classes = self.samples = 0

    def absorb(
        self,
        X: Matrix,
        y: NDArray[np.int64],
        external: Float64Array | None = None,
        weight: Weights = None,
        codes: Float64Array | None = None,
    ) -> ClassAnswers:
        """Learn rows in order; return the prediction of each before its label was learned.

        Predictions do not depend on how a stream is cut into blocks, but for rounding.

        X: n prepared rows.
        y: (n,) class codes.
        external: (n, experts, classes) scores of the external experts, computed before the labels
            were used; NaN where an expert has none.
        weight: (n,) how much the loss of each row counts.
        codes: (n, texts) of the rows' texts, NaN where a text is missing.
        """
        answers: list[ClassAnswers] = []
        n, start = len(y), 0
        weights = as_numbers(weight, n)
        if 0 < n <= CHUNK - self.samples % CHUNK:
            return self._absorb_chunk(X, codes, y, external, weights)
        while start < n:
            part = slice(start, min(start + CHUNK - self.samples % CHUNK, n))
            votes = None if external is None else external[part]
            texts = None if codes is None else codes[part]
            rows = take_rows(X, part)
            answers.append(self._absorb_chunk(rows, texts, y[part], votes, weights[part]))
            start = part.stop
        return answers[0] if len(answers) == 1 else joined(answers, self.n_classes)

    def _absorb_chunk(
        self,
        X: Matrix,
        codes: Float64Array | None,
        y: NDArray[np.int64],
        external: Float64Array | None,
        weight: Float64Array,
    ) -> ClassAnswers:
        n, met = len(y), self.n_classes
        self.meet(max(met, 1 + max(y.tolist())))
        classes, known = self.n_classes, known_classes(y, met)
        one_hot = np.zeros((n, classes + 1))
        one_hot[np.arange(n), y] = 1.0
        # The last column of scores is that of the class that never comes.
        scores = np.empty((n, len(self.combination.beta), classes + 1))
        self.learners.absorb(*self.inputs.absorb(X), codes, one_hot, weight, scores)
        self.watches.absorb(scores, classes, y)
        awake = take_external(external, len(self.external), classes, scores)
        combine = self._combiner.combine
        probability, losses = combine(self.combination, scores, awake, y, known, weight)
        self.losses.add(losses)
        self.samples += n
        if self.samples % CHUNK == 0:
            self.learners.end_chunk(self.samples)
            self.watches.end_chunk(self.losses.last(CHUNK), self.combination)
        prediction = probability.argmax(axis=1)
        if met == 0:
            prediction[known == 0] = -1
        return ClassAnswers(prediction, probability)

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes, not fewer than before."""
        if classes == self.n_classes:
            return
        self.n_classes = classes
        self.learners.meet(classes)
        self.watches.meet(classes)

    def view(self) -> ClassView:
        """Return an immutable copy, for `view.predict_classes`."""
        return ClassView(
            self.inputs.view(),
            self.learners.view(),
            type(self.combination)(*(field.copy() for field in self.combination)),
            self.n_classes,
            len(self.external),
        )

    def expert_weights(self) -> ExpertWeights:
        """Return the weight and mean log losses of each learner."""
        return ExpertWeights(self.kinds, self.combination.weight.copy(), *self.losses.means())

    @property
    def nbytes(self) -> int:
        """Memory in bytes of what learning reads and writes."""
        n_bytes = self.learners.nbytes + self.losses.nbytes + self.inputs.features.W.nbytes
        return n_bytes + self.watches.nbytes + sum(array.nbytes for array in self.combination)

    def _kinds(self) -> list[dict[str, Any]]:
        """Return the parameters of each learner, in the order of the weights."""
        kinds = self.learners.kinds + [
            {"learner": name, "external": True} for name in self.external
        ]
        kinds += [{"learner": "stacker", "step": step} for step in self.settings.stackers]
        return kinds

    def state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `restore` continues bit for bit."""
        arrays = {"counts": np.array([self.samples, self.n_classes], np.int64)}
        arrays |= self.inputs.state() | self.learners.state() | self.losses.state()
        arrays |= self.watches.state()
        return arrays | combination_arrays("combination", self.combination)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state of a classifier with the same parameters."""
        self.samples, self.n_classes = (int(value) for value in state["counts"])
        self.inputs.restore(state)
        self.learners.restore(state)
        self.watches.restore(state)
        self.losses.restore(state)
        self.combination = combination_from_arrays("combination", state)
