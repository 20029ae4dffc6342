"""The learner of a model: its heads, its place in the journal, and its state."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from service.heads import kinds
from service.heads.fit import Fit, Window
from service.heads.protocol import (
    Answers,
    Head,
    HeadView,
    Predictions,
    Refitting,
    one_column_after_another,
)
from service.model.first_samples import FirstSamples
from service.model.live import Model
from service.model.published import Published, asked
from service.model.row_form import RowForm, sparse_rows
from service.samples.named_rows import NameTable, Rows, rows_between
from service.samples.validation import Samples
from service.spec.heads import HeadName
from solver.arrays import Float64Array
from solver.prepare.columns import Preparation
from solver.prepare.schema import schema_from_plain
from solver.rows.matrix import Matrix, SparseRows
from solver.stream.turns import Learning, absorb_in_turn


class Learner:
    """Learns for one model, and publishes what it has learned. Used by one thread.

    sequence: of the last sample absorbed. epoch: the life of the model that it counts in.
    form, names: as of `Published`, for this sequence.
    preparation: of rows before any head learns them; None before the first, and where they are
        learned as they come.
    snapshot_attempt: sequence at which a snapshot was last begun.
    fitted: samples in the windows of the fits since then.
    """

    def __init__(self, model: Model, epoch: str = "") -> None:
        self.model = model
        self.sequence = 0
        self.epoch = epoch
        self.form = RowForm(model.spec.prepare)
        self.names: NameTable | None = None
        self._first = FirstSamples()
        self.preparation: Preparation | None = None
        self.heads = self._fresh_heads()
        self._learning = {head: kinds.learners(model.spec, head) for head in self.heads}
        self._views: dict[HeadName, HeadView] = {}
        self.snapshot_attempt = 0
        self.fitted = 0
        self.publish()

    @property
    def dimension(self) -> int | None:
        """As of `Published`."""
        return self.form.features if self.names is None else len(self.names)

    def absorb(self, head: HeadName, samples: Samples) -> Answers:
        """Learn one block of the journal, live or in replay.

        The answers are those of the head that the samples were posted for, but what is predicted
        is what the served head said.
        """
        answers = [self._learn(head, part) for part in self._settling(head, samples)]
        self.sequence += len(samples.y)
        return answers[0] if len(answers) == 1 else one_column_after_another(answers)

    def _settling(self, head: HeadName, samples: Samples) -> Iterator[Samples]:
        """The samples, cut where a row changes what heads see; they begin anew before that row."""
        i, start, n = 0, 0, len(samples.y)
        while i < n and not self.form.settled:
            after = self.form.after(rows_between(samples.X, i, i + 1))
            if (after.layout, after.sparse) != (self.form.layout, self.form.sparse):
                if start < i:
                    yield self._first.added(head, samples.part(start, i))
                self._begin_anew(after)
                start = i
            self.form, i = after, i + 1
        self.form = self.form.after(rows_between(samples.X, i, n)) if i < n else self.form
        if self.form.settled:
            self._first.clear()
            yield samples.part(start, n)
        else:
            yield self._first.added(head, samples.part(start, n))

    def _begin_anew(self, form: RowForm) -> None:
        """Learn the first samples again in another form; what was predicted of them counts."""
        self.form, self.names, self.preparation = form, None, None
        if not self._first.parts:
            return
        former, self.heads = self.heads, self._fresh_heads()
        self._views.clear()
        for head, samples in self._first.parts:
            self._learn(head, samples)
        for name, head_anew in self.heads.items():
            head_anew.keep_score(former[name])

    def _fresh_heads(self) -> dict[HeadName, Head]:
        return {head: kinds.build(head, self.model.spec) for head in self.model.spec.heads}

    def _learn(self, head: HeadName, samples: Samples) -> Answers:
        X = self._matrix(samples.X)
        learning, serve = self.learning(head), self.model.spec.serve
        heads: dict[HeadName, Learning[Answers | Predictions]] = {**self.heads}
        said = absorb_in_turn(
            heads,
            learning,
            kinds.LISTENERS,
            lambda name: asked(self._view(name), X),
            serve,
            X,
            samples.y,
        )
        for name in learning:
            self._views.pop(name, None)
        served, taught = said.get(serve), said[head]
        assert isinstance(taught, Answers)
        blank: list[Any] = [None] * len(samples.y)
        prediction, decision = (served.prediction, served.decision) if served else (blank, blank)
        return replace(taught, prediction=prediction, decision=decision)

    def _view(self, head: HeadName) -> HeadView:
        """A head's view, which is kept until the head changes."""
        if head not in self._views:
            self._views[head] = self.heads[head].view()
        return self._views[head]

    def learning(self, head: HeadName) -> tuple[HeadName, ...]:
        """The heads that learn samples which are posted for one of them."""
        return self._learning[head]

    def forget_views(self) -> None:
        """Have all views made anew, after a head was changed from outside."""
        self._views.clear()

    def publish(self) -> None:
        """Let readers see the present state."""
        views = {name: self._view(name) for name in self.heads}
        preparation = None if self.preparation is None else self.preparation.view()
        self.model.published = Published(
            self.sequence, self.epoch, self.dimension, self.names, preparation, views, self.form
        )

    def window(self) -> Window:
        """The samples that a refit is over, copied. Raises NoSuchHead."""
        name = self.model.refitted_head()
        samples = _refitting(name).window(self.heads[name])
        return Window(name, self.sequence, *samples, self.model.spec, self.epoch)

    def adopt(self, head: HeadName, fit: Fit) -> None:
        """Serve the result of a refit, live or in replay."""
        _refitting(head).adopt(self.heads[head], fit)
        self._views.pop(head, None)
        self.fitted += fit.plain["samples"]

    def roll_back(self, source: "Learner", rolled_back: dict[str, Any], epoch: str) -> None:
        """Take the state of `source`, except for the sequence, which goes on in another epoch.

        rolled_back: see `Model`.
        """
        self.heads, self.names, self.form = source.heads, source.names, source.form
        self.preparation, self._first = source.preparation, source._first
        self.sequence, self.model.rolled_back = rolled_back["at"], rolled_back
        self.epoch = epoch
        self._views.clear()
        self.model.broken = ""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays, copied, for a snapshot."""
        plain: dict[str, Any] = {
            "spec": self.model.spec.plain(),
            "sequence": self.sequence,
            "epoch": self.epoch,
            "dimension": self.dimension,
            "heads": {},
        }
        arrays: dict[str, NDArray[Any]] = {}
        if self.names is not None:
            plain["names"] = self.names.names()
        if self.form.schema is not None:
            plain["schema"] = self.form.schema.plain()
            arrays |= self._first.state()
        if self.preparation is not None:
            arrays |= self.preparation.state()
        if self.model.rolled_back is not None:
            plain["rolled_back"] = self.model.rolled_back
        for name, head in self.heads.items():
            plain["heads"][name], of_head = head.state()
            arrays |= {f"{name}.{key}": array for key, array in of_head.items()}
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the state of a snapshot."""
        self.sequence = plain["sequence"]
        self.epoch = plain.get("epoch", self.epoch)  # older versions had none
        self.names = NameTable(plain["names"]) if "names" in plain else None
        self.form = RowForm(self.model.spec.prepare)
        if "schema" in plain:
            self.form = self.form._replace(schema=schema_from_plain(plain["schema"]))
        elif self.names is not None:
            self.form = self.form._replace(sparse=True)
        else:
            self.form = self.form._replace(width=plain["dimension"])
        self._first.restore(arrays)
        self.model.snapshot_sequence = self.sequence
        self.model.rolled_back = plain.get("rolled_back")
        for name, head in self.heads.items():
            prefix = f"{name}."
            own = {
                key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)
            }
            head.restore(plain["heads"][name], own)
        self.preparation = self._preparation()
        if self.preparation is not None:
            self.preparation.restore(arrays)
        self._views.clear()

    def _matrix(self, rows: Rows) -> Matrix:
        """Rows that fit the form, prepared; their names, if they are sparse, become known."""
        if not self.form.sparse:
            return self._prepared(self.form.encoded(rows))
        named = sparse_rows(rows)
        if self.names is None:
            self.names = NameTable()
        self.names.add(named.names)
        return self.names.matrix(named, len(self.names))

    def prepared(self, X: Matrix) -> Matrix:
        """Rows that the form has encoded, prepared as the next ones; sparse rows as they are."""
        return X if isinstance(X, SparseRows) else self._prepared(X)

    def _prepared(self, X: Float64Array) -> Float64Array:
        if self.preparation is None:
            self.preparation = self._preparation()
        return X if self.preparation is None else self.preparation.absorb(X)

    def _preparation(self) -> Preparation | None:
        """A fresh preparation of the model's rows, if its spec and their form ask for one."""
        layout = self.form.layout
        if self.model.spec.prepare is None or layout is None:
            return None
        return Preparation(layout)


def _refitting(head: HeadName) -> Refitting[Any]:
    refitting = kinds.KINDS[head].refitting
    assert refitting is not None
    return refitting
