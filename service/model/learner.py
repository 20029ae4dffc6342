"""The learner of a model: its heads, the sequence that it has learned up to, and its state.

It writes no log and publishes nothing by itself: its user persists a block first, then calls
`absorb`, then `publish`.
"""

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from numpy.typing import NDArray

from wolfstream.service.heads import kinds
from wolfstream.service.heads.fit import Fit, Window
from wolfstream.service.heads.kind import RefitMethod
from wolfstream.service.heads.protocol import Answers, Head, concatenate_answers
from wolfstream.service.model.comparison import (
    ChallengerStanding,
    RecentLosses,
    restored_following,
    restored_losses,
)
from wolfstream.service.model.learning_heads import LearningHeads
from wolfstream.service.model.live import Model
from wolfstream.service.model.pending import WAITING_ROWS, PendingRows
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.saved_rows import preparing, restored_rows, saved_rows
from wolfstream.service.samples.record import JoinedRows, PredictedRows
from wolfstream.service.samples.tasks import TASKS, Targets, task_of
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.solver.prepare.column_facts import MOST_NOTICES, Notice
from wolfstream.solver.stream.rows import StreamRows, StreamSamples

# The approximate memory of a model besides its heads, and of a name of sparse rows in its table.
OWN_BYTES, _NAME_BYTES = 1 << 19, 150


class Checkpoint(NamedTuple):
    """A learner's state for a snapshot, and a learner restored from it, if it is another one."""

    plain: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    restored: "Learner | None"


