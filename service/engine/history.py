"""A model's kept snapshots: listed, and gone back to.

A rollback is written to the log, with the restored state pinned beside the snapshots, so that it
can be replayed and undone.
"""

import logging
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from wolfstream.service.calls.models import Snapshot
from wolfstream.service.engine.idempotency import IdempotencyKeys
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.writer_role import Products
from wolfstream.service.errors import StorageFailed, UnknownSnapshot, UnusableSnapshot
from wolfstream.service.heads.value_scores import score_in
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model, rfc3339
from wolfstream.service.recovery.broken import mark_broken
from wolfstream.service.recovery.model_files import ModelFileError, fill_model, spec_in
from wolfstream.service.recovery.model_recovery import check_creation
from wolfstream.service.storage.entries import Rollback, new_epoch
from wolfstream.service.storage.interfaces import Snapshots, Storage
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, decode_state, encode_state
from wolfstream.service.storage.term import Term

logger = logging.getLogger(__name__)

# How many rollbacks keep their pinned states, for a restore to a time between two of them.
_PINNED = 4


class History:
    """The snapshots of all live models. The writer's thread rolls back; any thread may list.

    Args:
        storage: of logs and snapshots.
        models: that are learned here.
        keys: their idempotency keys.
        aside: see `Writer`.
    """

    def __init__(
        self,
        storage: Storage,
        models: LiveModels,
        keys: IdempotencyKeys,
        aside: Products,
    ) -> None:
        self._snapshots, self._replays = storage.snapshots, storage.journal.replays
        self._models, self._keys = models, keys
        self._aside = aside

    def describe(self, model: Model) -> list[Snapshot]:
        """Return descriptions of a model's kept snapshots, newest first."""
        sequences = self._snapshots.sequences(model.id)
        descriptions = (_describe(model, self._snapshots, sequence) for sequence in sequences)
        return [*filter(None, descriptions)]

    def roll_back(self, model: Model, sequence: int) -> dict[str, Any]:
        """Roll a model back to a snapshot: persist, apply, publish. Return its description.

        A broken model learns again, without the entries that broke it.

        Raises UnknownModel, UnknownSnapshot, UnusableSnapshot, StorageFailed.
        """
        learner, term = self._models.learner(model), self._models.term(model)
        try:
            with self._aside(1):  # as recovery does
                content, source = _restored(learner, self._snapshots, sequence)
        except OSError as error:
            raise StorageFailed(
                f"the snapshot cannot be read now: {error}; nothing has changed, try again"
            ) from None
        at = term.highest_sequence(learner.sequence, self._listed(model))
        # If learning failed here, only this process knows what it has not learned. Otherwise the
        # log may have samples that could not be loaded or replayed here, but were learned and
        # acknowledged before.
        learned = learner.sequence if learner.failed_live else at
        rolled_back = {"to": sequence, "at": at, "time": rfc3339(datetime.now(UTC))}
        # A replay begins after the rollback, so answers of earlier entries must be written now.
        self._keys.write(term)
        with self._aside(1):
            digest = self.pin(model, content)
        rollback = Rollback(rolled_back, digest, new_epoch())
        self._roll_back_to(learner, term, source, rollback, learned)
        logger.info("model rolled back: model=%s snapshot=%d sequence=%d", model.name, sequence, at)
        return model.describe()

    def _roll_back_to(
        self, learner: Learner, term: Term, source: Learner, rollback: Rollback, learned: int
    ) -> None:
        """Write a rollback to a pinned state, apply and publish it, and unpin older states.

        Args:
            learner: of the model.
            term: of its log.
            source: a learner of the pinned state.
            rollback: to write.
            learned: see `Term.roll_back`.

        Raises StorageFailed, NotYetLearned.
        """
        model = learner.model
        try:
            pinned = self._snapshots.pinned_names(model.id)
        except OSError as error:
            raise StorageFailed(f"the states that are kept could not be listed: {error}") from None
        unneeded = term.roll_back(rollback, learned, pinned, _PINNED)
        self._replays.end(model.id)  # the entries that ended processes are not replayed any more
        self._keys.forget_unlearned(model.id, learned)
        try:
            learner.roll_back(source, rollback.description, rollback.epoch)
            learner.publish()
        except Exception as error:  # the log has the rollback: no state before it may go on
            raise mark_broken(learner, error) from None
        self.unpin(model, unneeded)

    def _listed(self, model: Model) -> list[int]:
        try:
            return self._snapshots.sequences(model.id)
        except OSError as error:
            raise StorageFailed(f"the snapshots could not be listed: {error}") from None

    def pin(self, model: Model, content: bytes) -> str:
        """Save the bytes of a state for a rollback; return the name of the pin.

        Raises StorageFailed.
        """
        try:
            return self._snapshots.pin(model.id, content)
        except OSError as error:
            raise StorageFailed(
                f"the state to go back to could not be kept: {error.strerror or error}"
            ) from None

    def unpin(self, model: Model, unneeded: Collection[str]) -> None:
        """Delete states that older rollbacks restored. A failure is logged."""
        try:
            self._snapshots.unpin(model.id, unneeded)
        except OSError as error:
            logger.error(
                "states of old rollbacks not deleted: model=%s error=%s", model.name, error
            )


