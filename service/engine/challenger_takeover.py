"""A challenger of a fleet, as the replica that leads its champion takes it over.

It has no standby. It is what its newest snapshot or rollback has, and learns the rest from
its champion's log once it is led, like a challenger after a restart.
"""

from contextlib import AbstractContextManager, nullcontext
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

# Its log may go on while it is read, by a leader who has not noticed yet that it is replaced.
_ATTEMPTS = 5


class TakenOver(NamedTuple):
    """A challenger whose term has begun.

    Attributes:
        learner: what its snapshot or rollback has.
        term: of its own log.
        own: entries of its own log that are not applied yet.
    """

    learner: Learner
    term: Term
    own: list[Entry]


def take_over(entry: CatalogueEntry, storage: Storage) -> TakenOver:
    """Bring a challenger back, and begin a term in its log.

    entry: its entry in the catalogue. It is broken where it cannot be read. Raises NotLeader,
    StorageFailed, StartupError, OSError.
    """
    spec = read_stored_spec(entry.spec)
    for attempt in range(_ATTEMPTS):
        log = storage.journal.reader(entry.number)
        before = log.n_rollbacks
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
            continue  # rows of its log were purged since it was read
        blocks = log.blocks(learner.sequence)
        own = [] if learner.model.broken else [one for block in blocks for one in block]
        if log.n_rollbacks != before:
            continue  # what it is by now is another state
        epoch = next_term(log.epoch_since(0) or learner.epoch)
        try:
            term = log.begin_term(learner.sequence, epoch)
        except LogDeleted:
            raise
        except NotLeader:
            continue  # its log has gone on
        learner.epoch = epoch
        return TakenOver(learner, term, own)
    raise NotLeader(f"the log of model {entry.name!r} goes on; try again")


def products_as_set(_: int) -> AbstractContextManager[None]:
    """Return a context that changes nothing: replicas compute with one thread anyway."""
    return nullcontext()
