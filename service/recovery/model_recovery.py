"""Recovery of a model after a stop: restore the newest snapshot, replay the rest of the log.

A rollback in the log serves as a snapshot of its sequence, and takes precedence over a snapshot of
the same sequence, which may be older. What came after either at this sequence is in the log.

Which models are recovered at the same time is decided by `engine.recovery_order`.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from wolfstream.service.errors import Invalid, StartupError, StorageFailed, WolfstreamError
from wolfstream.service.heads.saved_arrays import WrongArrays
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.saved_state import check_state
from wolfstream.service.recovery.broken import error_text
from wolfstream.service.recovery.replay import Computing, origin_difference, replay, unshared
from wolfstream.service.spec.stored import other_numerics, read_stored_spec
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.entries import CatalogueEntry, KeyedRequest
from wolfstream.service.storage.interfaces import SnapshotFault, Snapshots, Storage
from wolfstream.service.storage.log import LogGap, LogReader, rolled_back_at
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State, UnreadableSnapshot
from wolfstream.service.storage.term import Term

logger = logging.getLogger(__name__)

# Marks, in place of a sequence, that a snapshot is being restored.
RESTORING = 2**63


def _never() -> bool:
    return False


def new_learner(entry: CatalogueEntry) -> Learner:
    """Return a learner of a stored model that has learned nothing.

    Raises StartupError if this version, or the settings of this server, do not allow its spec.
    """
    try:
        spec = read_stored_spec(entry.spec)
        return Learner(Model(entry.number, entry.name, spec), entry.epoch)
    except Invalid as error:  # such as a learner of others that is not permitted any more
        raise StartupError(str(error)) from None


def recover_model(
    learner: Learner,
    storage: Storage,
    computing: Computing,
    champion: int | None = None,
    is_scarce: Callable[[], bool] = _never,
) -> tuple[Learner, Term]:
    """Recover a model into a new learner, as it was acknowledged, and begin a term of its log.

    Args:
        learner: new, of the model.
        storage: of logs and snapshots.
        computing: see `replay`.
        champion: the id of the model that it follows, if any. A challenger is recovered from its
            newest snapshot or rollback alone, and learns the rest beside requests
            (`engine.challengers`).
        is_scarce: whether there is so little memory that nothing more is to be recovered.

    Returns the learner and the term. Raises StartupError.
    """
    model = learner.model
    try:
        log = storage.journal.reader(model.id)
        requests, skipped = list[KeyedRequest](), no_snapshots()
        try:
            requests, skipped = bring_back(
                learner, log, storage, computing, champion, is_scarce=is_scarce
            )
        except StorageFailed as error:  # the other models may be readable
            model.broken = f"{error}; start the server again"
            logger.error("model broken, not recovered: model=%s error=%s", model.name, error)
        term = log.begin_term(learner.sequence)
        if not model.broken:
            samples_log = log if champion is None else storage.journal.reader(champion)
            check_complete(learner, samples_log, term, storage.journal.name)
            set_aside(skipped, model, storage.snapshots)
        if requests:
            term.write_answers(requests)
    except StorageFailed as error:
        raise StartupError(f"{error}; make room for it and start again") from None
    learner.publish()
    logger.info("model recovered: model=%s sequence=%d", model.name, learner.sequence)
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
) -> tuple[list[KeyedRequest], "SkippedSnapshots"]:
    """Fill a new learner with its model.

    A model whose snapshots or log are damaged is broken. Nothing is written to the log, and no
    snapshot is touched: the log may be another process's.

    Args:
        learner: new, of the model.
        log: of the model.
        storage: of its snapshots, and of the marks of replays.
        computing: see `replay`.
        champion: see `recover_model`.
        may_be_purged: whether another process may have purged the log since it was read. Then
            LogGap is raised for missing records, and the caller reads the log anew.
        is_scarce: see `recover_model`.

    Returns the requests whose answers the log lacks, answered, and the snapshots that were passed
    over, for `set_aside` once this process writes the log.

    Raises LogGap, and StorageFailed if something cannot be read now but may be later.
    """
    model, replays = learner.model, storage.journal.replays
    if log.incomplete:  # a state before the loss would seem to be what was acknowledged
        stop_faulty(model, log)
        return [], no_snapshots()
    skipped, requests, epoch = no_snapshots(), list[KeyedRequest](), None

    def may_begin(after: int) -> bool:
        return _has_room(model, is_scarce) and _may_begin(learner, replays, after)

    if may_begin(RESTORING):
        try:
            skipped = restore_newest(learner, log, storage.snapshots, computing)
            epoch = log.epoch_since(learner.sequence)
            if champion is None:
                replayed = replay(learner, log, computing, may_begin=may_begin)
                requests = [request for block in replayed for request in block]
                if not model.broken:
                    check_reached(learner, log, skipped)
            elif model.snapshot_time is None and model.rolled_back is None:
                raise StartupError("it has no complete snapshot; delete it and create it again")
        except StartupError as error:
            if may_be_purged and isinstance(error, LogGap):
                raise
            model.broken = _without(skipped, model, error)  # the other models are intact
            logger.error("model broken, not recovered: model=%s error=%s", model.name, error)
        except MemoryError as error:
            model.broken = f"it was not recovered: {error_text(error)}"
            logger.error("model broken, not recovered: model=%s error=%s", model.name, model.broken)
        finally:  # not before: answers to entries of an earlier epoch have the snapshot's
            learner.epoch = epoch or learner.epoch
    if log.faults:
        stop_faulty(model, log)
    if not model.broken:  # nothing that ended a process is left to replay
        replays.end(model.id)
    return requests, skipped


def _without(skipped: "SkippedSnapshots", model: Model, error: StartupError) -> str:
    """Return why a model is broken that is not recovered without the snapshots passed over.

    Raises StorageFailed if one of them may be readable later.
    """
    if skipped.unreadable:
        raise StorageFailed(
            f"model {model.name!r}: its snapshot of sequence {skipped.unreadable[0]} "
            f"cannot be read now, and the log alone does not do: {error}"
        ) from None
    if not skipped.unusable:
        return str(error)
    newest = max(skipped.unusable)
    return f"{skipped.unusable[newest]}, and what is older does not do without it: {error}"


def set_aside(skipped: "SkippedSnapshots", model: Model, snapshots: Snapshots) -> None:
    """Set aside the snapshots that a model was recovered without, and say so.

    To be called by the writer of the log alone: a leader of another version may use what its
    standby cannot. It may also have saved another one of the same sequence since, which stays.
    """
    if model.broken:
        return
    of_other_versions = list[int]()
    for sequence, fault in skipped.faults().items():
        name = snapshots.name(model.id, sequence)
        try:
            if snapshots.written(model.id, sequence) != skipped.written[sequence]:
                continue
            snapshots.set_aside(model.id, sequence, fault)
        except OSError as error:
            logger.warning("snapshot not set aside: snapshot=%s error=%s", name, error)
            continue
        logger.warning("snapshot set aside: model=%s snapshot=%s fault=%s", model.name, name, fault)
        if sequence in skipped.unusable:
            of_other_versions.append(sequence)
    if of_other_versions:
        listed = ", ".join(map(str, sorted(of_other_versions)))
        said = f"recovered without its snapshots of other versions, set aside: sequences {listed}"
        model.notice = f"{model.notice}; {said}" if model.notice else said


def stop_faulty(model: Model, log: LogReader) -> None:
    """Mark a model broken whose log contains something impossible, or lacks something."""
    model.log_faults = list(log.faults)
    model.broken = (
        f"the {log.name} {'lacks' if log.incomplete else 'has impossible'} records: "
        f"{'; '.join(log.faults)}. The model learns nothing until you roll it back to a snapshot "
        "or delete it; `wolfstream fleet verify` lists the records"
    )
    logger.error(
        "log has faults, model stopped: model=%s faults=%s",
        model.name,
        "; ".join(log.faults),
    )


def _has_room(model: Model, is_scarce: Callable[[], bool]) -> bool:
    """Return whether there is memory to recover more of a model; if not, mark it broken."""
    if not is_scarce():
        return True
    model.broken = (
        "there is no memory left to recover it; its journal is kept. DELETE models that are not "
        "used, or give the server more memory (WOLFSTREAM_MEMORY_BYTES, or the limit of its "
        "container), and start it again"
    )
    logger.error(
        "model broken, no memory to recover it: model=%s reason=%s", model.name, model.broken
    )
    return False


def _may_begin(learner: Learner, replays: ReplayMarks, after: int) -> bool:
    """Return whether to replay after a sequence; mark a model broken if that ended processes."""
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
    logger.error(
        "model broken, its replay ends the server: model=%s reason=%s", model.name, model.broken
    )
    return False


class SkippedSnapshots(NamedTuple):
    """Sequences of the snapshots that recovery passed over.

    Attributes:
        damaged: of those that can never be read again.
        unreadable: of those that cannot be read now, but may be intact.
        foreign: of those of an earlier model that had the same id.
        unusable: of those that are undamaged but no state of this version, with the reasons.
        written: when each of them was saved; None of those that cannot be read.
    """

    damaged: list[int]
    unreadable: list[int]
    foreign: list[int]
    unusable: dict[int, str]
    written: dict[int, datetime | None]

    def add(self, sequence: int, error: DamagedSnapshot, written: datetime | None) -> None:
        """Add a snapshot that could not be restored."""
        self.written[sequence] = written
        if isinstance(error, _UnusableSnapshot):
            self.unusable[sequence] = str(error)
        elif isinstance(error, _ForeignSnapshot):
            self.foreign.append(sequence)
        elif isinstance(error, UnreadableSnapshot):
            self.unreadable.append(sequence)
        else:
            self.damaged.append(sequence)

    def sequences(self) -> set[int]:
        """Return all of them."""
        return {*self.damaged, *self.unreadable, *self.foreign, *self.unusable}

    def faults(self) -> dict[int, SnapshotFault]:
        """Return what is wrong with each of them that no later attempt can use."""
        return {
            **dict.fromkeys(self.damaged, "damaged"),
            **dict.fromkeys(self.foreign, "of-another-model"),
            **dict.fromkeys(self.unusable, "of-another-version"),
        }


def no_snapshots() -> SkippedSnapshots:
    """Return what recovery passed over that passed over nothing."""
    return SkippedSnapshots([], [], [], {}, {})


class _ForeignSnapshot(DamagedSnapshot):
    """A snapshot was saved for an earlier model that had the same id."""


class _UnusableSnapshot(DamagedSnapshot):
    """A snapshot is what was written, but has no state of this version's models."""


