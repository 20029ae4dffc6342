"""Checks a model with several learners: the logs of its partitions, and its own, of their merges.

Each partition's log is learned again up to each merge, and what was learned is merged again: the
model's log has the digest of those bits.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tests.hard.fleet_clients import Read, Sent
from tests.hard.fleet_log import Log, lost_or_twice, whole_log
from wolfstream.service.engine.model_files import fill_model
from wolfstream.service.engine.replay import replay
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.merging import merged
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.partitions import partitions_of
from wolfstream.service.storage.snapshot_format import State, decode_state, encode_state
from wolfstream.service.storage.snapshots import is_content_of


class Checked(NamedTuple):
    """The logs of a model's partitions, the model's own, and what contradicts a promise."""

    parts: dict[str, Log]
    own: Log
    faults: list[str]


def check_divided(
    fleet: Fleet, whole: CatalogueEntry, sent: list[Sent], read: list[Read], probe: Any
) -> Checked:
    """Compare the logs of a model with several learners with the answers of its clients.

    sent, read: of all models.
    """
    entries = {one.name: one for one in fleet.storage.catalogue.models()}
    learners = read_stored_spec(whole.spec).learners
    partitions = [entries[name] for name in partitions_of(whole.name, learners)]
    parts = {one.name: Log(fleet, one) for one in partitions}
    unanswered = [one for one in sent if one.model == whole.name]
    faults = list[str]()
    for name, log in parts.items():
        answered = [one for one in sent if one.model == name]
        faults += log.faults + lost_or_twice(name, log, [*answered, *unanswered])
    places = Counter(sample for log in parts.values() for sample in log.samples)
    faults += [f"{whole.name}: {one} is there {n} times" for one, n in places.items() if n > 1]
    own = Log(fleet, whole)
    faults += [*own.faults, *_wrong_merges(whole.name, own, parts)]
    if own.reached != sum(len(log.samples) for log in parts.values()):
        faults.append(f"{whole.name}: its last merge is of {own.reached} samples only")
    reads = [one for one in read if one.model == whole.name]
    faults += _other_bits(fleet, whole, own, partitions, reads, probe)
    return Checked(parts, own, faults)


def _wrong_merges(name: str, own: Log, parts: dict[str, Log]) -> Iterator[str]:
    """Merges of what no log has, and of less than the merge before."""
    merges = [one["description"] for one in own.rollbacks]
    for one in merges:
        named = {part["partition"]: part["sequence"] for part in one["partitions"]}
        if len(named) != len(one["partitions"]) or sum(named.values()) != one["at"]:
            yield f"{name}: the merge at {one['at']} is of {one['partitions']}"
        for part in one["partitions"]:
            if part["epoch"] not in parts[part["partition"]].epochs_at(part["sequence"]):
                yield f"{name}: the merge at {one['at']} names another epoch of {part}"
    for before, after in pairwise(merges):
        if before["at"] >= after["at"]:
            yield f"{name}: a merge at {after['at']} comes after one at {before['at']}"


def _other_bits(
    fleet: Fleet,
    whole: CatalogueEntry,
    own: Log,
    partitions: list[CatalogueEntry],
    reads: list[Read],
    probe: Any,
) -> Iterator[str]:
    """Merges, and predictions, that the partitions' logs do not make."""
    spec = read_stored_spec(whole.spec)
    again = {one.name: _Again(fleet, one) for one in partitions}
    by_sequence = defaultdict[int, list[Read]](list)
    for one in reads:
        by_sequence[one.sequence].append(one)
    for merge in own.rollbacks:
        named = merge["description"]["partitions"]
        learners = [again[one["partition"]].at(one["sequence"]) for one in named]
        content = _bytes_of(merged(whole.name, spec, learners))
        at = merge["description"]["at"]
        if not is_content_of(merge["digest"], content):
            yield f"{whole.name}: the merge at {at} has other bits than the logs"
        published = _restored(whole, content).model.published
        for one in by_sequence.pop(at, []):
            made = published.predict(spec.serve, published.seen(np.asarray(probe)))
            if np.asarray(made.decision).tolist() != one.decision:
                yield f"{whole.name}: other predictions at {at}"
            if one.epoch not in own.epochs_at(at):
                yield f"{whole.name}: epoch {one.epoch} at {at}"
    for at in by_sequence:
        yield f"{whole.name}: no merge is at {at}"
    # The last one is what a new leader begins with.
    fleet.snapshots.pinned_content(whole.number, own.rollbacks[-1]["digest"])


class _Again:
    """A partition, whose log is learned again, step by step."""

    def __init__(self, fleet: Fleet, entry: CatalogueEntry) -> None:
        self._entry = entry
        model = Model(entry.number, entry.name, read_stored_spec(entry.spec))
        self._learner = Learner(model, entry.epoch)
        self._steps = replay(self._learner, whole_log(fleet, entry), lambda _: nullcontext())

    def at(self, sequence: int) -> Learner:
        """Return a learner of the state in which a snapshot of a sequence is saved."""
        while self._learner.sequence < sequence:
            next(self._steps)
        assert self._learner.sequence == sequence, f"no block of {self._entry.name} ends there"
        return _restored(self._entry, _bytes_of(self._learner))


def _bytes_of(learner: Learner) -> bytes:
    return b"".join(encode_state(State(*learner.state())))


def _restored(entry: CatalogueEntry, content: bytes) -> Learner:
    model = Model(entry.number, entry.name, read_stored_spec(entry.spec))
    return fill_model(model, decode_state(content, entry.name), entry.name).learner