def _describe(model: Model, snapshots: Snapshots, sequence: int) -> Snapshot | None:
    """Return the description of a snapshot; None if it was deleted meanwhile.

    Its fields, among others:
        samples_since: the number of samples after it, which a rollback to it would undo.
        scores: of each head at that time; None if the snapshot cannot be read.
    """
    snapshot = snapshots.describe(model.id, sequence)
    if snapshot is None:
        return None
    plain = snapshot.plain
    heads = {} if plain is None else plain["heads"]
    return {
        "sequence": sequence,
        "epoch": None if plain is None else plain.get("epoch"),
        "bytes": snapshot.n_bytes,
        "written": rfc3339(snapshot.written),
        "samples_since": max(model.published.sequence - sequence, 0),
        "rolled_back": None if plain is None else plain.get("rolled_back"),
        "scores": None if plain is None else {n: score_in(h).to_dict() for n, h in heads.items()},
    }


def _restored(present: Learner, snapshots: Snapshots, sequence: int) -> tuple[bytes, Learner]:
    """Return the bytes of a snapshot as a model goes back to it, and a learner restored from them.

    present: the model's learner. The restored one counts rows that wait for labels on from it, so
        that their numbers stay unique.

    Raises UnknownSnapshot, UnusableSnapshot.
    """
    model = present.model
    sequences = snapshots.sequences(model.id)
    if sequence in sequences:
        try:
            content = snapshots.content(model.id, sequence)
            state = decode_state(content, "it")
            check_creation(present, state, "it")
            source = fill_model(Model(model.id, model.name, spec_in(state, "it")), state, "it")
            if source.learner.count_rows_on(present) and source.learner.pending is not None:
                arrays = state.arrays | source.learner.pending.state()
                content = b"".join(encode_state(state._replace(arrays=arrays)))
            return content, source.learner
        except (DamagedSnapshot, ModelFileError) as error:
            sequences = snapshots.sequences(model.id)
            if sequence in sequences:  # otherwise a newer one has replaced it
                others = [other for other in sequences if other != sequence]
                raise UnusableSnapshot(
                    f"the snapshot of sequence {sequence} is damaged: {error}; {_listed(others)}"
                ) from None
    raise UnknownSnapshot(
        f"model {model.name!r} has no snapshot of sequence {sequence}; {_listed(sequences)}"
    )


def _listed(sequences: list[int]) -> str:
    if not sequences:
        return "it has no other; POST .../snapshot makes one"
    return f"the snapshots have sequences {', '.join(map(str, sequences))}"