def restore_newest(
    learner: Learner, log: LogReader, snapshots: Snapshots, computing: Computing = unshared
) -> SkippedSnapshots:
    """Fill a new learner with the newest undamaged state, if there is any.

    computing: entered to restore a snapshot, while others use the storage.

    Returns the snapshots that were passed over. Raises StartupError, StorageFailed.
    """
    model = learner.model
    rolled_back = rolled_back_at(log)
    skipped = no_snapshots()
    for sequence in saved_sequences(model, snapshots):
        if rolled_back is not None and sequence <= rolled_back:
            break
        try:
            with computing(1):
                state = snapshots.load(model.id, sequence)
                name = snapshots.name(model.id, sequence)
                check_creation(learner, state, name)
                _restore(learner, state, name)
        except DamagedSnapshot as error:
            logger.warning(
                "snapshot passed over, trying an older one: model=%s error=%s", model.name, error
            )
            # One that cannot be read is not set aside, and its time may not be readable either.
            unreadable = isinstance(error, UnreadableSnapshot)
            written = None if unreadable else snapshots.written(model.id, sequence)
            skipped.add(sequence, error, written)
            continue
        _warn_of_other_origin(model, sequence, state)
        model.note_snapshot(sequence, snapshots.written(model.id, sequence))
        return skipped
    if rolled_back is not None:
        with computing(1):
            _restore_rollback(learner, log, snapshots)
        intact = set(saved_sequences(model, snapshots)) - skipped.sequences()
        model.snapshot_sequence = max(intact, default=0)
    return skipped


