"""A head that learns classes: its learner, the labels it has met, and its score."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service import prediction
from service.errors import InvalidSamples, Untrained
from service.head import Answers, LabelKey
from service.learner import HeadLearner, asset_of, asset_stats, check_norms
from service.prediction import LearnerView
from service.samples import Samples
from service.scores import Hits
from service.spec import HeadName, ModelSpec
from service.targets import Label, Targets
from solver.asset import Asset
from solver.kernels import Float64Array, Kernel
from solver.rows import Matrix
from solver.simplex import STEP_NAMES
from solver.view import WorkingSetView
from solver.working_set import WorkingSet


class ClassificationView(NamedTuple):
    """An immutable picture of the head.

    features: of sparse rows, one more than the largest feature number that the head has met.
    """

    model: LearnerView | None
    classes: tuple[Label, ...]
    stats: dict[str, Any]
    largest_square_norm: float
    features: int

    @property
    def trained(self) -> bool:
        """Whether two classes have been met."""
        return self.model is not None and len(self.classes) > 1

    def predict(self, X: Matrix) -> tuple[list[Label], list[Any]]:
        """Labels and decisions of finite rows; raises Untrained, InvalidSamples."""
        if self.model is None or not self.trained:
            raise Untrained(
                "a prediction needs samples of at least two classes; "
                f"the model has met {list(self.classes)!r}"
            )
        codes, decision = prediction.predict(self.model, X, self.largest_square_norm, self.features)
        return [self.classes[code] for code in codes.tolist()], decision.tolist()

    def cost(self, rows: int, entries: int) -> int:
        """Multiplications of a prediction; see `HeadView.cost`."""
        return 0 if self.model is None else prediction.cost(self.model, rows, entries)


class ClassificationHead:
    """A working set or ASSET, the labels it has met, and its prequential score."""

    def __init__(self, name: HeadName, spec: ModelSpec) -> None:
        self.name = name
        self._spec = spec
        self.classes: list[Label] = []
        self._code_of: dict[LabelKey, int] = {}
        own = spec.working_set
        self._weight_of = {_key(w.label): w.weight for w in own.class_weight} if own else {}
        self._score = Hits()
        self.learner: HeadLearner[WorkingSet | Asset] = HeadLearner(spec, self._build)

    @property
    def working_set(self) -> WorkingSet:
        """The learner itself, for what no stream can say: further passes, a solution to adopt."""
        learner = self.learner.current
        assert isinstance(learner, WorkingSet)
        return learner

    def meet(self, labels: Iterable[Label]) -> list[int]:
        """The class numbers of labels; new ones are numbered in this order."""
        return [self._code(label) for label in labels]

    def _build(self, kernel: Kernel) -> WorkingSet | Asset:
        if self.name == "asset":
            return asset_of(self._spec, kernel)
        own = self._spec.working_set
        assert own is not None
        return WorkingSet(
            kernel,
            own.C,
            own.algorithm,
            own.corrective_steps,
            own.max_size,
            class_weight=[self._weight_of.get(_key(label), 1.0) for label in self.classes],
        )

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse rows that no kernel value could hold, and too many labels; see `Head.check`."""
        assert isinstance(samples.y, list)
        check_norms(samples.X, self.learner.largest_square_norm())
        new = self.unknown(samples.y) | drafted
        if len(new) + len(self.classes) > most_classes:
            raise InvalidSamples(
                f"the model would meet more than {most_classes} different labels; is y a number "
                'to be regressed, not a class? A spec says that with "task": "regression"'
            )
        return new

    def unknown(self, labels: list[Label]) -> set[LabelKey]:
        """Labels that this head has not met."""
        return {_key(label) for label in labels} - self._code_of.keys()

    def absorb(self, X: Matrix, y: Targets) -> Answers:
        """Learn samples in order, test-then-train; the same for live requests and for replay."""
        assert isinstance(y, list)
        codes = np.array(self.meet(y), np.int64)
        parts = self.learner.absorb(X, codes)
        said = np.concatenate([part.prediction for part in parts])
        judged = said >= 0
        self._score.count(codes[judged], said[judged])
        decision = [value for part in parts for value in _decisions(part.decision)]
        predicted = [self.classes[code] if code >= 0 else None for code in said.tolist()]
        if self.name == "asset":
            return Answers(predicted, decision)
        return Answers(
            predicted,
            decision,
            [bool(value) for part in parts for value in part.admitted],
            [_STEPS[bits] for part in parts for bits in part.step.tolist()],
        )

    def view(self) -> ClassificationView:
        """What predictions and descriptions read from now on."""
        learner = self.learner.current
        model = learner.view() if self.classes else None
        if isinstance(learner, Asset):
            stats = asset_stats(self._spec, learner)
        else:
            stats = _set_stats(learner, model)
        return ClassificationView(
            model,
            tuple(self.classes),
            {**stats, **self.learner.gamma, "prequential": self._score.told()},
            self.learner.largest_square_norm(),
            self.learner.features,
        )

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays from which `restore` goes on bit for bit."""
        plain, arrays = self.learner.state()
        return {"classes": list(self.classes), **plain, **self._score.state()}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        self.meet(plain["classes"])
        self._score.restore(plain)
        self.learner.restore(plain, arrays)

    def _code(self, label: Label) -> int:
        key = _key(label)
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = len(self.classes)
            self.classes.append(label)
            learner = self.learner.current
            if isinstance(learner, WorkingSet):
                learner.class_weight.append(self._weight_of.get(key, 1.0))
        return code


def _set_stats(learner: WorkingSet, model: LearnerView | None) -> dict[str, Any]:
    stats: dict[str, Any] = {"size": 0, "support_vectors": 0, "objective": None, "gap": None}
    if isinstance(model, WorkingSetView):
        stats = {
            "size": learner.store.size,
            "support_vectors": len(model.support),
            "objective": -float(model.q.sum()),
            "gap": float(model.gap.max()),
            "bytes": learner.nbytes,
        }
    return stats


def _key(label: Label) -> LabelKey:
    return type(label), label


def _decisions(decision: Float64Array) -> list[Any]:
    """NaN, "nothing to say", becomes None; a row of scores ends where its classes end."""
    if decision.ndim == 1:
        return [None if value != value else value for value in decision.tolist()]
    rows = decision.tolist()
    return [[value for value in row if value == value] or None for row in rows]


def _step_names(bits: int) -> str:
    """The kinds of steps of a sample's problems, joined where they differ."""
    return "+".join(name for kind, name in enumerate(STEP_NAMES) if bits >> kind & 1)


_STEPS = [_step_names(bits) for bits in range(1 << len(STEP_NAMES))]
