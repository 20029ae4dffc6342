"""Checks a fleet by comparing its log with the answers that clients got.

It does not know what failed, or when. A sample is known by its first number, which no other has.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np

from service.engine.recovery import replay
from service.fleet.log_index import WITH_SAMPLES, Commit
from service.fleet.opening import Fleet, connect, open_fleet
from service.model.learner import Learner
from service.model.live import Model
from service.samples.record import from_record
from service.spec.stored import read_stored_spec
from service.storage.entries import CatalogueEntry
from tests.hard.fleet_clients import PROBE, Clients, Read, Sent
from tests.hard.fleet_pairs import check_pair


class Findings(NamedTuple):
    """The numbers of comparisons, and everything that contradicts a promise."""

    figures: dict[str, int]
    faults: list[str]


def check(servers: Sequence[str], folder: Path, clients: Clients) -> Findings:
    """Compare a fleet's log with the answers of its clients."""
    sent, read = clients.sent, clients.read
    fleet = open_fleet(connect(servers, 1 << 30, 1 << 30), folder)
    faults, figures = list[str](), Counter[str]()
    try:
        models = fleet.storage.catalogue.models()
        pairs = {one.follows: one for one in models if one.follows is not None}
        for model in models:
            if model.follows is not None:
                continue
            of_model = [one for one in sent if one.model == model.name]
            log = _Log(fleet, model)
            faults += log.faults + _lost_or_twice(model.name, log, of_model)
            reads = [one for one in read if one.model == model.name]
            if model.number in pairs:
                below = pairs[model.number]
                found, exchanges = check_pair(fleet, model, below, read, clients.promoted, PROBE)
                faults += found
                figures["exchanges in the log"] += exchanges
                reads += [one for one in read if one.model == below.name]
            else:
                faults += _other_bits(fleet, model, log, reads)
            figures["samples in the log"] += len(log.samples)
            figures["terms"] += len(log.terms)
            figures["samples acknowledged"] += sum(len(o.samples) for o in of_model if o.sequence)
            figures["requests without an answer"] += sum(one.sequence is None for one in of_model)
            figures["predictions compared"] += len(reads)
    finally:
        fleet.storage.close()
    return Findings(dict(figures), faults)


class _Log:
    """A model's log from its first message on.

    samples: the first numbers, in their order. terms: the sequence and the epoch of each.
    """

    def __init__(self, fleet: Fleet, model: CatalogueEntry) -> None:
        self.samples = list[float]()
        self.terms = [(0, model.epoch)]
        self.faults = list[str]()
        self._writer = b""
        for commit in fleet.logs.of(model.number).chain.read(0):
            self._take(model.name, commit)

    def _take(self, name: str, commit: Commit) -> None:
        if self._writer not in (b"", commit.writer) and commit.rows[0].kind != "epoch":
            self.faults.append(f"{name}: message {commit.first} is of another leader than its term")
        self._writer = commit.writer
        for row in commit.rows:
            if row.kind in WITH_SAMPLES:
                if row.sequence - row.samples != len(self.samples):
                    self.faults.append(f"{name}: entry {row.sequence} follows {len(self.samples)}")
                rows = np.asarray(from_record(row.record).X)
                self.samples += rows[:, 0].tolist()
            elif row.kind == "rollback":
                self.terms.append((row.sequence, str(json.loads(row.record)["epoch"])))
            elif row.kind == "epoch":
                if row.sequence != len(self.samples):
                    self.faults.append(f"{name}: a term at {row.sequence} of {len(self.samples)}")
                self.terms.append((row.sequence, str(json.loads(row.record)["epoch"])))

    def epochs_at(self, sequence: int) -> set[str]:
        """The epochs in which a sequence may have been answered: its own, and those begun there."""
        before = [epoch for at, epoch in self.terms if at < sequence]
        return {epoch for at, epoch in self.terms if at == sequence} | set(before[-1:])


def _lost_or_twice(name: str, log: _Log, sent: list[Sent]) -> list[str]:
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
            elif one.epoch not in log.epochs_at(one.sequence) and one.key is None:
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


def _other_bits(fleet: Fleet, model: CatalogueEntry, log: _Log, reads: list[Read]) -> list[str]:
    """Predictions that the log's prefix of their sequence does not make."""
    by_sequence = defaultdict[int, list[Read]](list)
    for one in reads:
        by_sequence[one.sequence].append(one)
    learner = Learner(Model(model.number, model.name, read_stored_spec(model.spec)), model.epoch)
    faults = list[str]()

    def compare() -> None:
        for one in by_sequence.pop(learner.sequence, []):
            learner.publish()
            published = learner.model.published
            head = learner.model.spec.serve
            made = published.predict(head, published.seen(np.asarray(PROBE)))
            if np.asarray(made.decision).tolist() != one.decision:
                faults.append(f"{model.name}: other predictions at {one.sequence}")
            if one.epoch not in log.epochs_at(one.sequence):
                faults.append(f"{model.name}: epoch {one.epoch} at {one.sequence}")

    for _ in replay(learner, fleet.storage, lambda _: nullcontext()):
        compare()
    if learner.model.broken:
        faults.append(f"{model.name}: {learner.model.broken}")
    return faults + [f"{model.name}: no block ends at {at}" for at in by_sequence]
