"""A live model: its heads, its place in the log, and the view that it has published."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from service.classification_head import ClassificationHead
from service.errors import InvalidSamples, NoSuchHead
from service.fits import Fit, Window
from service.head import Answers, Head, HeadView, LabelKey
from service.metrics import SampleCounts
from service.names import NamedRows, NameTable, Rows
from service.regression_head import RegressionHead
from service.samples import Samples
from service.semiparametric_head import SemiparametricHead
from service.spec import HeadName, ModelSpec
from solver.rows import Matrix

HEADS: tuple[HeadName, ...] = ("working_set", "asset", "semiparametric")


class Limits(NamedTuple):
    """How many different labels, and how many names of features, one model may meet."""

    classes: int
    features: int


class Published(NamedTuple):
    """What readers see: replaced as a whole after each block, never changed.

    dimension: numbers in a row, or names known; None before the first sample.
    names: the model's table if its rows are named; it may have grown since.
    """

    sequence: int
    dimension: int | None
    names: NameTable | None
    heads: dict[HeadName, HeadView]

    def matrix(self, rows: Rows) -> Matrix:
        """Rows to predict, as the heads learned theirs. Raises InvalidSamples."""
        check_rows(rows, self.dimension, self.names is not None)
        if not isinstance(rows, NamedRows):
            return rows
        return (self.names or NameTable()).matrix(rows, self.dimension or 0)


class Draft:
    """What requests of one group, checked but not yet logged, will have made of a model."""

    def __init__(self, model: "Model") -> None:
        self.sequence = model.sequence
        self.dimension = model.dimension
        self.named = model.names is not None
        self.names: set[str] = set()
        self.labels: dict[HeadName, set[LabelKey]] = {name: set() for name in HEADS}


def head_for(name: HeadName, spec: ModelSpec) -> Head:
    """A fresh head of the kind that the spec asks for."""
    if name == "semiparametric":
        return SemiparametricHead(spec)
    return RegressionHead(spec) if spec.task == "regression" else ClassificationHead(name, spec)


class Model:
    """One model. Only the engine's writer changes it; everyone may read `published`.

    snapshot_sequence: of the newest snapshot. snapshot_attempt: where one was last begun.
    snapshot_time: when the newest one was written, of the monotonic clock; None without one.
    fitted: samples in the windows of the fits since then.
    counts: samples for each head since the server started.
    rolled_back: the last rollback: `to` a snapshot's sequence, `at` a sequence, at a `time`.
    line: how often it was rolled back in this process.
    """

    def __init__(self, model_id: int, name: str, spec: ModelSpec) -> None:
        self.id = model_id
        self.name = name
        self.spec = spec
        self.sequence = 0
        self.dimension: int | None = None
        self.names: NameTable | None = None
        self.snapshot_sequence = 0
        self.snapshot_attempt = 0
        self.snapshot_time: float | None = None
        self.fitted = 0
        self.broken = ""
        self.counts = {name: SampleCounts() for name in HEADS}
        self.rolled_back: dict[str, Any] | None = None
        self.line = 0
        self.heads = {n: head_for(n, spec) for n in HEADS if getattr(spec, n) is not None}
        self.published = Published(0, None, None, {})
        self.publish()

    def check(self, head: HeadName, samples: Samples, draft: Draft, limits: Limits) -> None:
        """Refuse what could not be learned after `draft`, before it is logged.

        Raises NoSuchHead or InvalidSamples; otherwise the draft includes the samples.
        """
        if head not in self.heads:
            raise NoSuchHead(f"the spec of model {self.name!r} has null for {head}")
        check_rows(samples.X, draft.dimension, draft.named)
        labels = {
            name: self.heads[name].check(samples, draft.labels[name], limits.classes)
            for name in self.taught(head)
        }
        if isinstance(samples.X, NamedRows):
            self._draft_names(samples.X.names, draft, limits.features)
        else:
            draft.dimension = samples.X.shape[1]
        draft.labels |= labels
        draft.sequence += len(samples.y)

    def _draft_names(self, names: list[str], draft: Draft, most: int) -> None:
        known = self.names or NameTable()
        new = known.unknown(names, draft.names)
        dimension = len(known) + len(draft.names) + len(new)
        if new and dimension > most:
            detail = (
                f"brings {len(new)} new names, {new[0][:40]!r} first, to the "
                f"{dimension - len(new)} that the model has met; {most} is the most "
                "(WOLFSTREAM_FEATURES)"
            )
            raise InvalidSamples(
                f"the model would meet more than {most} different names of features",
                [{"pointer": "/x", "detail": detail}],
            )
        draft.names.update(new)
        draft.dimension, draft.named = dimension, True

    def absorb(self, head: HeadName, samples: Samples) -> Answers:
        """Learn one block of the log. Live requests and replay both come through here."""
        X = self._matrix(samples.X)
        answers = [self.heads[name].absorb(X, samples.y) for name in self.taught(head)]
        self.sequence += len(samples.y)
        return answers[0]

    def taught(self, head: HeadName) -> tuple[HeadName, ...]:
        """The heads that samples for one of them go to: the window takes all that are learned."""
        if head == "semiparametric" or "semiparametric" not in self.heads:
            return (head,)
        return (head, "semiparametric")

    def window(self) -> Window:
        """The samples that a refit is over, copied."""
        return Window(self.sequence, *self._fitted.window(), self.spec, self.line)

    def adopt(self, fit: Fit) -> None:
        """Serve what a refit found. Live refits and replay both come through here."""
        self._fitted.adopt(fit)
        self.fitted += fit.plain["samples"]

    def roll_back(self, source: "Model", rolled_back: dict[str, Any]) -> None:
        """Become what `source` is, but for the sequence: that one counts what was logged."""
        self.heads, self.names, self.dimension = source.heads, source.names, source.dimension
        self.sequence, self.rolled_back = rolled_back["at"], rolled_back
        self.line += 1
        self.broken = ""

    @property
    def _fitted(self) -> SemiparametricHead:
        head = self.heads["semiparametric"]
        assert isinstance(head, SemiparametricHead)
        return head

    def _matrix(self, rows: Rows) -> Matrix:
        """Rows to learn; their names, if they have any, become known."""
        if not isinstance(rows, NamedRows):
            self.dimension = rows.shape[1]
            return rows
        if self.names is None:
            self.names = NameTable()
        self.names.add(rows.names)
        self.dimension = len(self.names)
        return self.names.matrix(rows, self.dimension)

    def publish(self, changed: Iterable[HeadName] = HEADS) -> None:
        """Let readers see the present state; heads that did not change keep their view."""
        views = {
            name: head.view() if name in changed else self.published.heads[name]
            for name, head in self.heads.items()
        }
        self.published = Published(self.sequence, self.dimension, self.names, views)

    def describe(self) -> dict[str, Any]:
        """The answer to GET, from the published view."""
        sequence, dimension, names, heads = self.published
        kind = None if dimension is None else "arrays" if names is None else "named"
        return {
            "model": self.name,
            "spec": self.spec.plain(),
            "sequence": sequence,
            "rows": kind,
            "features": dimension,
            "heads": {name: {**classes_of(view), **view.stats} for name, view in heads.items()},
            "snapshot_sequence": self.snapshot_sequence,
            "rolled_back": self.rolled_back,
            "status": "broken" if self.broken else "ok",
        }

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays, copied, for a snapshot."""
        plain: dict[str, Any] = {
            "spec": self.spec.plain(),
            "sequence": self.sequence,
            "dimension": self.dimension,
            "heads": {},
        }
        if self.names is not None:
            plain["names"] = self.names.names()
        if self.rolled_back is not None:
            plain["rolled_back"] = self.rolled_back
        arrays: dict[str, NDArray[Any]] = {}
        for name, head in self.heads.items():
            plain["heads"][name], of_head = head.state()
            arrays |= {f"{name}.{key}": array for key, array in of_head.items()}
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a snapshot's state."""
        self.sequence, self.dimension = plain["sequence"], plain["dimension"]
        self.names = NameTable(plain["names"]) if "names" in plain else None
        self.snapshot_sequence = self.sequence
        self.rolled_back = plain.get("rolled_back")
        for name, head in self.heads.items():
            prefix = f"{name}."
            own = {
                key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)
            }
            head.restore(plain["heads"][name], own)


def classes_of(view: HeadView) -> dict[str, Any]:
    """The classes that a head has met, as answers name them; nothing of a regression."""
    return {} if view.classes is None else {"classes": list(view.classes)}


def check_rows(rows: Rows, dimension: int | None, named: bool) -> None:
    """Raise InvalidSamples for rows of the other kind than a model's, or of another length.

    dimension: None where the model has no rows yet, and takes any. named: its kind of rows.
    """
    if dimension is None:
        return
    if isinstance(rows, NamedRows) != named:
        takes, given = "arrays of numbers", "objects of named numbers"
        if named:
            takes, given = given, takes
        detail = f"the model's first sample decided that its rows are {takes}, these are {given}"
        raise InvalidSamples(detail, [{"pointer": "/x", "detail": f"must be {takes}"}])
    if not isinstance(rows, NamedRows) and rows.shape[1] != dimension:
        detail = f"has {rows.shape[1]} numbers, the model's rows have {dimension}"
        raise InvalidSamples(
            f"each row must have {dimension} numbers",
            [{"row": 0, "pointer": "/x/0", "detail": detail}],
        )
