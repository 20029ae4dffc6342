"""A model's log as a fleet has it, and what clients were answered of its samples.

A sample is known by its first number, which no other has.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.hard.fleet_clients import Sent
from wolfstream.service.fleet.jetstream_log import JetStreamLog
from wolfstream.service.fleet.log_index import WITH_SAMPLES, Commit
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.samples.record import from_record
from wolfstream.service.storage.entries import CatalogueEntry

# Rows with which the term of another writer begins.
BEGIN_A_TERM = frozenset({"created", "epoch"})
# Commits before and after a fault that are printed, and acknowledgements.
_SHOWN = 5


def whole_log(fleet: Fleet, model: CatalogueEntry) -> JetStreamLog:
    """Return a reader of all that a log ever had: the servers have refused to purge it."""
    log = fleet.journal.new_log(model.number)
    log.index._add_purge = lambda _: None  # type: ignore[method-assign]
    log.read_on()
    return log


class Log:
    """A model's log from its first message on.

    samples: the first numbers, in their order. terms: the sequence and the epoch of each.
    rollbacks: their records. reached: the sequence at its end. lines: what is printed of each
    commit, and the sequence that it reached.
    """

    def __init__(self, fleet: Fleet, model: CatalogueEntry) -> None:
        self.samples = list[float]()
        self.terms = [(0, model.epoch)]
        self.rollbacks = list[dict[str, Any]]()
        self.faults = list[str]()
        self.reached = 0
        self.lines = list[tuple[int, str]]()
        self._writer = b""
        log = whole_log(fleet, model)
        wrong = list[tuple[int, str]]()
        for commit in log.chain.read(0):
            wrong += [(len(self.lines), fault) for fault in self._take(model.name, commit)]
            rows = ", ".join(f"{row.kind} {row.sequence}" for row in commit.rows)
            line = f"message {commit.first} after {commit.previous} by {commit.writer.hex()} in "
            self.lines.append((self.reached, f"{line}{self.terms[-1][1]}: {rows}"))
        self.faults += [f"{fault}\n{self._around(place)}" for place, fault in wrong]
        self.faults += [f"{model.name}: {fault}" for fault in log.faults]

    def around(self, sequence: int) -> str:
        """Return the commits around the one that reached a sequence, each with its writer."""
        places = (place for place, (reached, _) in enumerate(self.lines) if reached >= sequence)
        return self._around(next(places, len(self.lines) - 1))

    def _around(self, place: int) -> str:
        first = max(place - _SHOWN, 0)
        shown = enumerate(self.lines[first : place + _SHOWN + 1], first)
        return "\n".join(f"  {'>' if at == place else ' '} {line}" for at, (_, line) in shown)

    def _take(self, name: str, commit: Commit) -> Iterator[str]:
        """Take a commit, and yield what is wrong with it."""
        if self._writer not in (b"", commit.writer) and commit.rows[0].kind not in BEGIN_A_TERM:
            yield f"{name}: message {commit.first} is of another leader than its term"
        self._writer = commit.writer
        for row in commit.rows:
            if row.kind in WITH_SAMPLES:
                if row.sequence - row.samples != len(self.samples):
                    yield f"{name}: entry {row.sequence} follows {len(self.samples)}"
                rows = np.asarray(from_record(row.record).X)
                self.samples += rows[:, 0].tolist()
                self.reached = row.sequence
            elif row.kind == "rollback":
                self.rollbacks.append(json.loads(row.record))
                self.terms.append((row.sequence, self.rollbacks[-1]["epoch"]))
                self.reached = row.sequence
            elif row.kind == "epoch":
                if row.sequence != self.reached:
                    yield f"{name}: a term at {row.sequence} of {self.reached}"
                self.terms.append((row.sequence, str(json.loads(row.record)["epoch"])))

    def epochs_at(self, sequence: int) -> set[str]:
        """The epochs in which a sequence may have been answered: its own, and those begun there."""
        before = [epoch for at, epoch in self.terms if at < sequence]
        return {epoch for at, epoch in self.terms if at == sequence} | set(before[-1:])


def lost_or_twice(name: str, log: Log, sent: Sequence[Sent]) -> list[str]:
    """Compare a log with the requests of its samples, and their answers.

    With each fault comes what is stored around it, and what was acknowledged.
    """
    faults = list[tuple[int, str]]()
    places = defaultdict[float, list[int]](list)
    for place, sample in enumerate(log.samples):
        places[sample].append(place)
    for one in sent:
        found = [places.get(sample, []) for sample in one.samples]
        if any(len(of) > 1 for of in found):
            fault = f"{name}: {one.key or 'a request'} was learned twice: {found}"
            faults.append((max(place for of in found for place in of) + 1, fault))
        elif one.sequence is not None:
            begin = one.sequence - len(one.samples)
            if found != [[place] for place in range(begin, one.sequence)]:
                fault = f"{name}: what was acknowledged at {one.sequence} is at {found}"
                faults.append((one.sequence, fault))
            elif one.epoch not in log.epochs_at(one.sequence):
                fault = (
                    f"{name}: sequence {one.sequence} was answered in epoch {one.epoch}, and "
                    f"stands in {log.epochs_at(one.sequence)}"
                )
                faults.append((one.sequence, fault))
        elif len({len(of) for of in found}) > 1:
            fault = f"{name}: a part of {one.key or 'a request'} was learned: {found}"
            faults.append((next(of[0] + 1 for of in found if of), fault))
    known = {sample for one in sent for sample in one.samples}
    if strangers := set(log.samples) - known:
        fault = f"{name}: nobody has sent {sorted(strangers)[:5]}"
        faults.append((places[min(strangers)][0] + 1, fault))
    return [f"{fault}\n{log.around(at)}\n{_answered(at, sent)}" for at, fault in faults]


def _answered(sequence: int, sent: Sequence[Sent]) -> str:
    """Return what was acknowledged around a sequence, a line for each request."""
    known = sorted(
        (one.sequence, one.epoch, len(one.samples), one.key)
        for one in sent
        if one.sequence is not None
    )
    at = sum(one[0] < sequence for one in known)
    return "\n".join(
        f"    acknowledged: {n} samples up to {last} in {epoch}, {key or 'without a key'}"
        for last, epoch, n, key in known[max(at - _SHOWN, 0) : at + _SHOWN]
    )
