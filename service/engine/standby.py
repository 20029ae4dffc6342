"""A model that another replica leads, as far as its log was read here, to be ready to lead it."""

import logging

from wolfstream.service.engine.challenger_takeover import products_as_set
from wolfstream.service.engine.recovery import (
    bring_back,
    check_complete,
    note_beginning,
    note_faults,
)
from wolfstream.service.engine.replay import replay
from wolfstream.service.errors import NotLeader, NotReady, StartupError, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import CatalogueEntry, KeyedRequest, next_term
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.journal import LogDeleted
from wolfstream.service.storage.log import LogGap, LogReader
from wolfstream.service.storage.term import Term, UnownedLog

logger = logging.getLogger(__name__)

# The log may go on while the rest of it is read; a leader that still writes is let go on then.
_ATTEMPTS = 5
# Who does not keep up loads a snapshot that saves so much learning; to load one takes about 0.05 s.
_WORTH_SECONDS = 1.0


class Standby:
    """A model that this replica stands by for. Used by one thread at a time.

    Attributes:
        entry: its entry in the catalogue.
        learner: what was learned so far.
    """

    def __init__(self, entry: CatalogueEntry, storage: Storage) -> None:
        """Begin with a model that has learned nothing; `catch_up` learns."""
        self.entry = entry
        self._storage = storage
        self._log: UnownedLog | None = None
        self.learner = self._begin()

    def _begin(self) -> Learner:
        spec = read_stored_spec(self.entry.spec)
        self._found = dict[int, KeyedRequest]()
        self._n_rollbacks = 0
        self._begun = False
        learner = Learner(Model(self.entry.number, self.entry.name, spec), self.entry.epoch)
        self._keep_losses(learner)
        return learner

    @property
    def progress(self) -> tuple[int, int]:
        """How many samples were learned so far, and how many the log has; on any thread."""
        learned = self.learner.sequence
        return learned, learned if self._log is None else max(learned, self._log.end())

    def _keep_losses(self, learner: Learner) -> None:
        """Have a model keep what its challengers compare themselves with, if it has any."""
        if self._storage.catalogue.is_followed(self.entry.number):
            learner.record_losses()

    def catch_up(self) -> None:
        """Learn everything that the log has by now, or what comes after a snapshot far ahead.

        Raises StartupError, StorageFailed, and NotReady before the next block once the process
        stops.
        """
        if self._log is not None and self._begun and not self.learner.model.broken:
            self._keep_losses(self.learner)
            try:
                self._log.read_on()
                skips = self._has_snapshot_ahead(self._log)
                if not skips:
                    self._note(self._log, self._replay(self._log))
            except StartupError as error:  # the leader has purged what was not read
                logger.info("model %s: read again from its snapshot: %s", self.entry.name, error)
                self._begun = False
            except (StorageFailed, NotReady):  # keys of what was learned are not noted
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
        """Return whether what comes before the newest snapshot would take long to learn."""
        learner = self.learner
        of_sample = learner.model.learning_time.of_sample(learner.model.spec.serve) or 0.0
        worth = _WORTH_SECONDS / max(of_sample, 1e-9)
        if log.end() - learner.sequence < worth:
            return False
        saved = self._storage.snapshots.sequences(learner.model.id)
        return max(saved, default=0) - learner.sequence >= worth

    def _load(self, *, may_be_purged: bool) -> None:
        """Learn everything from the newest snapshot or rollback on.

        may_be_purged: whether rows that are missing count as purged since the log was read. Then it
        has not begun either.

        It has not begun where the log has one more rollback by the end of it: what comes after that
        is for the state that it restores.
        """
        self.learner = self._begin()
        log = self._log = self._storage.journal.reader(self.entry.number)
        self._n_rollbacks = log.n_rollbacks
        try:
            keys = bring_back(
                self.learner,
                log,
                self._storage,
                products_as_set,
                may_be_purged=may_be_purged,
            )
        except LogGap:
            self._begun = False
            return
        note_beginning(self.learner, self.entry.spec)
        self._note(log, keys)
        self._begun = log.n_rollbacks == self._n_rollbacks

    def _replay(self, log: LogReader) -> list[KeyedRequest]:
        """Learn what comes next in the log; keys that had no answers, with them."""
        blocks = replay(self.learner, log, products_as_set, may_begin=self._may_begin)
        return [row for found in blocks for row in found]

    def _may_begin(self, _: int) -> bool:
        """Raise NotReady once the process stops."""
        self._storage.journal.replays.check()
        return True

    def begin_term(self) -> Term:
        """Write that this replica leads from the log's end on, which is learned by then.

        Returns the term, which has the log from now on. Raises NotLeader if that cannot be
        reached, StorageFailed, StartupError.
        """
        log = self._log
        assert log is not None, "catch up first"
        learner = self.learner
        for _ in range(_ATTEMPTS):
            if log.faults:
                note_faults(learner.model, log)
            epoch = next_term(log.epoch_since(0) or learner.epoch)
            # A broken model's journal goes beyond what was learned.
            end = log.end() if learner.model.broken else 0
            try:
                term = log.begin_term(max(end, learner.sequence), epoch)
            except LogDeleted:
                raise
            except NotLeader:
                log.read_on()
                self._note(log, self._replay(log))
                if log.n_rollbacks != self._n_rollbacks:
                    self._begun = False
                    break
            else:
                self._log, self._begun = None, False
                learner.epoch = epoch
                self._check(log, term)
                learner.publish()
                return term
        raise NotLeader(f"the log of model {self.entry.name!r} goes on; try again")

    def answered(self, log: LogReader) -> list[KeyedRequest]:
        """Return the keys whose answers are not in the log, with their answers."""
        unanswered = log.unanswered(0)
        return [self._found[row.sequence] for row in unanswered if row.sequence in self._found]

    def _note(self, log: LogReader, found: list[KeyedRequest]) -> None:
        self._found |= {row.sequence: row for row in found}
        if self._found:
            self._found = {row.sequence: row for row in self.answered(log)}

    def _check(self, log: LogReader, term: Term) -> None:
        """Let the model be broken unless the log has everything that was acknowledged."""
        try:
            check_complete(self.learner, log, term, self._storage.journal.name)
        except StartupError as error:
            self.learner.model.broken = str(error)
            logger.error("model %s is broken: %s", self.entry.name, error)