def _restore(learner: Learner, state: State, name: str) -> None:
    """Restore and publish a state, or change nothing.

    It is published for `engine.serving.RestoredModels`, while the log is replayed.

    name: of the snapshot, for the message.

    Raises _UnusableSnapshot if it is no state of this version's models.
    """
    model = learner.model
    try:
        spec = read_stored_spec(state.plain["spec"])
        # Compiled code does not check what it reads, and another version may have other arrays.
        blank = Learner(Model(model.id, model.name, spec), learner.epoch)
        check_state(blank, state.plain, state.arrays)
        learner.restore(state.plain, state.arrays)
        learner.publish()
    except MemoryError:
        raise
    except Exception as error:  # whatever readers, and learners of others, make of other names
        what = str(error) if isinstance(error, WolfstreamError | WrongArrays) else repr(error)
        raise _UnusableSnapshot(
            name,
            f"is undamaged and has no state of this version's models ({what}): start the version "
            "that wrote it, or delete the model",
        ) from error


def saved_sequences(model: Model, snapshots: Snapshots) -> list[int]:
    """Return the sequences of the snapshots, newest first. Raises StorageFailed."""
    try:
        return snapshots.sequences(model.id)
    except OSError as error:
        raise StorageFailed(
            f"the snapshots of model {model.name!r} cannot be listed now: {error}"
        ) from None


