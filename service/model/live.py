"""A live model as every server has it, whether or not it learns there."""

import time
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from wolfstream.service.diagnostics.metrics import SampleCounts
from wolfstream.service.errors import NoSuchHead
from wolfstream.service.heads.kinds import KINDS, head_of_call
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.model.chains import PublishedChain
from wolfstream.service.model.columns import described_columns
from wolfstream.service.model.following import Following
from wolfstream.service.model.label_warnings import label_warnings
from wolfstream.service.model.last_row import LastRow
from wolfstream.service.model.learning_time import LearningTime
from wolfstream.service.model.pending import PendingCounts
from wolfstream.service.model.predicted_order import PredictedOrder
from wolfstream.service.model.published import Published
from wolfstream.service.samples.ids import Status
from wolfstream.service.spec.heads import HEADS, LEARNING_CALLS, HeadName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.stream.rows import RowsView


class Model:
    """One model: its spec, its published view, and what its description says.

    Its learner (`model.learner`) changes it; any thread may read `published`.

    chain: of its published view. order: of the rows that this process predicted.
    counts: samples for each head since the server started.
    notice: what its clients should know of its recovery; empty if nothing.
    head_of: the head that names the entries and responses of a learning call.
    broken: why the model no longer learns; empty while it does.
    led: whether it learns here; False once another replica of a fleet has it.
    snapshot_sequence: of the newest snapshot; 0 without one.
    snapshot_time: when that was saved, on the monotonic clock; None without one.
    last_row: that it was sent.
    rolled_back: the last rollback: `to` a snapshot's sequence, `at` a sequence, at a `time`; `of`
        the model whose state it was, where that was another one.
    merged: the last merge of its learners: at which `time`, and how much of each of its
        `partitions`; None of a model that learns by itself.
    champion: the model whose log it learns from, where its sequence is its place; None of a model
        that learns what it is sent. following: how it compares with its champion.
    learning_time: of what it has learned since the server started.
    pending: the rows that wait for their labels; None if the spec has none. labels: those that
        came for them since the server started, by what became of them.
    """

    def __init__(self, model_id: int, name: str, spec: ModelSpec) -> None:
        self.id = model_id
        self.name = name
        self.spec = spec
        self.published = Published(0, "", RowsView(RowForm(None)), {})
        self.chain = PublishedChain()
        self.order = PredictedOrder()
        self.counts = {head: SampleCounts() for head in HEADS}
        self.learning_time = LearningTime()
        self.champion: Model | None = None
        self.following = Following()
        self.head_of = {call: head_of_call(spec, call) for call in LEARNING_CALLS}
        self.broken = ""
        # What its log has that cannot be, a sentence for each fault; see `LogReader.faults`.
        self.log_faults: list[str] = []
        self.led = True
        self.notice = ""
        self.last_row = LastRow()
        self.snapshot_sequence = 0
        self.snapshot_time: float | None = None
        self.rolled_back: dict[str, Any] | None = None
        self.merged: dict[str, Any] | None = None
        self.pending = None if spec.pending is None else PendingCounts()
        self.labels: dict[Status, int] = dict.fromkeys(get_args(Status), 0)

    def take_spec(self, spec: ModelSpec) -> None:
        """Replace the spec."""
        self.spec = spec
        self.head_of = {call: head_of_call(spec, call) for call in LEARNING_CALLS}

    @property
    def lag(self) -> int:
        """The number of samples by which it lags behind its champion; 0 if it has none."""
        champion = self.champion
        if champion is None:
            return 0
        return max(0, champion.published.sequence - self.published.sequence)

    def note_snapshot(self, sequence: int, written: datetime | None) -> None:
        """Note the newest snapshot. written: None if it is gone already."""
        self.snapshot_sequence = sequence
        if written is not None:
            # The wall clock is read once for the age, so that its later jumps have no effect.
            age = (datetime.now(UTC) - written).total_seconds()
            self.snapshot_time = time.monotonic() - max(0.0, age)

    def refitted_head(self) -> HeadName:
        """Return the head that a refit fits. Raises NoSuchHead."""
        refitted = [name for name, kind in KINDS.items() if kind.refitting]
        for name in refitted:
            if name in self.spec.heads:
                return name
        raise NoSuchHead(f"the spec of model {self.name!r} has null for {' and '.join(refitted)}")

    @property
    def status(self) -> Literal["ok", "broken"]:
        """Whether the model learns."""
        return "broken" if self.broken else "ok"

    def describe(self) -> dict[str, Any]:
        """Return the model's description, from the published view."""
        published = self.published
        form, heads = published.rows.form, published.heads
        return {
            "model": self.name,
            "spec": self.spec.plain(),
            "sequence": published.sequence,
            "epoch": published.epoch,
            "rows": _kind_of_rows(form),
            "features": published.rows.dimension,
            "columns": described_columns(published.rows),
            "heads": {n: _described(view, n == self.spec.serve) for n, view in heads.items()},
            "pending": _waiting(self.pending),
            "labels_before": self.order.described(heads.values()),
            "follows": self._follows(),
            "snapshot_sequence": self.snapshot_sequence,
            "rolled_back": self.rolled_back,
            **self._merged(),
            "warning": self._warning(),
            "warnings": self.warnings(),
            "status": self.status,
            "notice": self.broken or self.notice or None,
        }

    def _follows(self) -> dict[str, Any] | None:
        """Describe the champion that it follows, and how far it lags."""
        champion = self.champion
        if champion is None:
            return None
        return {
            "model": champion.name,
            "lag": self.lag,
            "passed_over": self.following.passed_over,
            "reason": self.following.reason,
        }

    def _merged(self) -> dict[str, Any]:
        """Return what has been merged of a model with several learners; nothing of another one."""
        return {} if self.spec.learners == 1 else {"merged": self.merged}

    def warnings(self) -> list[dict[str, Any]]:
        """Return what its users should look at: each has a `slug`, a `column` and a `message`."""
        return label_warnings(self.published.heads.get(self.spec.serve))

    def _warning(self) -> str | None:
        """Return what may be wrong with the labels; None if declared or frequent enough."""
        if self.spec.classes is not None:
            return None
        rare = {repr(k): k for view in self.published.heads.values() for k in view.rare_classes}
        if not rare:
            return None
        named = ", ".join(str(label)[:40] for label in list(rare.values())[:5])
        return (
            f"{len(rare)} of the labels came a handful of times: {named}; if they are mistakes, "
            'a model with "classes" in its spec would have refused them'
        )


def _waiting(pending: PendingCounts | None) -> dict[str, Any] | None:
    """Describe the rows that wait for their labels, and since when the oldest waits."""
    if pending is None:
        return None
    since = None if pending.since is None else pending.since / 1000.0
    return {
        "rows": pending.rows,
        "bytes": pending.n_bytes,
        "joined": pending.joined,
        "expired": pending.expired,
        "since": since and rfc3339(datetime.fromtimestamp(since, UTC)),
    }


def rfc3339(moment: datetime) -> str:
    """Return a time in UTC as text, with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _kind_of_rows(form: RowForm) -> str | None:
    if form.sparse:
        return "named"
    if form.schema is not None:
        return "table"
    return "arrays" if form.begun else None


def _described(view: HeadView, served: bool) -> dict[str, Any]:
    """Return a head's part of the description; the one that is served has scores of classes."""
    changes = [change._asdict() for change in view.changes]
    found = {**_classes(view), **view.stats, "changes": changes, "calibration": view.calibration}
    return found | {"scores": view.scores} if served and view.classes is not None else found


def _classes(view: HeadView) -> dict[str, Any]:
    """Return the classes that a head has met; nothing if it learns numbers."""
    return {} if view.classes is None else {"classes": list(view.classes)}
