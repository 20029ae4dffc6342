"""Checks a fleet by comparing its log with the answers that clients got.

It does not know what failed, or when.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.hard.fleet_clients import PROBE, Clients, Read
from tests.hard.fleet_log import Log, lost_or_twice, whole_log
from tests.hard.fleet_pairs import check_pair
from tests.hard.fleet_partitions import check_divided
from wolfstream.service.engine.replay import replay
from wolfstream.service.fleet.opening import Fleet, connect, open_fleet
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.partitions import whole_of


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
            if model.follows is not None or whole_of(model.name) is not None:
                continue
            if read_stored_spec(model.spec).learners > 1:
                divided = check_divided(fleet, model, sent, read, PROBE)
                faults += divided.faults
                figures["merges"] += len(divided.own.rollbacks)
                figures["terms"] += len(divided.own.terms)
                for log in divided.parts.values():
                    _count(figures, log)
                continue
            of_model = [one for one in sent if one.model == model.name]
            log = Log(fleet, model)
            faults += log.faults + lost_or_twice(model.name, log, of_model)
            if model.number in pairs:
                below = pairs[model.number]
                found, exchanges = check_pair(fleet, model, below, read, clients.promoted, PROBE)
                faults += found
                figures["exchanges in the log"] += exchanges
            else:
                reads = [one for one in read if one.model == model.name]
                faults += _other_bits(fleet, model, log, reads)
            _count(figures, log)
    finally:
        fleet.storage.close()
    figures["samples acknowledged"] = sum(len(one.samples) for one in sent if one.sequence)
    figures["requests without an answer"] = sum(one.sequence is None for one in sent)
    figures["predictions compared"] = len(read)
    return Findings(dict(figures), faults)


def _count(figures: Counter[str], log: Log) -> None:
    figures["samples in the log"] += len(log.samples)
    figures["terms"] += len(log.terms)


def _other_bits(fleet: Fleet, model: CatalogueEntry, log: Log, reads: list[Read]) -> list[str]:
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

    for _ in replay(learner, whole_log(fleet, model), lambda _: nullcontext()):
        compare()
    if learner.model.broken:
        faults.append(f"{model.name}: {learner.model.broken}")
    return faults + [f"{model.name}: no block ends at {at}" for at in by_sequence]
