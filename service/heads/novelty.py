"""The novelty head: scores how unusual each row is, by the enclosing ball of all rows (P2).

It makes no predictions. Its scores are a column beside the predictions of another head.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.exercises import rows_of_kind
from wolfstream.service.heads.kernel import check_norms, kernel_limit
from wolfstream.service.heads.kind import Kind, TrainingChoice
from wolfstream.service.heads.online_learner import Batch, cost_of_expansion
from wolfstream.service.heads.protocol import Answers, Head, HeadView
from wolfstream.service.heads.saved_set import SET_NUMBERS, check_set
from wolfstream.service.heads.set_view import NO_CERTIFICATE, set_stats
from wolfstream.service.samples.tasks import Targets
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.novelty import NoveltySpec
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.labels import LabelKey
from wolfstream.solver.rows.answers import Values
from wolfstream.solver.rows.matrix import Matrix, n_rows, take_rows
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.novelty_learner import NoveltyLearner
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs
from wolfstream.solver.working_set.ball import OnlineBall, novelty_of
from wolfstream.solver.working_set.view import WorkingSetView

_LIMIT = kernel_limit(Kernel("rbf"))


@dataclass(frozen=True, eq=False)
class NoveltyView(HeadView):
    """An immutable view of the ball."""

    model: WorkingSetView | None  # None before the first sample
    figures: dict[str, Any]  # `stats`, without the scores

    @property
    def stats(self) -> dict[str, Any]:
        """The ball's sizes and certificate; no prediction is judged."""
        return {**self.figures, "prequential": {}}

    @property
    def gauges(self) -> dict[str, float | None]:
        """The sizes of the ball."""
        names = {"set_size": "size", "support_vectors": "support_vectors"}
        names["head_memory_bytes"] = "bytes"
        return {name: self.figures.get(key) for name, key in names.items()}

    @property
    def lacks(self) -> str:
        """Why it cannot be asked for predictions."""
        return "predicts nothing: it scores how novel rows are, beside another head's predictions"

    def beside(self, X: Matrix) -> list[float | None]:
        """Return how novel each row is: below 0 inside the ball, and below 1 at any distance."""
        if self.model is None:
            return [None] * n_rows(X)
        check_norms(X, _LIMIT)
        return [float(value) for value in novelty_of(self.model, X)]

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of scoring rows; see `HeadView.cost`."""
        return 0 if self.model is None else cost_of_expansion(self.model.rows.exact, rows, entries)


def _new_ball(spec: NoveltySpec, kernel: Kernel) -> OnlineBall:
    return OnlineBall(kernel, spec.C, spec.algorithm, spec.corrective_steps, spec.max_size)


class NoveltyHead:
    """The enclosing ball of all rows so far."""

    classes = None

    def __init__(self, spec: ModelSpec) -> None:
        assert spec.novelty is not None
        self._prepared = spec.prepare is not None
        gamma = None if spec.novelty.gamma == "auto" else float(spec.novelty.gamma)
        self._learner = NoveltyLearner(partial(_new_ball, spec.novelty), gamma)

    @property
    def ball(self) -> OnlineBall:
        """The solver."""
        return self._learner.ball

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse rows whose squares overflow; labels do not matter."""
        del most_classes
        if not self._prepared:
            check_norms(samples.X, _LIMIT)
        return drafted

    def growth(self, batch: Batch) -> int:
        """Return an upper bound on the bytes that learning a batch adds."""
        return self.ball.set.growth(batch.rows, batch.block, batch.width)

    def absorb(
        self,
        X: Matrix,
        y: Targets,
        inputs: HeadInputs = NO_INPUTS,
        weight: Weights = None,
        earlier_predictions: Sequence[Any] | None = None,
    ) -> Answers:
        """Score rows, then learn them, in order; live and in replay."""
        del inputs, earlier_predictions
        scores = self._learner.judge(X, np.zeros(len(y)), weight)
        column = [value if value == value else None for value in scores.tolist()]
        blank: list[Any] = [None] * len(y)
        head_answer = HeadAnswer(None, [Values(np.full(len(y), np.nan))])
        return Answers(blank, blank, head_answer, beside={"novelty": column})

    def date_changes(self, sequence: int) -> None:
        """Do nothing: no prediction is judged."""

    def keep_score(self, former: Self) -> None:
        """Do nothing: no prediction is judged."""

    def view(self) -> NoveltyView:
        """Return an immutable view for predictions and descriptions."""
        stats: dict[str, Any] = {"size": 0, "support_vectors": 0, **NO_CERTIFICATE}
        rows = self.ball.set
        model = None
        if rows.seen:
            model = rows.view()
            stats = set_stats(model, rows.summary(model), 0)
        return NoveltyView(model, {**stats, "gamma": rows.kernel.gamma})

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""
        return self._learner.state()

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self._learner.restore(plain, arrays)


def _build(spec: ModelSpec) -> Head:
    return NoveltyHead(spec)


def _specs() -> Iterator[ModelSpec]:
    """Yield a ball small enough to evict rows, with kernel values in either precision."""
    for C in (1.0, 1e6):
        novelty = {"max_size": 64, "corrective_steps": 1, "C": C}
        yield ModelSpec.model_validate({"novelty": novelty, "working_set": None, "asset": None})


def _exercise(spec: ModelSpec, sparse: bool) -> None:
    """Score, learn, save and restore, with dense or sparse rows."""
    head, restored, X = NoveltyHead(spec), NoveltyHead(spec), rows_of_kind(sparse)
    for rows in (slice(0, 1), slice(1, None)):
        part = take_rows(X, rows)
        head.absorb(part, np.zeros(n_rows(part)))
    for rows in (slice(0, 1), slice(0, 5), slice(None)):
        head.view().beside(take_rows(X, rows))
    restored.restore(*head.state())
    restored.absorb(take_rows(X, slice(0, 5)), np.zeros(5))


def _spec_part(choice: TrainingChoice) -> dict[str, Any]:
    return dict(choice.options)


def _outcome(report: Mapping[str, Any]) -> str:
    return f"{report['support_vectors']:,} support vectors"


KIND: Kind[Any] = Kind(
    name="novelty",
    build=_build,
    calls=(),
    specs=_specs,
    exercises={"all": _exercise},
    code=lambda spec: NoveltyHead(spec).ball.set.precision.dtype.name,
    check_saved=lambda _, saved: check_set(saved, of_numbers=False),
    numbers=SET_NUMBERS,
    spec_part=_spec_part,
    reported=("size", "support_vectors"),
    outcome=_outcome,
    summary=lambda report: [_outcome(report)],
    learns_all=True,
    beside=NoveltyView.beside,
)
