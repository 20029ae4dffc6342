"""The heads of a model, which learn each sample one after another, with the others' votes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from numpy.typing import NDArray

from wolfstream.service.heads import kinds
from wolfstream.service.heads.protocol import (
    Answers,
    Head,
    HeadView,
    HeadWithPredictions,
    Predictions,
)
from wolfstream.service.model.published import prediction_of
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.stream.rows import StreamSamples
from wolfstream.solver.stream.turns import LearningHead, absorb_in_turn


class LearningHeads:
    """New heads of a spec, and a cached view of each.

    Attributes:
        each: the heads by name.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self.each: dict[HeadName, Head] = {head: kinds.build(head, spec) for head in spec.heads}
        self._serve = spec.serve
        # head that samples are posted for -> heads that learn them
        self._learning = {head: kinds.learners(spec, head) for head in spec.heads}
        # Views of heads that have not changed since they were made.
        self._views: dict[HeadName, HeadView] = {}

    def learning(self, head: HeadName) -> tuple[HeadName, ...]:
        """Return the heads that learn the samples posted for this one."""
        return self._learning[head]

    def learn(
        self,
        samples: StreamSamples,
        rows: HeadRows,
        earlier_predictions: Sequence[Any] | None = None,
    ) -> Answers:
        """Learn samples, as `Learner.absorb` does.

        Args:
            samples: with the head that they were posted for.
            rows: of the samples, for heads.
            earlier_predictions: what was predicted when the rows came; see `Learner.absorb`.
        """
        head = cast("HeadName", samples.head)
        learning, serve = self.learning(head), self._serve
        heads: dict[HeadName, LearningHead[Answers | Predictions]] = {**self.each}
        if earlier_predictions is not None:
            heads[serve] = HeadWithPredictions(self.each[serve], earlier_predictions)
        head_answers = absorb_in_turn(
            heads,
            learning,
            kinds.LISTENERS,
            lambda name: prediction_of(self._view(name), rows.X),
            serve,
            rows,
            samples.y,
            samples.weight,
        )
        for name in learning:
            self.forget_view(name)
        served_answers, own = head_answers.get(serve), head_answers[head]
        assert isinstance(own, Answers)
        blank: list[Any] = [None] * len(samples.y)
        prediction, decision = blank, blank
        if served_answers is not None:
            prediction, decision = served_answers.prediction, served_answers.decision
        beside = {
            name: column
            for answers in head_answers.values()
            for name, column in answers.beside.items()
        }
        return replace(own, prediction=prediction, decision=decision, beside=beside)

    def keep_scores(self, former: "LearningHeads") -> None:
        """Take over the scores of the heads that these replace."""
        for name, head in self.each.items():
            head.keep_score(former.each[name])

    def views(self) -> dict[HeadName, HeadView]:
        """Return a view of each head."""
        return {name: self._view(name) for name in self.each}

    def _view(self, head: HeadName) -> HeadView:
        if head not in self._views:
            self._views[head] = self.each[head].view()
        return self._views[head]

    def forget_view(self, head: HeadName) -> None:
        """Drop the cached view of a head that has changed."""
        self._views.pop(head, None)

    def forget_views(self) -> None:
        """Drop all cached views, after heads were changed from outside."""
        self._views.clear()

    def memory_bytes(self) -> int:
        """Return the memory of the heads; their saved arrays leave out what can be computed."""
        gauges = [view.gauges for view in self.views().values()]
        return sum(int(head_gauges.get("head_memory_bytes") or 0) for head_gauges in gauges)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the plain data of each head by name, and the arrays of all heads, copied."""
        plain, arrays = dict[str, Any](), dict[str, NDArray[Any]]()
        for name, head in self.each.items():
            plain[name], own = head.state()
            arrays |= {f"{name}.{key}": array for key, array in own.items()}
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take a state; its arrays may include others besides those of heads."""
        for name, head in self.each.items():
            prefix = f"{name}."
            own = {
                key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)
            }
            head.restore(plain[name], own)
        self.forget_views()
