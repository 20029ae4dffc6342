"""A live model as every process has it, whether or not it is learned there."""

import math
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.errors import NoSuchHead, NotLeader, Refusal, UnknownModel
from wolfstream.service.heads.kinds import KINDS, head_of_call
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.model.chains import PublishedChain
from wolfstream.service.model.columns import described_columns
from wolfstream.service.model.comparison import ChallengerStanding
from wolfstream.service.model.counters import LearningTime, SampleCounts
from wolfstream.service.model.label_warnings import label_warnings
from wolfstream.service.model.last_row import LastRow
from wolfstream.service.model.pending import PendingCounts
from wolfstream.service.model.predicted_order import PredictedOrder
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.single_rows import SingleRows
from wolfstream.service.samples.ids import Status
from wolfstream.service.spec.heads import HEADS, LEARNING_CALLS, HeadName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.stream.rows import RowsView

# By so much the clocks of a fleet's machines may differ.
_CLOCK_SECONDS = 60.0


class Model:
    """One model: its spec, its published view, and the data of its description.

    Its learner (`model.learner`) changes it; any thread may read `published`.

    Attributes:
        id: unique in the catalogue; a name may be used again, an id is not.
        name: by which clients know it.
        spec: with which it was created, or that of a rollback or promotion.
        published: the view that predictions use.
        chain: predicts with the view.
        order: of the rows that this process predicted, and of their labels.
        single_rows: answers questions of one row together that come at the same time.
        counts: samples for each head since the server started.
        learning_time: of these samples.
        head_of: learning call -> the head that its entries in the log and its responses name.
        broken: why the model learns no more; "" while it does.
        log_faults: impossible records in its log, one sentence each (`LogReader.faults`).
        led: whether it is learned here; False once another replica of a fleet leads it.
        notice: a notice about its recovery, for clients; "" if there is none.
        last_row: the last row that was sent to it.
        snapshot_sequence: of the newest snapshot; 0 without one.
        snapshot_time: when that was saved, by boot_seconds(); None without one, and minus infinity
            where the clock says that it is still to come, so that its age is not known.
        rolled_back: the last rollback: `to` a snapshot's sequence, from the sequence `at`, at the
            time `time`; after a promotion, `of` the model with which it exchanged states.
        champion: the model whose log it learns, and whose sequences it shares; None for a model
            that learns its own samples.
        following: how it compares with its champion.
        pending: counts of the rows that wait for labels; None if the spec lets none wait.
        labels: how many labels have come for such rows since the server started, by status.
    """

    def __init__(self, model_id: int, name: str, spec: ModelSpec) -> None:
        self.id = model_id
        self.name = name
        self.spec = spec
        self.published = ModelView(0, "", RowsView(RowForm(None)), {})
        self.chain = PublishedChain()
        self.order = PredictedOrder()
        self.single_rows = SingleRows()
        self.counts = {head: SampleCounts() for head in HEADS}
        self.learning_time = LearningTime()
        self.champion: Model | None = None
        self.following = ChallengerStanding()
        self.head_of = {call: head_of_call(spec, call) for call in LEARNING_CALLS}
        self.broken = ""
        self.log_faults: list[str] = []
        self.led = True
        self.notice = ""
        self.last_row = LastRow()
        self.snapshot_sequence = 0
        self.snapshot_time: float | None = None
        self.rolled_back: dict[str, Any] | None = None
        self.pending = None if spec.pending is None else PendingCounts()
        self.labels: dict[Status, int] = dict.fromkeys(get_args(Status), 0)
        # The view whose labels were last looked at, and the warnings about them.
        self._label_warnings: tuple[HeadView | None, list[dict[str, Any]]] = None, []

    def take_spec(self, spec: ModelSpec) -> None:
        """Replace the spec."""
        self.spec = spec
        self.head_of = {call: head_of_call(spec, call) for call in LEARNING_CALLS}

    def absence(self) -> Refusal:
        """Return the refusal of what asks for the model where it is not learned any more."""
        if not self.led:
            return NotLeader(f"another replica leads model {self.name!r}; nothing was learned here")
        return UnknownModel(f"model {self.name!r} was deleted")

    @property
    def lag(self) -> int:
        """The number of samples by which it lags behind its champion; 0 without one."""
        champion = self.champion
        if champion is None:
            return 0
        return max(0, champion.published.sequence - self.published.sequence)

    def note_snapshot(self, sequence: int, written: datetime | None) -> None:
        """Note the newest snapshot.

        Args:
            sequence: of the snapshot.
            written: when it was written; None if it is gone already.
        """
        self.snapshot_sequence = sequence
        if written is not None:
            # The wall clock is read only here, so that its later jumps do not change the age.
            age = (datetime.now(UTC) - written).total_seconds()
            is_known = age > -_CLOCK_SECONDS
            self.snapshot_time = boot_seconds() - max(0.0, age) if is_known else -math.inf

    def refitted_head(self) -> HeadName:
        """Return the head that a refit fits. Raises NoSuchHead."""
        refitted = [name for name, kind in KINDS.items() if kind.refitting]
        for name in refitted:
            if name in self.spec.heads:
                return name
        raise NoSuchHead(f"the spec of model {self.name!r} has null for {' and '.join(refitted)}")

    @property
    def status(self) -> Literal["ok", "broken"]:
        """Whether the model learns: "ok" or "broken"."""
        return "broken" if self.broken else "ok"

    def describe(self) -> dict[str, Any]:
        """Return the model's description for responses."""
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
            "pending": _described_pending(self.pending),
            "labels_before": self.order.described(heads.values()),
            "follows": self._follows(),
            "snapshot_sequence": self.snapshot_sequence,
            "rolled_back": self.rolled_back,
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

    def warnings(self) -> list[dict[str, Any]]:
        """Return warnings for users; each has a `slug`, a `column` and a `message`."""
        view = self.published.heads.get(self.spec.serve)
        described, warnings = self._label_warnings
        if described is not view:
            warnings = label_warnings(view)
            self._label_warnings = view, warnings
        return warnings.copy()

    def _warning(self) -> str | None:
        """Return a warning of labels that are rare and not declared; None without such labels."""
        if self.spec.classes is not None:
            return None
        # Several heads may have met the same label; 1 and True are two labels.
        rare = {repr(k): k for view in self.published.heads.values() for k in view.rare_classes}
        if not rare:
            return None
        examples = ", ".join(str(label)[:40] for label in list(rare.values())[:5])
        return (
            f"{len(rare)} of the labels came a handful of times: {examples}; if they are mistakes, "
            'a model with "classes" in its spec would have refused them'
        )


def _described_pending(pending: PendingCounts | None) -> dict[str, Any] | None:
    """Describe the rows that wait for labels, and since when the oldest waits."""
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


def rfc3339(when: datetime) -> str:
    """Return a time in UTC as text, with milliseconds."""
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _kind_of_rows(form: RowForm) -> str | None:
    """Return "named", "table" or "arrays"; None before the first row."""
    if form.sparse:
        return "named"
    if form.schema is not None:
        return "table"
    return "arrays" if form.begun else None


def _described(view: HeadView, served: bool) -> dict[str, Any]:
    """Return a head's part of the description; that of the served one has scores of classes."""
    changes = [change._asdict() for change in view.changes]
    parts = {**_classes(view), **view.stats, "changes": changes, "calibration": view.calibration}
    return parts | {"scores": view.scores} if served and view.classes is not None else parts


def _classes(view: HeadView) -> dict[str, Any]:
    """Return the classes that a head has met; nothing in regression."""
    return {} if view.classes is None else {"classes": list(view.classes)}
