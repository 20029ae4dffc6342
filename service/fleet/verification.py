"""Verifies a fleet's logs: finds their faults, and says what to do about each.

It reads everything and writes nothing, so replicas may learn meanwhile.
"""

from collections.abc import Iterator

from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.fleet.jetstream_log import JetStreamLog
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.log import LogGap
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, UnreadableSnapshot

_REPAIR = (
    "The model learns nothing more until you decide: POST /v1/models/{name}/rollback returns to an "
    "earlier snapshot (GET /v1/models/{name}/history lists them), and what was learned after it "
    "has to be sent again; or DELETE the model. Keep a copy first with `wolfstream fleet export`"
)


def verify(fleet: Fleet) -> Iterator[tuple[str, list[str]]]:
    """Yield (name, faults) of each model; a fault is a sentence that says what to do."""
    for entry in fleet.catalogue.models():
        yield entry.name, list(_faults(entry, fleet))


def _faults(entry: CatalogueEntry, fleet: Fleet) -> Iterator[str]:
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
        yield "its deletion is incomplete: the next call to the model completes it"
        return
    yield from _state_faults(entry, log, fleet, repair)


def _state_faults(
    entry: CatalogueEntry, log: JetStreamLog, fleet: Fleet, repair: str
) -> Iterator[str]:
    """Yield the faults of the states that a log needs."""
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
        log.read_all()  # a snapshot may have been saved since the log was read
    except LogGap:  # and the log may have been purged
        log = fleet.journal.whole_log(entry.number)
    last = max(log.end(), log.last_event())
    if entry.follows is None and newest > last:
        yield f"its snapshot of sequence {newest} is ahead of its log, at {last}. {repair}"
