"""Verification of a fleet's logs: what cannot be in one, and is, and what to do about it.

Everything is read, and nothing is written, so replicas may learn meanwhile.
"""

from collections.abc import Iterator

from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.fleet.jetstream_log import JetStreamLog
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.log import LogGap
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, UnreadableSnapshot

_REPAIR = (
    "Nothing of it is learned until somebody decides: POST /v1/models/{name}/rollback goes back to "
    "a snapshot of before (GET /v1/models/{name}/history lists them), and what was learned after "
    "it has to be sent again; or DELETE the model. `wolfstream fleet export` keeps a copy first"
)


def verify(fleet: Fleet) -> Iterator[tuple[str, list[str]]]:
    """Yield each model's name, and what is wrong with its log, a sentence for each fault."""
    for entry in fleet.catalogue.models():
        yield entry.name, list(_faults_of(entry, fleet))


def _faults_of(entry: CatalogueEntry, fleet: Fleet) -> Iterator[str]:
    try:
        log = fleet.journal.whole_log(entry.number)
    except StartupError as error:
        yield f"{error}. Restore the fleet from a backup (`wolfstream restore`, `fleet import`)"
        return
    except StorageFailed as error:
        yield f"{error.detail}; try again"
        return
    repair = _REPAIR.format(name=entry.name)
    for fault in log.faults:
        yield f"{fault}. {repair}"
    if log.deleted:
        yield "its deletion has not come to its end: the next call to the model ends it"
        return
    yield from _faults_of_states(entry, log, fleet, repair)


def _faults_of_states(
    entry: CatalogueEntry, log: JetStreamLog, fleet: Fleet, repair: str
) -> Iterator[str]:
    """Yield what is wrong with the states that a log needs."""
    for rollback in log.rollbacks()[:1]:
        try:
            fleet.snapshots.pinned_content(entry.number, rollback.digest)
        except UnreadableSnapshot as error:
            yield f"the state that it was rolled back to: {error}; try again"
        except DamagedSnapshot as error:
            yield f"the state that it was rolled back to: {error}. {repair}"
    try:
        newest = max(fleet.snapshots.sequences(entry.number), default=0)
    except OSError as error:
        yield f"its snapshots could not be listed: {error}; try again"
        return
    try:
        log.read_all()  # a snapshot may have been saved since
    except LogGap:  # and the log was purged
        log = fleet.journal.whole_log(entry.number)
    last = max(log.end(), log.last_event())
    if entry.follows is None and newest > last:
        yield f"its snapshot of sequence {newest} is ahead of its log, at {last}. {repair}"
