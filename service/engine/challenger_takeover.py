"""Takeover of a challenger, by the replica that leads its champion.

A challenger has no standby. It starts with its newest snapshot or rollback and, once it is led,
learns the rest from its champion's log, as after a restart.
"""

from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import NamedTuple

from wolfstream.service.engine.recovery import bring_back
from wolfstream.service.errors import NotLeader
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import CatalogueEntry, Entry, next_term
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.journal import LogDeleted
from wolfstream.service.storage.log import LogGap
from wolfstream.service.storage.term import Term

# The log may grow while it is read, by a leader that has not noticed its replacement yet.
_ATTEMPTS = 5


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
    spec = read_stored_spec(entry.spec)
    for attempt in range(_ATTEMPTS):
        log = storage.journal.reader(entry.number)
        n_rollbacks = log.n_rollbacks
        learner = Learner(Model(entry.number, entry.name, spec), entry.epoch)
        try:
            bring_back(
                learner,
                log,
                storage,
                products_as_set,
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
            term = log.begin_term(learner.sequence, epoch)
        except LogDeleted:
            raise
        except NotLeader:
            continue  # the log has grown
        learner.epoch = epoch
        return ChallengerTerm(learner, term, entries)
    raise NotLeader(f"the log of model {entry.name!r} goes on; try again")


def products_as_set(_: int) -> AbstractContextManager[None]:
    """Return a context that changes nothing: replicas compute with one thread anyway."""
    return nullcontext()
