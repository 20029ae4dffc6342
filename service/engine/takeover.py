"""Takeover: how a replica of a fleet comes to lead a model that another one led.

A standby is a copy of the model that learns the other replica's log as it grows, so that little of
it is left to read when the model is to be led here.

A challenger has no standby. It starts with its newest snapshot or rollback and, once it is led,
learns the rest from its champion's log, as after a restart.

Replicas compute with one thread, so nothing here sets the number of threads.
"""

import logging
from itertools import chain
from typing import NamedTuple

from wolfstream.service.errors import NotLeader, NotReady, StartupError, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.recovery.model_recovery import (
    bring_back,
    check_complete,
    new_learner,
    no_snapshots,
    saved_sequences,
    set_aside,
    stop_faulty,
    warn_of_other_numerics,
)
from wolfstream.service.recovery.replay import replay, unshared
from wolfstream.service.storage.entries import CatalogueEntry, Entry, KeyedRequest, next_term
from wolfstream.service.storage.interfaces import LogDeleted, Storage
from wolfstream.service.storage.log import LogGap, LogReader
from wolfstream.service.storage.term import Term, UnownedLog

logger = logging.getLogger(__name__)

# The log may grow while the rest of it is read, by a leader that has not noticed its replacement
# yet. After this many attempts the leader may keep it.
_ATTEMPTS = 5
# If the samples before the newest snapshot would take this long to learn, the snapshot is loaded
# instead, which takes about 0.05 s.
_WORTH_SECONDS = 1.0


class Standby:
    """A model that this replica stands by for. Used by one thread at a time.

    Attributes:
        entry: of the model in the catalogue.
        learner: has what was learned of the log so far.
    """

    def __init__(self, entry: CatalogueEntry, storage: Storage) -> None:
        """Begin with a model that has learned nothing; `catch_up` learns.

        Raises StartupError for a spec that this replica cannot use.
        """
        self.entry = entry
        self._storage = storage
        self._log: UnownedLog | None = None  # as far as it was read; None once led
        # Whether the newest snapshot was restored when the log was last read from its beginning.
        # Others that its writer saves are passed over, too, and all would be learned each time.
        self._restores_newest = True
        self.learner = self._begin()

    def _begin(self) -> Learner:
        # sequence -> a request that the leader may not have answered in the log yet
        self._answered = dict[int, KeyedRequest]()
        self._skipped = no_snapshots()  # passed over, which are the leader's until this one leads
        self._n_rollbacks = 0  # of the log, when the learner was filled
        self._begun = False  # whether the learner is a state of the log, and may go on in it
        learner = new_learner(self.entry)
        self._record_losses(learner)
        return learner

    @property
    def progress(self) -> tuple[int, int]:
        """The number of samples learned so far, and of those in the log; on any thread."""
        learned = self.learner.sequence
        return learned, learned if self._log is None else max(learned, self._log.end())

    def _record_losses(self, learner: Learner) -> None:
        """Let the model record what its challengers compare themselves with, if it has any."""
        if self._storage.catalogue.is_followed(self.entry.number):
            learner.record_losses()

    def catch_up(self) -> None:
        """Learn everything that the log has by now, or what comes after a snapshot far ahead.

        Raises StartupError, StorageFailed, and NotReady before the next block once the process
        stops.
        """
        if self._log is not None and self._begun and not self.learner.model.broken:
            self._record_losses(self.learner)
            try:
                self._log.read_on()
                skips = self._has_snapshot_ahead(self._log)
                if not skips:
                    self._store_answers(self._log, self._replay(self._log))
            except StartupError as error:  # the leader has purged what was not read yet
                logger.info(
                    "standby reads its snapshot again: model=%s error=%s", self.entry.name, error
                )
                self._begun = False
            except (StorageFailed, NotReady):  # the answers of what was learned are lost
                self._begun = False
                raise
            else:
                self._begun = not skips and self._log.n_rollbacks == self._n_rollbacks
        for attempt in range(_ATTEMPTS):
            if self._log is None or not self._begun or self.learner.model.broken:
                self._load(may_be_purged=attempt < _ATTEMPTS - 1)
            if self._begun:
                self.learner.publish()
                return
        raise StorageFailed(f"model {self.entry.name!r} is rolled back again and again; try again")

    def _has_snapshot_ahead(self, log: LogReader) -> bool:
        """Return whether the samples before the newest snapshot would take long to learn."""
        learner = self.learner
        if not self._restores_newest:
            return False
        seconds = learner.model.learning_time.seconds_per_sample(learner.model.spec.serve) or 0.0
        worth = _WORTH_SECONDS / max(seconds, 1e-9)
        if log.end() - learner.sequence < worth:
            return False
        saved = saved_sequences(learner.model, self._storage.snapshots)
        return max(saved, default=0) - learner.sequence >= worth

    def _load(self, *, may_be_purged: bool) -> None:
        """Learn everything from the newest snapshot or rollback on.

        It does not count as begun if the log has another rollback by then: what comes after that
        builds on the state that it restores.

        may_be_purged: whether missing records count as purged since the log was read. Then it does
            not count as begun either.
        """
        self.learner = self._begin()
        log = self._log = self._storage.journal.reader(self.entry.number)
        self._n_rollbacks = log.n_rollbacks
        newest = max(saved_sequences(self.learner.model, self._storage.snapshots), default=0)
        try:
            keys, self._skipped = bring_back(
                self.learner,
                log,
                self._storage,
                unshared,
                may_be_purged=may_be_purged,
            )
        except LogGap:
            self._begun = False
            return
        self._restores_newest = self.learner.model.snapshot_sequence >= newest
        warn_of_other_numerics(self.learner, self.entry.spec)
        self._store_answers(log, keys)
        self._begun = log.n_rollbacks == self._n_rollbacks

    def _replay(self, log: LogReader) -> list[KeyedRequest]:
        """Learn what comes next in the log; return requests whose answers it lacks, answered."""
        blocks = replay(self.learner, log, unshared, may_begin=self._may_begin)
        return [request for block in blocks for request in block]

    def _may_begin(self, _: int) -> bool:
        """Raise NotReady once the process stops."""
        self._storage.journal.replays.check()
        return True

    def begin_term(self) -> Term:
        """Begin a term at the end of the log, all of which is learned by then, and return it.

        Raises NotLeader if the log keeps growing; StorageFailed, StartupError.
        """
        log = self._log
        assert log is not None, "catch up first"
        learner = self.learner
        for _ in range(_ATTEMPTS):
            if log.faults:
                stop_faulty(learner.model, log)
            epoch = next_term(log.epoch_since(0) or learner.epoch)
            # The log of a broken model goes on after what was learned.
            end = log.end() if learner.model.broken else 0
            try:
                term = log.begin_term(max(end, learner.sequence), epoch)
            except LogDeleted:
                raise
            except NotLeader:
                log.read_on()
                self._store_answers(log, self._replay(log))
                if log.n_rollbacks != self._n_rollbacks:
                    self._begun = False
                    break
            else:
                self._log, self._begun = None, False
                learner.epoch = epoch
                self._check(log, term)
                set_aside(self._skipped, learner.model, self._storage.snapshots)
                learner.publish()
                return term
        raise NotLeader(f"the log of model {self.entry.name!r} goes on; try again")

    def answered(self, log: LogReader) -> list[KeyedRequest]:
        """Return the requests whose answers the log lacks, with their answers."""
        unanswered = log.unanswered(0)
        sequences = [row.sequence for row in unanswered if row.sequence in self._answered]
        return [self._answered[sequence] for sequence in sequences]

    def _store_answers(self, log: LogReader, requests: list[KeyedRequest]) -> None:
        """Store answers of a replay, and forget those that the log has by now."""
        self._answered |= {row.sequence: row for row in requests}
        if self._answered:
            self._answered = {row.sequence: row for row in self.answered(log)}

    def _check(self, log: LogReader, term: Term) -> None:
        """Mark the model broken unless the log has everything that was acknowledged."""
        try:
            check_complete(self.learner, log, term, self._storage.journal.name)
        except StartupError as error:
            self.learner.model.broken = str(error)
            logger.error("model broken, log incomplete: model=%s error=%s", self.entry.name, error)