def _restore_rollback(learner: Learner, log: LogReader, snapshots: Snapshots) -> None:
    """Fill a new learner with the state that its model was last rolled back to.

    Raises StartupError, and StorageFailed if the state cannot be read now.
    """
    model, rollback = learner.model, log.rollbacks()[0]
    try:
        state = snapshots.pinned(model.id, rollback.digest)
        source = Learner(Model(model.id, model.name, model.spec), learner.epoch)
        _restore(source, state, rollback.digest)
    except _UnusableSnapshot as error:
        raise StartupError(
            f"model {model.name!r}: the state that it was rolled back to: {error}"
        ) from None
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
    learner.roll_back(source, rollback.description, rollback.epoch)


def check_creation(learner: Learner, state: State, name: str) -> None:
    """Raise DamagedSnapshot for a snapshot of an earlier model that had the same id.

    name: of the snapshot, for the message.
    """
    if state.plain.get("creation", "") != learner.creation:
        raise _ForeignSnapshot(name, "belongs to another model, which had the same number")


def warn_of_other_numerics(learner: Learner, spec: Any) -> None:
    """Warn of a model without a snapshot that was learned with other numerics.

    All of it is replayed, so what it learned may have other bits now.

    spec: as it was stored when the model was made.
    """
    model, changed = learner.model, other_numerics(spec)
    if changed and learner.sequence and model.snapshot_time is None and model.rolled_back is None:
        model.notice = (
            f"it began with {changed}, and all that it has learned is replayed: predictions may "
            "differ from earlier ones"
        )
        logger.warning("predictions may differ: model=%s reason=%s", model.name, model.notice)


def _warn_of_other_origin(model: Model, sequence: int, state: State) -> None:
    """Warn if a replay after this snapshot may give other bits than those acknowledged."""
    changed = origin_difference(state.plain.get("made"))
    if changed:
        model.notice = (
            f"its snapshot of sequence {sequence} was made with {changed}: what was learned after "
            "it is replayed, and predictions may differ from earlier ones in the last bits"
        )
        logger.warning("predictions may differ: model=%s reason=%s", model.name, model.notice)


def check_reached(learner: Learner, log: LogReader, skipped: SkippedSnapshots) -> None:
    """Raise StartupError unless a model has everything that its log and snapshots refer to.

    An uploaded model had learned before its log began: without its snapshot it would seem empty.
    """
    end = max([log.last_event(), *skipped.damaged, *skipped.unreadable, *skipped.unusable])
    if learner.sequence < end:
        raise StartupError(
            f"model {learner.model.name!r}: it was at sequence {end}, but what can be read ends "
            f"at {learner.sequence}. Restore the snapshots of the data directory from a backup "
            "(`wolfstream restore`); going on without them would silently lose acknowledged samples"
        )


def check_complete(learner: Learner, log: LogReader, term: Term, journal: str) -> None:
    """Raise StartupError if more was acknowledged than was recovered.

    Args:
        learner: after its recovery.
        log: that holds its samples.
        term: of its own log.
        journal: the name of the journal, for the message.
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
