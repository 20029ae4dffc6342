"""A model's log as a fleet has it, and what clients were answered of its samples.

A sample is known by its first number, which no other has.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from service.fleet.jetstream_log import JetStreamLog
from service.fleet.log_index import WITH_SAMPLES, Commit
from service.fleet.opening import Fleet
from service.samples.record import from_record
from service.storage.entries import CatalogueEntry
from tests.hard.fleet_clients import Sent

# Rows with which the term of another writer begins.
BEGIN_A_TERM = frozenset({"created", "epoch"})


def whole_log(fleet: Fleet, model: CatalogueEntry) -> JetStreamLog:
    """Return a reader of all that a log ever had: the servers have refused to purge it."""
    log = fleet.journal.new_log(model.number)
    log.index._add_purge = lambda _: None  # type: ignore[method-assign]
    log.read_on()
    return log


class Log:
    """A model's log from its first message on.

    samples: the first numbers, in their order. terms: the sequence and the epoch of each.
    rollbacks: their records. reached: the sequence at its end.
    """

    def __init__(self, fleet: Fleet, model: CatalogueEntry) -> None:
        self.samples = list[float]()
        self.terms = [(0, model.epoch)]
        self.rollbacks = list[dict[str, Any]]()
        self.faults = list[str]()
        self.reached = 0
        self._writer = b""
        log = whole_log(fleet, model)
        for commit in log.chain.read(0):
            self._take(model.name, commit)
        self.faults += [f"{model.name}: {fault}" for fault in log.faults]

    def _take(self, name: str, commit: Commit) -> None:
        if self._writer not in (b"", commit.writer) and commit.rows[0].kind not in BEGIN_A_TERM:
            self.faults.append(f"{name}: message {commit.first} is of another leader than its term")
        self._writer = commit.writer
        for row in commit.rows:
            if row.kind in WITH_SAMPLES:
                if row.sequence - row.samples != len(self.samples):
                    self.faults.append(f"{name}: entry {row.sequence} follows {len(self.samples)}")
                rows = np.asarray(from_record(row.record).X)
                self.samples += rows[:, 0].tolist()
                self.reached = row.sequence
            elif row.kind == "rollback":
                self.rollbacks.append(json.loads(row.record))
                self.terms.append((row.sequence, self.rollbacks[-1]["epoch"]))
                self.reached = row.sequence
            elif row.kind == "epoch":
                if row.sequence != self.reached:
                    self.faults.append(f"{name}: a term at {row.sequence} of {self.reached}")
                self.terms.append((row.sequence, str(json.loads(row.record)["epoch"])))

    def epochs_at(self, sequence: int) -> set[str]:
        """The epochs in which a sequence may have been answered: its own, and those begun there."""
        before = [epoch for at, epoch in self.terms if at < sequence]
        return {epoch for at, epoch in self.terms if at == sequence} | set(before[-1:])


def lost_or_twice(name: str, log: Log, sent: Sequence[Sent]) -> list[str]:
    """Compare a log with the requests of its samples, and their answers."""
    faults = list[str]()
    places = defaultdict[float, list[int]](list)
    for place, sample in enumerate(log.samples):
        places[sample].append(place)
    for one in sent:
        found = [places.get(sample, []) for sample in one.samples]
        if any(len(of) > 1 for of in found):
            faults.append(f"{name}: {one.key or 'a request'} was learned twice: {found}")
        elif one.sequence is not None:
            begin = one.sequence - len(one.samples)
            if found != [[place] for place in range(begin, one.sequence)]:
                faults.append(f"{name}: what was acknowledged at {one.sequence} is at {found}")
            elif one.epoch not in log.epochs_at(one.sequence):
                faults.append(
                    f"{name}: sequence {one.sequence} was answered in epoch {one.epoch}, and "
                    f"stands in {log.epochs_at(one.sequence)}"
                )
        elif len({len(of) for of in found}) > 1:
            faults.append(f"{name}: a part of {one.key or 'a request'} was learned: {found}")
    known = {sample for one in sent for sample in one.samples}
    if strangers := set(log.samples) - known:
        faults.append(f"{name}: nobody has sent {sorted(strangers)[:5]}")
    return faults