class ChallengerTerm(NamedTuple):
    """A challenger whose term has begun.

    Attributes:
        learner: restored from its snapshot or rollback.
        term: of its own log.
        entries: of its own log, not applied yet.
    """

    learner: Learner
    term: Term
    entries: list[Entry]


def take_over(entry: CatalogueEntry, storage: Storage) -> ChallengerTerm:
    """Restore a challenger and begin a term of its log. It is broken if it cannot be read.

    entry: of the challenger in the catalogue.

    Raises NotLeader, StorageFailed, StartupError, OSError.
    """
    for attempt in range(_ATTEMPTS):
        log = storage.journal.reader(entry.number)
        n_rollbacks = log.n_rollbacks
        learner = new_learner(entry)
        try:
            _, skipped = bring_back(
                learner,
                log,
                storage,
                unshared,
                entry.follows,
                may_be_purged=attempt < _ATTEMPTS - 1,
            )
        except LogGap:
            continue  # records were purged since the log was read
        blocks = log.blocks(learner.sequence)
        entries = [] if learner.model.broken else list(chain.from_iterable(blocks))
        if log.n_rollbacks != n_rollbacks:
            continue  # a rollback has replaced the state that was restored
        epoch = next_term(log.epoch_since(0) or learner.epoch)
        try:
            # The log of a broken challenger may go on after what was learned.
            end = log.end() if learner.model.broken else 0
            term = log.begin_term(max(end, learner.sequence), epoch)
        except LogDeleted:
            raise
        except NotLeader:
            continue  # the log has grown
        learner.epoch = epoch
        set_aside(skipped, learner.model, storage.snapshots)
        return ChallengerTerm(learner, term, entries)
    raise NotLeader(f"the log of model {entry.name!r} goes on; try again")
