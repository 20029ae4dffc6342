"""A replica without learners: what it leads and follows is a list of records."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.service.fleet_schedules.checker import Broken, Learned
from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.opening import Fleet, open_fleet
from wolfstream.service.storage.entries import CatalogueEntry, Entry
from wolfstream.service.storage.log import LogReader, rolled_back_at
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State, UnreadableSnapshot
from wolfstream.service.storage.term import Part, Term


class Learner:
    """What a model has learned. sequence: its last one. records: each with its sequence."""

    def __init__(self, learned: Learned) -> None:
        self.sequence, self.records = learned

    @property
    def learned(self) -> Learned:
        return self.sequence, self.records

    def apply(self, blocks: Iterable[list[Entry]]) -> None:
        """Learn what comes next. Raises Broken where that cannot come next."""
        for block in blocks:
            for entry in block:
                if entry.kind != "samples":
                    continue
                if entry.sequence - entry.samples != self.sequence:
                    raise Broken(f"{entry.sequence} is replayed after {self.sequence}")
                record = int(entry.record.partition(b" ")[0])
                self.sequence = entry.sequence
                self.records = (*self.records, (entry.sequence, record))

    def state(self) -> State:
        """Return the state as snapshots have it."""
        plain = {"sequence": self.sequence, "learned": [list(one) for one in self.records]}
        return State(plain, {"X": np.zeros(300)})


def learner_of(state: State) -> Learner:
    """Return a learner of a state."""
    learned = tuple((sequence, record) for sequence, record in state.plain["learned"])
    return Learner((state.plain["sequence"], learned))


@dataclass
class Standby:
    """A model that is followed.

    log: what was read of it; None before and after. n_rollbacks: how many there were by then.
    """

    entry: CatalogueEntry
    learner: Learner
    log: LogReader | None = None
    n_rollbacks: int = 0


@dataclass(eq=False)
class LedModel:
    """A model that is led, or was.

    unwritten: the answers that are not in the log yet, by their sequences and keys.
    sent: the commit in doubt. snapshot: the sequence of the newest one.
    rows: the number of rows that were predicted. broken: whether a replay was given up.
    """

    entry: CatalogueEntry
    learner: Learner
    term: Term
    unwritten: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    sent: Part | None = None
    snapshot: int = 0
    rows: int = 0
    broken: bool = False


class Replica:
    """One of the replicas, with the models that it leads and follows, by their numbers."""

    def __init__(self, name: str, nats: NatsConnection, folder: Path) -> None:
        folder.mkdir()
        self.name = name
        self.fleet: Fleet = open_fleet(nats, folder, snapshots_kept=3)
        self.led: dict[int, LedModel] = {}
        self.standby: dict[int, Standby] = {}

    def catch_up(self, entry: CatalogueEntry) -> Standby:
        """Follow a model as far as its log goes. Raises StorageFailed, StartupError."""
        standby = self.standby.setdefault(entry.number, Standby(entry, Learner((0, ()))))
        if standby.log is not None:
            log = standby.log
            try:
                log.read_on()
                if log.n_rollbacks == standby.n_rollbacks:
                    standby.learner.apply(log.blocks(standby.learner.sequence))
                    if log.n_rollbacks == standby.n_rollbacks:
                        return standby
            except StartupError:  # the leader has purged what was not read
                pass
            except StorageFailed:
                standby.log = None
                raise
        standby.log = None
        log = self.fleet.journal.reader(entry.number)
        n_rollbacks = log.n_rollbacks
        learner = self.restored(entry.number, log)
        learner.apply(log.blocks(learner.sequence))
        if log.n_rollbacks != n_rollbacks:
            raise StorageFailed("it was rolled back; try again")
        standby.log, standby.learner, standby.n_rollbacks = log, learner, n_rollbacks
        return standby

    def restored(self, model: int, log: LogReader) -> Learner:
        """Return a learner of the newest state. Raises StorageFailed."""
        snapshots, at = self.fleet.snapshots, rolled_back_at(log)
        try:
            for sequence in snapshots.sequences(model):
                if at is None or sequence > at:
                    return learner_of(snapshots.load(model, sequence))
            if at is not None:
                learner = learner_of(snapshots.pinned(model, log.rollbacks()[0].digest))
                return Learner((at, learner.records))
        except UnreadableSnapshot as error:
            raise StorageFailed(str(error)) from None
        except DamagedSnapshot as error:
            raise Broken(f"a state is damaged: {error}") from None
        except OSError as error:
            raise StorageFailed(str(error)) from None
        return Learner((0, ()))

    def entry_of(self, model: int, learner: Learner, kind: Any, **more: Any) -> Entry:
        """Return an entry without samples."""
        at = learner.sequence
        made = Entry(model, at, 0, at, "asset", 1, b"", kind)
        return made._replace(**more)
