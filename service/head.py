"""One head of a model: a learner, its labels and its scores. The only absorb function."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidSamples, SampleError, Untrained
from service.samples import Label
from service.spec import HeadName, ModelSpec
from solver import asset, view
from solver.asset import Asset, AssetView
from solver.bandwidth import AutoGamma
from solver.kernels import Float64Array, largest_square_norm
from solver.rows import (
    Matrix,
    SparseRows,
    first_features,
    largest_feature,
    n_nonzeros,
    n_rows,
    square_norms,
)
from solver.simplex import STEP_NAMES
from solver.view import WorkingSetView
from solver.working_set import WorkingSet

_RECENT = 1000
# In multiplications: what a row costs besides them, a cosine, and finding a sparse row's number.
_COST_OF_ROW, _COST_OF_COSINE, _COST_OF_LOOKUP = 1000, 50, 30
# Bound on gamma ||x||^2 where gamma is estimated: to the eighth power still below 1e100.
LARGEST_POLYNOMIAL_PRODUCT = 1e6


class Answers(NamedTuple):
    """Column by column what the head said and did for each of n samples (the wire's `results`)."""

    prediction: list[Label | None]
    decision: list[Any]
    admitted: list[bool] | None
    step: list[str] | None

    def part(self, start: int, stop: int) -> dict[str, list[Any]]:
        """The answers of one request within a block, without the columns this head lacks."""
        fields = self._asdict().items()
        return {name: column[start:stop] for name, column in fields if column is not None}


class HeadView(NamedTuple):
    """An immutable picture of a head: the model to predict with, and how it stands.

    features: of sparse rows, one more than the largest feature number that the head has met.
    """

    model: WorkingSetView | AssetView | None
    classes: tuple[Label, ...]
    stats: dict[str, Any]
    largest_square_norm: float
    features: int

    def predict(self, X: Matrix) -> tuple[list[Label], list[Any]]:
        """Labels and decisions of finite rows; raises Untrained, InvalidSamples.

        Features that are new to ASSET are left out: it has no frequencies for them, and to
        draw some for each request would cost more than the answer.
        """
        if self.model is None or len(self.classes) < 2:
            raise Untrained(
                "a prediction needs samples of at least two classes; "
                f"the model has met {list(self.classes)!r}"
            )
        with np.errstate(over="ignore"):
            square_norm = square_norms(X)
        _check_norms(square_norm, self.largest_square_norm)
        if isinstance(self.model, WorkingSetView):
            codes, decision = view.predict(self.model, X)
        else:
            if isinstance(X, SparseRows):
                X = first_features(X, self.features)
            codes, decision = asset.predict(self.model, X)
        return [self.classes[code] for code in codes.tolist()], decision.tolist()

    def cost(self, rows: int, entries: int) -> int:
        """Multiplications of a prediction, to decide where it may run.

        entries: numbers in all rows, those that are not given left out if they are sparse.
        """
        if self.model is None:
            return 0
        if isinstance(self.model, WorkingSetView):
            stored = self.model.rows.exact
            if isinstance(stored, SparseRows):
                # Each stored number is looked up once and multiplied with at most every row.
                lookups = _COST_OF_LOOKUP * n_nonzeros(stored)
                return lookups + rows * (_COST_OF_ROW + n_rows(stored) + n_nonzeros(stored))
            return rows * _COST_OF_ROW + entries * n_rows(stored)
        frequencies, classes = self.model.dimension, len(self.model.b)
        each = _COST_OF_ROW + frequencies * (_COST_OF_COSINE + classes)
        return rows * each + frequencies * entries


class Head:
    """A learner with the labels it has met and its prequential score."""

    def __init__(self, name: HeadName, spec: ModelSpec) -> None:
        self.name = name
        self._spec = spec
        self.classes: list[Label] = []
        self._code_of: dict[tuple[type, Label], int] = {}
        self._features = 0
        own = spec.working_set
        self._weight_of = {_key(w.label): w.weight for w in own.class_weight} if own else {}
        self._judged = self._correct = 0
        self._recent: deque[bool] = deque(maxlen=_RECENT)
        polynomial = spec.kernel.type == "polynomial"
        limit = LARGEST_POLYNOMIAL_PRODUCT if polynomial else np.inf
        self._auto: AutoGamma[WorkingSet | Asset] | None = None
        self._fixed: WorkingSet | Asset | None = None
        if spec.auto_gamma:
            self._auto = AutoGamma(self._build, limit)
        else:
            self._fixed = self._build(1.0)

    @property
    def _learner(self) -> WorkingSet | Asset:
        learner = self._auto.learner if self._auto else self._fixed
        assert learner is not None
        return learner

    @property
    def working_set(self) -> WorkingSet:
        """The learner itself, for what no stream can say: further passes, a solution to adopt."""
        assert isinstance(self._learner, WorkingSet)
        return self._learner

    def meet(self, labels: Iterable[Label]) -> list[int]:
        """The class numbers of labels; new ones are numbered in this order."""
        return [self._code(label) for label in labels]

    def _build(self, gamma: float) -> WorkingSet | Asset:
        kernel = self._spec.kernel_with(gamma)
        if self.name == "working_set":
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
        of_asset = self._spec.asset
        assert of_asset is not None
        return Asset(
            kernel,
            dimension=of_asset.dimension,
            lam=of_asset.lam,
            average_from=of_asset.average_from,
            seed=self._spec.seed,
        )

    def check(self, square_norm: Float64Array) -> None:
        """Refuse rows that no kernel value of this model could hold; before they are logged.

        square_norm: ||x||^2 of each.
        """
        _check_norms(square_norm, self._largest_square_norm())

    def _largest_square_norm(self) -> float:
        if self._spec.kernel.type == "polynomial" and self._auto and not self._auto.frozen:
            return 1e12
        gamma = self._auto.gamma if self._auto else 1.0
        return min(largest_square_norm(self._spec.kernel_with(gamma)), 1e100)

    def unknown(self, labels: list[Label]) -> set[tuple[type, Label]]:
        """Labels that this head has not met."""
        return {_key(label) for label in labels} - self._code_of.keys()

    def absorb(self, X: Matrix, labels: list[Label]) -> Answers:
        """Learn samples in order, test-then-train; the same for live requests and for replay."""
        codes = np.array([self._code(label) for label in labels], np.int64)
        if self._auto:
            parts = [answer for _, answer in self._auto.absorb(X, codes)]
        else:
            parts = [self._learner.absorb(X, codes)]
        if isinstance(X, SparseRows):
            self._features = max(self._features, largest_feature(X) + 1)
        said = np.concatenate([part.prediction for part in parts])
        self._score(said, codes)
        decision = [value for part in parts for value in _decisions(part.decision)]
        prediction = [self.classes[code] if code >= 0 else None for code in said.tolist()]
        if self.name == "asset":
            return Answers(prediction, decision, None, None)
        return Answers(
            prediction,
            decision,
            [bool(value) for part in parts for value in part.admitted],
            [_STEPS[bits] for part in parts for bits in part.step.tolist()],
        )

    def view(self) -> HeadView:
        """What predictions and descriptions read from now on."""
        learner = self._learner
        stats: dict[str, Any] = {"size": 0, "support_vectors": 0, "objective": None, "gap": None}
        if isinstance(learner, Asset):
            stats = {"steps": learner.steps, "dimension": learner.dimension}
        model = learner.view() if self.classes else None
        if isinstance(model, WorkingSetView) and isinstance(learner, WorkingSet):
            stats = {
                "size": learner.store.size,
                "support_vectors": len(model.support),
                "objective": -float(model.q.sum()),
                "gap": float(model.gap.max()),
                "bytes": learner.nbytes,
            }
        if self._auto:
            stats["gamma"] = self._auto.gamma
        stats["prequential"] = self._prequential()
        limit = self._largest_square_norm()
        return HeadView(model, tuple(self.classes), stats, limit, self._features)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays from which `restore` goes on bit for bit."""
        plain = {
            "classes": list(self.classes),
            "features": self._features,
            "judged": self._judged,
            "correct": self._correct,
            "recent": [int(hit) for hit in self._recent],
        }
        return plain, self._auto.state() if self._auto else self._learner.state()

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        for label in plain["classes"]:
            self._code(label)
        self._features = plain.get("features", 0)  # older snapshots have arrays only
        self._judged, self._correct = plain["judged"], plain["correct"]
        self._recent.extend(bool(hit) for hit in plain["recent"])
        if self._auto:
            self._auto.restore(arrays)
        else:
            self._learner.restore(arrays)

    def _code(self, label: Label) -> int:
        key = _key(label)
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = len(self.classes)
            self.classes.append(label)
            if isinstance(self._learner, WorkingSet):
                self._learner.class_weight.append(self._weight_of.get(key, 1.0))
        return code

    def _score(self, said: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        judged = said >= 0
        hits = (said == codes)[judged]
        self._judged += len(hits)
        self._correct += int(hits.sum())
        self._recent.extend(hits.tolist())

    def _prequential(self) -> dict[str, Any]:
        recent = len(self._recent)
        return {
            "samples": self._judged,
            "accuracy": self._correct / self._judged if self._judged else None,
            "recent_accuracy": sum(self._recent) / recent if recent else None,
        }


def _check_norms(square_norm: Float64Array, limit: float) -> None:
    wrong = np.flatnonzero(~(square_norm <= limit))
    if len(wrong):
        detail = f"its norm exceeds {limit**0.5:.3g}, the most this kernel can hold"
        errors: list[SampleError] = [
            {"row": int(i), "pointer": f"/x/{i}", "detail": detail} for i in wrong[:20]
        ]
        raise InvalidSamples("some rows are too large for the kernel", errors)


def _key(label: Label) -> tuple[type, Label]:
    """JSON's true and 1 are different labels; in Python they are equal."""
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