class Learner:
    """Learns for one model, and publishes what it has learned. Used by one thread.

    Attributes:
        model: that it learns for.
        sequence: of the last sample absorbed.
        epoch: in which the sequence counts.
        creation: the first epoch of the model, which its snapshots name; "" if it has none yet.
        rows: the form and the preparation of the model's rows.
        steady_until: the sequence up to which memory for small requests was taken in advance.
        ahead_bytes: an upper bound of this memory.
        snapshot_attempt: the sequence at which a snapshot was last begun.
        fitted: since then, the number of samples in the windows of fits, and of predicted rows that
            were to wait for labels.
        unsaved_seconds: of learning since the last checkpoint, which a replay would take.
        failed_live: whether learning failed in this process, so that nothing after it was
            acknowledged.
        pending: predicted rows that wait for labels; None if the spec lets none wait.
        losses: of its last samples, while challengers follow the model; else None.
    """

    def __init__(self, model: Model, epoch: str = "") -> None:
        self.model = model
        self.sequence = 0
        self.epoch = self.creation = epoch
        self.rows = StreamRows(preparing(model.spec.prepare))
        self._heads = LearningHeads(model.spec)
        self.snapshot_attempt = self.steady_until = self.ahead_bytes = 0
        # The sequence at which the heads were last restored, where they have the bits of a restored
        # learner's.
        self._restored_at = 0
        self.fitted = 0
        self.unsaved_seconds = 0.0
        self.failed_live = False
        self.pending = None if model.spec.pending is None else PendingRows(model.spec.pending)
        self.losses: RecentLosses | None = None
        self._notices: list[Notice] = []  # about samples, not reported yet
        # The state of `Model.following` in the snapshot, until the model follows again.
        self._followed: dict[str, Any] | None = None
        self.publish()

    def absorb(
        self, head: HeadName, samples: Samples, earlier_predictions: Sequence[Any] | None = None
    ) -> Answers:
        """Learn one block of the log, live or in replay.

        Args:
            head: that the samples were posted for.
            samples: of the block.
            earlier_predictions: of the served head, if the rows were predicted before; its score
                counts these.

        Returns the answers of `head`, but with the predictions of the served head.
        """
        began = time.monotonic()
        self.model.last_row.note(samples.X)
        answers, start = list[Answers](), 0
        for part, rows in self.rows.settling(StreamSamples(head, *samples), self._learn_anew):
            stop = start + len(part.y)
            earlier_part = None if earlier_predictions is None else earlier_predictions[start:stop]
            answers.append(self._heads.learn(part, rows, earlier_part))
            start = stop
        self.sequence += len(samples.y)
        for learned in self.learning(head):
            self.heads[learned].date_changes(self.sequence)
        self._notices = [*self._notices, *self.rows.notices][:MOST_NOTICES]
        whole = answers[0] if len(answers) == 1 else concatenate_answers(answers)
        if self.losses is not None:
            losses = task_of(samples.y).losses(whole.prediction, samples.y)
            self.losses.add(self.sequence - len(samples.y), losses)
        self.model.learning_time.add(head, len(samples.y), time.monotonic() - began)
        return whole

    def take_notices(self) -> list[Notice]:
        """Return the notices about samples since the last call, at most MOST_NOTICES."""
        notices, self._notices = self._notices, []
        return notices

    def record_losses(self) -> None:
        """Store the losses of samples from here on, for the model's challengers."""
        if self.losses is None:
            self.losses = RecentLosses(self.sequence, self.epoch)

    def follow(self, champion: Model) -> None:
        """Follow a champion from here on, or continue to after a restore."""
        self.model.champion = champion
        self.model.following = restored_following(self._followed)

    def pass_over(self, samples: int) -> None:
        """Count samples of the champion's log as passed over, without learning them."""
        self.sequence += samples

    def _learn_anew(self) -> None:
        """Learn the first samples again with new heads; the scores of the old ones stay."""
        former, self._heads = self._heads, LearningHeads(self.model.spec)
        for part in self.rows.first:
            self._heads.learn(part, self.rows.head_rows(part.X))
        self._heads.keep_scores(former)

    @property
    def heads(self) -> dict[HeadName, Head]:
        """The heads by name."""
        return self._heads.each

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the model."""
        names, pending = self.rows.names, self.model.pending
        own = OWN_BYTES + (0 if names is None else _NAME_BYTES * len(names))
        return own + self.model.published.n_bytes + (0 if pending is None else pending.n_bytes)

    def learning(self, head: HeadName) -> tuple[HeadName, ...]:
        """Return the heads that learn the samples posted for this one."""
        return self._heads.learning(head)

    def forget_views(self) -> None:
        """Drop all cached views, after a head was changed from outside."""
        self._heads.forget_views()

    def publish(self) -> None:
        """Publish the present state as the model's view."""
        rows, views = self.rows.view(), self._heads.views()
        self.model.published = ModelView(self.sequence, self.epoch, rows, views)

    def window(self) -> Window:
        """Return a copy of the samples that a refit uses. Raises NoSuchHead."""
        name = self.model.refitted_head()
        X, y, weight = _refitting(name).window(self.heads[name])
        return Window(name, self.sequence, X, y, self.model.spec, self.epoch, weight)

    def add_waiting_rows(self, predicted: PredictedRows, record: bytes) -> None:
        """Let predicted rows wait for labels, live or in replay; `show_pending` counts them.

        record: of their entry.
        """
        assert self.pending is not None
        before = self.pending.received
        self.pending.add(predicted, record)
        self.fitted += self.pending.received - before

    def join(self, joined: JoinedRows, y: Targets) -> None:
        """Drop the waiting rows whose labels were learned, live or in replay."""
        if self.pending is not None:
            self.pending.join(joined, task_of(y).plain(y))
            self.show_pending()

    def show_pending(self) -> None:
        """Let the model describe the rows that wait now."""
        self.model.pending = None if self.pending is None else self.pending.counts()

    def adopt(self, head: HeadName, fit: Fit) -> None:
        """Serve the result of a refit, live or in replay."""
        _refitting(head).adopt(self.heads[head], fit)
        self._heads.forget_view(head)
        self.fitted += fit.plain["samples"]

    def roll_back(self, source: "Learner", rolled_back: dict[str, Any], epoch: str) -> None:
        """Take over the state and spec of `source`; the sequence continues, in another epoch.

        Args:
            source: a learner of the state to go back to.
            rolled_back: see `Model.rolled_back`.
            epoch: that begins.
        """
        self.model.take_spec(source.model.spec)
        self.take_heads(source)
        self.pending = source.pending
        self.show_pending()
        self._restored_at = rolled_back["at"]
        self.sequence = rolled_back["at"]
        self.model.rolled_back = rolled_back
        self.epoch = epoch
        if self.losses is not None:
            self.losses.begin_epoch(self.sequence, epoch)
        self._followed = None
        self.model.following = ChallengerStanding()
        self.model.broken, self.failed_live = "", False
        self.model.log_faults = []

    def count_rows_on(self, before: "Learner") -> bool:
        """Continue the numbers of another learner's waiting rows; return whether it had more.

        No number is used twice: dropping the rows up to a number must not drop younger rows.
        """
        if self.pending is None or before.pending is None:
            return False
        return self.pending.count_on(before.pending.received)

    def take_heads(self, source: "Learner") -> None:
        """Take the heads and rows of another learner, as in a promotion."""
        self._heads, self.rows, self.steady_until = source._heads, source.rows, 0
        self._heads.forget_views()

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays, copied, for a snapshot."""
        plain_rows, arrays = saved_rows(self.rows)
        memory_bytes, (heads, head_arrays) = self._heads.memory_bytes(), self._heads.state()
        plain: dict[str, Any] = {
            "spec": self.model.spec.plain(),
            "sequence": self.sequence,
            "epoch": self.epoch,
            "memory_bytes": memory_bytes,
            "heads": heads,
            **plain_rows,
        }
        if self.creation:
            plain["creation"] = self.creation
        if self.pending is not None:
            arrays |= self.pending.state()
        if self.model.rolled_back is not None:
            plain["rolled_back"] = self.model.rolled_back
        if self.model.champion is not None:
            plain["following"] = self.model.following.plain()
        if self.losses is not None:
            plain_losses, values = self.losses.state()
            plain |= plain_losses
            arrays |= values
        return plain, arrays | head_arrays

    def checkpoint(self) -> Checkpoint:
        """Return a state for a snapshot and a learner restored from it; this one does not change.

        A snapshot has no kernel values, and a restored learner may compute them in other products
        than this one did. With `go_on_from` the learner continues from the restored one, so that
        both have the same bits.
        """
        plain, arrays = self.state()
        if self._restored_at == self.sequence:
            return Checkpoint(plain, arrays, None)
        restored = Learner(Model(self.model.id, self.model.name, self.model.spec), self.epoch)
        # Rows that wait for labels can be many, and stay in this learner.
        own_arrays = {name: array.copy() for name, array in arrays.items() if name != WAITING_ROWS}
        restored._take(deepcopy(plain), own_arrays)
        return Checkpoint(plain, arrays, restored)

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Continue as the learner that was restored from a checkpoint, live or in replay."""
        self.unsaved_seconds = 0.0
        if checkpoint.restored is not None:
            self.take_heads(checkpoint.restored)
            self._restored_at = self.sequence

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the state of a snapshot, and the spec that the model had then.

        Takes all of it, or changes nothing and raises whatever its readers raise at a state that is
        not theirs.
        """
        spec = read_stored_spec(plain["spec"])
        restored = Learner(Model(self.model.id, self.model.name, spec), self.epoch)
        restored._take(plain, arrays)
        if restored.pending is not None:
            restored.pending.restore(arrays, spec.prepare is not None, TASKS[spec.task])
        losses = None
        if self.losses is not None:
            losses = restored_losses(plain, arrays)
            losses = losses or RecentLosses(restored.sequence, restored.epoch)
        if spec != self.model.spec:
            self.model.take_spec(spec)
        self.take_heads(restored)
        self.sequence, self.epoch = restored.sequence, restored.epoch
        self._restored_at = self.sequence
        self.pending, self.losses, self._followed = restored.pending, losses, plain.get("following")
        self.model.rolled_back = restored.model.rolled_back
        self.show_pending()
        self.model.snapshot_sequence = self.sequence

    def _take(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.sequence, self.steady_until = plain["sequence"], 0
        self.epoch = plain.get("epoch", self.epoch)  # an uploaded state has none
        self._restored_at = self.sequence
        self.rows = restored_rows(self.model.spec.prepare, plain, arrays)
        self.model.rolled_back = plain.get("rolled_back")
        self._heads.restore(plain["heads"], arrays)


def _refitting(head: HeadName) -> RefitMethod[Any]:
    refitting = kinds.KINDS[head].refitting
    assert refitting is not None
    return refitting
