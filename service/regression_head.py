"""A head that learns numbers: ASSET for regression, and its score."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service import prediction
from service.errors import Untrained
from service.head import Answers, LabelKey
from service.learner import HeadLearner, asset_of, asset_stats, check_norms
from service.prediction import LearnerView
from service.samples import Samples
from service.scores import Errors
from service.spec import ModelSpec
from service.targets import Targets
from solver.asset import Asset
from solver.rows import Matrix


class RegressionView(NamedTuple):
    """An immutable picture of the head; the fields as in `ClassificationView`."""

    model: LearnerView | None
    stats: dict[str, Any]
    largest_square_norm: float
    features: int

    @property
    def classes(self) -> None:
        """There are none."""
        return

    @property
    def trained(self) -> bool:
        """Whether there has been a sample."""
        return self.model is not None

    def predict(self, X: Matrix) -> tuple[list[float], list[float]]:
        """A number for each row, twice; raises Untrained, InvalidSamples."""
        if self.model is None:
            raise Untrained("a prediction needs at least one sample; the model has met none")
        said, decision = prediction.predict(self.model, X, self.largest_square_norm, self.features)
        return said.tolist(), decision.tolist()

    def cost(self, rows: int, entries: int) -> int:
        """Multiplications of a prediction; see `HeadView.cost`."""
        return 0 if self.model is None else prediction.cost(self.model, rows, entries)


class RegressionHead:
    """ASSET with the epsilon-insensitive loss, and its prequential score."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._score = Errors()
        self.learner: HeadLearner[Asset] = HeadLearner(spec, partial(asset_of, spec))

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse rows that no kernel value could hold; there are no labels to meet."""
        del most_classes
        assert not isinstance(samples.y, list)
        check_norms(samples.X, self.learner.largest_square_norm())
        return drafted

    def absorb(self, X: Matrix, y: Targets) -> Answers:
        """Learn samples in order, test-then-train; the same for live requests and for replay."""
        assert not isinstance(y, list)
        said = np.concatenate([part.prediction for part in self.learner.absorb(X, y)])
        judged = ~np.isnan(said)
        self._score.count((said - y)[judged])
        told = [value if value == value else None for value in said.tolist()]
        return Answers(told, list(told))

    def view(self) -> RegressionView:
        """What predictions and descriptions read from now on."""
        learner = self.learner.current
        stats = asset_stats(self._spec, learner) | self.learner.gamma
        return RegressionView(
            learner.view() if learner.steps else None,
            {**stats, "prequential": self._score.told()},
            self.learner.largest_square_norm(),
            self.learner.features,
        )

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays from which `restore` goes on bit for bit."""
        plain, arrays = self.learner.state()
        return {**plain, **self._score.state()}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        self._score.restore(plain)
        self.learner.restore(plain, arrays)
