"""Recovery of a model after a stop: load the newest snapshot, replay the rest of the journal.

A rollback in the journal serves as a snapshot of its sequence. It takes precedence over a snapshot
of the same sequence, which may be older; what came after both at this sequence is in the journal.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from wolfstream.service.engine.broken import in_words
from wolfstream.service.engine.origin import difference
from wolfstream.service.engine.replay import Computing, replay
from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.stored import other_numerics, read_stored_spec
from wolfstream.service.storage.entries import KeyedRequest
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.journal import Replays
from wolfstream.service.storage.log import LogGap, LogReader
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State, UnreadableSnapshot
from wolfstream.service.storage.snapshots import Snapshots
from wolfstream.service.storage.term import Term

logger = logging.getLogger(__name__)

# In the place of a sequence: the snapshot is loaded.
RESTORING = 2**63


def _never() -> bool:
    return False


def recover_model(
    learner: Learner,
    storage: Storage,
    computing: Computing,
    champion: int | None = None,
    is_scarce: Callable[[], bool] = _never,
) -> tuple[Learner, Term]:
    """Fill a new learner with its model, as it was acknowledged; see `recovery_order.recover`.

    champion: the number of the model that it follows. Then it is what its newest snapshot or
    rollback has, and goes on from there as it does beside requests (`engine.challengers`).
    is_scarce: whether there is so little memory that nothing more is to be recovered.

    Returns the learner and the term of its log. Raises StartupError.
    """
    model = learner.model
    try:
        log = storage.journal.reader(model.id)
        found = list[KeyedRequest]()
        try:
            found = bring_back(learner, log, storage, computing, champion, is_scarce=is_scarce)
        except StorageFailed as error:  # the other models can be read
            model.broken = f"{error}; start the server again"
            logger.error("model %s is broken: %s", model.name, error)
        term = log.begin_term(learner.sequence)
        if not model.broken:
            of_samples = log if champion is None else storage.journal.reader(champion)
            check_complete(learner, of_samples, term, storage.journal.name)
        if found:
            term.write_answers(found)
    except StorageFailed as error:
        raise StartupError(f"{error}; make room for it and start again") from None
    learner.publish()
    logger.info("model %s: recovered at sequence %d", model.name, learner.sequence)
    return learner, term


def bring_back(
    learner: Learner,
    log: LogReader,
    storage: Storage,
    computing: Computing,
    champion: int | None = None,
    *,
    may_be_purged: bool = False,
    is_scarce: Callable[[], bool] = _never,
) -> list[KeyedRequest]:
    """Fill a new learner with its model; keys whose answers had not been written, with them.

    Where what is there is damaged, the model is broken. Nothing is written to the log.

    Args:
        learner: new, of the model.
        log: of the model.
        storage: of its snapshots, and of the marks of replays.
        computing: see `replay`.
        champion: see `recover_model`.
        may_be_purged: whether another process may have purged the log since it was read. Then
            LogGap is raised where rows are missing, and the caller reads it anew.
        is_scarce: see `recover_model`.

    Raises LogGap, and StorageFailed where something cannot be read now: the same may succeed later.
    """
    model, replays = learner.model, storage.journal.replays
    skipped, found, epoch = Skipped([], [], []), list[KeyedRequest](), None

    def may_begin(after: int) -> bool:
        return _has_room(model, is_scarce) and _may_begin(learner, replays, after)

    if may_begin(RESTORING):
        try:
            skipped = restore_newest(learner, log, storage.snapshots, computing)
            epoch = log.epoch_since(learner.sequence)
            if champion is None:
                rows_of_blocks = replay(learner, log, computing, may_begin=may_begin)
                found = [row for rows in rows_of_blocks for row in rows]
                if not model.broken:
                    check_reached(learner, log, skipped)
            elif model.snapshot_time is None and model.rolled_back is None:
                raise StartupError("it has no complete snapshot; delete it and create it again")
        except StartupError as error:
            if may_be_purged and isinstance(error, LogGap):
                raise
            if skipped.unreadable:
                raise StorageFailed(
                    f"model {model.name!r}: its snapshot of sequence {skipped.unreadable[0]} "
                    f"cannot be read now, and the log alone does not do: {error}"
                ) from None
            model.broken = str(error)  # the other models are whole
            logger.error("model %s is broken: %s", model.name, error)
        except MemoryError as error:
            model.broken = f"it was not recovered: {in_words(error)}"
            logger.error("model %s is broken: %s", model.name, model.broken)
        finally:  # answers to what comes before its beginning have the snapshot's
            learner.epoch = epoch or learner.epoch
    if log.faults:
        note_faults(model, log)
    if not model.broken:  # the way back is found
        replays.end(model.id)
        for sequence in (*skipped.damaged, *skipped.foreign):
            storage.snapshots.set_aside(model.id, sequence)
    return found


def note_faults(model: Model, log: LogReader) -> None:
    """Let a model learn nothing more, because its log has what cannot be."""
    model.log_faults = list(log.faults)
    model.broken = (
        f"the {log.name} has what cannot be: {'; '.join(log.faults)}. Nothing is learned until "
        "somebody decides: `wolfstream fleet verify` says what is there; then roll the model back "
        "to a snapshot, or delete it"
    )
    logger.error("log has what cannot be, model stopped: model=%s", model.name)


def _has_room(model: Model, is_scarce: Callable[[], bool]) -> bool:
    """Whether there is memory to recover more of a model, which is broken otherwise."""
    if not is_scarce():
        return True
    model.broken = (
        "there is no memory left to recover it; its journal is kept. DELETE models that are not "
        "used, or give the server more memory (WOLFSTREAM_MEMORY_BYTES, or the limit of its "
        "container), and start it again"
    )
    logger.error("model %s: %s", model.name, model.broken)
    return False


def _may_begin(learner: Learner, replays: Replays, after: int) -> bool:
    """Whether to go on after a sequence; not where processes have ended: it is broken then."""
    model = learner.model
    ended = replays.begin(model.id, after)
    if ended < replays.max_crashes:
        return True
    what = "loading its snapshot" if after == RESTORING else f"its replay after sequence {after}"
    model.broken = (
        f"{what} has ended the server {ended} times, perhaps for want of memory, or a process that "
        "tried it after a crash; its journal is kept: roll it back or delete it. To try again, "
        "start `wolfstream serve --recover`, or a replica of a fleet with an empty data directory"
    )
    logger.error("model %s: %s", model.name, model.broken)
    return False


def alone(_: int) -> AbstractContextManager[None]:
    """Recover a model alone: nothing else uses the storage or the processors."""
    return nullcontext()


class Skipped(NamedTuple):
    """The sequences of snapshots that were passed over.

    Attributes:
        damaged: those that never can be read again.
        unreadable: those that cannot be read now, and may be whole.
        foreign: those of another model, which had the same number.
    """

    damaged: list[int]
    unreadable: list[int]
    foreign: list[int]


class _ForeignSnapshot(DamagedSnapshot):
    """A snapshot was saved for another model of the same number."""


def restore_newest(
    learner: Learner, log: LogReader, snapshots: Snapshots, computing: Computing = alone
) -> Skipped:
    """Fill a new learner with the newest undamaged state, if there is any.

    computing: is entered to load a snapshot, while others use the journal.

    Returns the snapshots that were passed over. Raises StartupError, StorageFailed.
    """
    model = learner.model
    rolled_back_at = log.rolled_back_at()
    skipped = Skipped([], [], [])
    for sequence in _sequences(model, snapshots):
        if rolled_back_at is not None and sequence <= rolled_back_at:
            break
        try:
            with computing(1):
                state = snapshots.load(model.id, sequence)
                check_creation(learner, state, snapshots.name(model.id, sequence))
                learner.restore(state.plain, state.arrays)
        except DamagedSnapshot as error:
            logger.warning("model %s: %s; trying the one before", model.name, error)
            if isinstance(error, _ForeignSnapshot):
                skipped.foreign.append(sequence)
            elif isinstance(error, UnreadableSnapshot):
                skipped.unreadable.append(sequence)
            else:
                skipped.damaged.append(sequence)
            continue
        _note_origin(model, sequence, state)
        learner.publish()  # for `engine.restored_models`, while the rest is replayed
        model.note_snapshot(sequence, snapshots.written(model.id, sequence))
        return skipped
    if rolled_back_at is not None:
        with computing(1):
            _restore_rollback(learner, log, snapshots)
        passed_over = {*skipped.damaged, *skipped.unreadable, *skipped.foreign}
        whole = set(_sequences(model, snapshots)) - passed_over
        model.snapshot_sequence = max(whole, default=0)
    return skipped


def _sequences(model: Model, snapshots: Snapshots) -> list[int]:
    try:
        return snapshots.sequences(model.id)
    except OSError as error:
        raise StorageFailed(
            f"the snapshots of model {model.name!r} cannot be listed now: {error}"
        ) from None


def _restore_rollback(learner: Learner, log: LogReader, snapshots: Snapshots) -> None:
    """Fill a new learner with the state that its model was rolled back to last.

    Raises StartupError, and StorageFailed where the state cannot be read now.
    """
    model, rollback = learner.model, log.rollbacks()[0]
    try:
        state = snapshots.pinned(model.id, rollback.digest)
    except UnreadableSnapshot as error:
        raise StorageFailed(
            f"the state that model {model.name!r} was rolled back to cannot be read now: {error}"
        ) from None
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
        raise _ForeignSnapshot(name, "belongs to another model, which had the same number")


def note_beginning(learner: Learner, spec: Any) -> None:
    """Say of a model without a snapshot that what it learned may have other bits by now.

    spec: as it was stored when the model was made.
    """
    model, changed = learner.model, other_numerics(spec)
    if changed and learner.sequence and model.snapshot_time is None and model.rolled_back is None:
        model.notice = (
            f"it began with {changed}, and all that it has learned is replayed: predictions may "
            "differ from earlier ones"
        )
        logger.warning("model %s: %s", model.name, model.notice)


def _note_origin(model: Model, sequence: int, state: State) -> None:
    """Say where the bits of a replay may be others than those that were acknowledged."""
    changed = difference(state.plain.get("made"))
    if changed:
        model.notice = (
            f"its snapshot of sequence {sequence} was made with {changed}: what was learned after "
            "it is replayed, and predictions may differ from earlier ones in the last bits"
        )
        logger.warning("model %s: %s", model.name, model.notice)


def check_reached(learner: Learner, log: LogReader, skipped: Skipped) -> None:
    """Raise StartupError unless a model has all that its log and its snapshots speak of.

    A model that was uploaded had learned before its log began: without its snapshot it would seem
    to be empty.
    """
    behind = max([log.last_event(), *skipped.damaged, *skipped.unreadable])
    if learner.sequence < behind:
        raise StartupError(
            f"model {learner.model.name!r}: it was at sequence {behind}, but what can be read ends "
            f"at {learner.sequence}. Restore the snapshots of the data directory from a backup "
            "(`wolfstream restore`); going on without them would silently lose acknowledged samples"
        )


def check_complete(learner: Learner, log: LogReader, term: Term, journal: str) -> None:
    """Raise StartupError if more was acknowledged than there is.

    Args:
        learner: that has learned everything.
        log: that its samples are in.
        term: of its own log.
        journal: what to restore.
    """
    model, reached = learner.model, max(learner.sequence, log.end())
    acknowledged = term.acknowledged()
    if reached < acknowledged:
        raise StartupError(
            f"model {model.name!r}: {acknowledged} samples were acknowledged, but "
            f"its journal and its snapshots end at {reached}. Restore {journal} and what "
            "belongs to it from a backup (`wolfstream restore`); `wolfstream serve --recover` goes "
            "on without what is lost"
        )
