"""Recovery of a model after a stop: load the newest snapshot, replay the rest of the journal.

A rollback in the journal serves as a snapshot of its sequence. It takes precedence over a snapshot
of the same sequence, which may be older; what came after both at this sequence is in the journal.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from service.engine.origin import difference
from service.engine.replay import Computing, replay
from service.errors import StartupError, StorageFailed
from service.model.learner import Learner
from service.model.live import Model
from service.spec.stored import read_stored_spec
from service.storage.entries import KeyedRequest
from service.storage.interfaces import Storage
from service.storage.journal import Journal
from service.storage.snapshot_format import DamagedSnapshot, State, UnreadableSnapshot
from service.storage.snapshots import Snapshots

logger = logging.getLogger(__name__)

# In the place of a sequence: the snapshot is loaded.
_RESTORING = 2**63


def recover_model(
    learner: Learner, storage: Storage, computing: Computing, champion: int | None = None
) -> Learner:
    """Fill a new learner with its model, as it was acknowledged; see `recovery_order.recover`.

    champion: the number of the model that it follows. Then it is what its newest snapshot or
    rollback has, and goes on from there as it does beside requests (`engine.challengers`).

    Raises StartupError.
    """
    found = bring_back(
        learner,
        storage,
        computing,
        lambda whole, journal: check_complete(whole, journal, champion),
        champion,
    )
    try:
        if found:
            storage.answers.write(found)
    except StorageFailed as error:
        raise StartupError(f"{error}; make room for it and start again") from None
    learner.publish()
    logger.info("model %s: recovered at sequence %d", learner.model.name, learner.sequence)
    return learner


def bring_back(
    learner: Learner,
    storage: Storage,
    computing: Computing,
    check: Callable[[Learner, Journal], None],
    champion: int | None = None,
) -> list[KeyedRequest]:
    """Fill a new learner with its model; keys whose answers had not been written, with them.

    check: is called once everything is learned, and may raise StartupError. champion: see
    `recover_model`.

    Where something cannot be read, the model is broken. Nothing is written to the journal.
    """
    model, journal = learner.model, storage.journal
    damaged, found, epoch = list[int](), list[KeyedRequest](), None
    if _may_begin(learner, journal, _RESTORING):
        try:
            damaged = restore_newest(learner, journal, storage.snapshots, computing)
            epoch = journal.epoch_since(model.id, learner.sequence)
            if champion is None:
                rows_of_blocks = replay(
                    learner, storage, computing, lambda after: _may_begin(learner, journal, after)
                )
                found = [row for rows in rows_of_blocks for row in rows]
            elif model.snapshot_time is None and model.rolled_back is None:
                raise StartupError("it has no complete snapshot; delete it and create it again")
        except StartupError as error:  # the other models are whole
            model.broken = str(error)
            logger.error("model %s is broken: %s", model.name, error)
        else:
            check(learner, journal)
        finally:  # answers to what comes before its beginning have the snapshot's
            learner.epoch = epoch or learner.epoch
    if not model.broken:  # the way back is found
        journal.replays.end(model.id)
        for sequence in damaged:
            storage.snapshots.set_aside(model.id, sequence)
    return found


def _may_begin(learner: Learner, journal: Journal, after: int) -> bool:
    """Whether to go on after a sequence; not where processes have ended: it is broken then."""
    model = learner.model
    ended = journal.replays.begin(model.id, after)
    if ended < journal.replays.most:
        return True
    what = "loading its snapshot" if after == _RESTORING else f"its replay after sequence {after}"
    model.broken = (
        f"{what} has ended the server {ended} times, perhaps for want of memory; its journal is "
        "kept: roll it back or delete it. To try again, start `wolfstream serve --recover`, or a "
        "replica of a fleet with an empty data directory"
    )
    logger.error("model %s: %s", model.name, model.broken)
    return False


def _alone(_: int) -> AbstractContextManager[None]:
    """Recover a model alone: nothing else uses the storage or the processors."""
    return nullcontext()


def restore_newest(
    learner: Learner, journal: Journal, snapshots: Snapshots, computing: Computing = _alone
) -> list[int]:
    """Fill a new learner with the newest undamaged state, if there is any.

    computing: is entered to load a snapshot, while others use the journal.

    Returns the sequences of the damaged snapshots that were skipped; one that cannot be read now is
    skipped too, but may be whole. Raises StartupError.
    """
    model = learner.model
    rolled_back_at = journal.rolled_back_at(model.id)
    damaged, unreadable = list[int](), list[int]()
    for sequence in snapshots.sequences(model.id):
        if rolled_back_at is not None and sequence <= rolled_back_at:
            break
        try:
            with computing(1):
                state = snapshots.load(model.id, sequence)
                check_creation(learner, state, snapshots.name(model.id, sequence))
                learner.restore(state.plain, state.arrays)
        except DamagedSnapshot as error:
            logger.warning("model %s: %s; trying the one before", model.name, error)
            (unreadable if isinstance(error, UnreadableSnapshot) else damaged).append(sequence)
            continue
        _note_origin(model, sequence, state)
        model.note_snapshot(sequence, snapshots.written(model.id, sequence))
        return damaged
    if rolled_back_at is not None:
        with computing(1):
            _restore_rollback(learner, journal, snapshots)
        whole = set(snapshots.sequences(model.id)) - {*damaged, *unreadable}
        model.snapshot_sequence = max(whole, default=0)
    return damaged


def _restore_rollback(learner: Learner, journal: Journal, snapshots: Snapshots) -> None:
    model, rollback = learner.model, journal.rollbacks(learner.model.id)[0]
    try:
        state = snapshots.pinned(model.id, rollback.digest)
    except DamagedSnapshot as error:
        raise StartupError(
            f"model {model.name!r}: the state that it was rolled back to: {error}. Restore the "
            "data directory from a backup (`wolfstream restore`); without that state the model "
            "would be what it was before it was rolled back"
        ) from None
    spec = read_stored_spec(state.plain["spec"])  # another model's after a promotion
    source = Learner(Model(model.id, model.name, spec), learner.epoch)
    source.restore(state.plain, state.arrays)
    learner.roll_back(source, rollback.description, rollback.epoch)


def check_creation(learner: Learner, state: State, name: str) -> None:
    """Raise DamagedSnapshot for a snapshot that was saved for another model of the same number.

    name: of the snapshot. Those of older versions do not say for which model they were saved.
    """
    if state.plain.get("creation", learner.creation) != learner.creation:
        raise DamagedSnapshot(name, "belongs to another model, which had the same number")


def _note_origin(model: Model, sequence: int, state: State) -> None:
    """Say where the bits of a replay may be others than those that were acknowledged."""
    changed = difference(state.plain.get("made"))
    if changed:
        model.notice = (
            f"its snapshot of sequence {sequence} was made with {changed}: what was learned after "
            "it is replayed, and predictions may differ from earlier ones in the last bits"
        )
        logger.warning("model %s: %s", model.name, model.notice)


def check_complete(learner: Learner, journal: Journal, champion: int | None = None) -> None:
    """Raise StartupError if more was acknowledged than there is."""
    model = learner.model
    reached = max(learner.sequence, journal.end(model.id if champion is None else champion))
    acknowledged = journal.acknowledged(model.id)
    if reached < acknowledged:
        raise StartupError(
            f"model {model.name!r}: {acknowledged} samples were acknowledged, but "
            f"its journal and its snapshots end at {reached}. Restore {journal.name} and what "
            "belongs to it from a backup (`wolfstream restore`); `wolfstream serve --recover` goes "
            "on without what is lost"
        )
