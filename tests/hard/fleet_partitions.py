"""Checks a model with several learners: the logs of its partitions, and its own, of their merges.

Each partition's log is learned again up to each merge, and what was learned is merged again: the
model's log has the digest of those bits.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tests.hard.fleet_clients import Read, Sent
from tests.hard.fleet_learner import learn_log, new_learner
from tests.hard.fleet_log import Log, RecordedModel, lost_or_twice
from wolfstream.service.engine.model_files import fill_model
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.merging import merged
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.snapshot_format import State, decode_state, encode_state
from wolfstream.service.storage.snapshots import Snapshots, matches_pinned_name


class Checked(NamedTuple):
    """The logs of a model's partitions, the model's own, and what contradicts a promise."""

    parts: dict[str, Log]
    own: Log
    faults: list[str]


def check_divided(
    snapshots: Snapshots,
    whole: RecordedModel,
    models: list[RecordedModel],
    sent: list[Sent],
    read: list[Read],
    probe: Any,
) -> Checked:
    """Compare the logs of a model with several learners with the answers of its clients.

    models, sent, read: all there are.
    """
    by_name = {model.name: model for model in models}
    n_learners = whole.spec["learners"]
    partitions = [by_name[f"{whole.name}:{number}"] for number in range(n_learners)]
    parts = {partition.name: Log(partition) for partition in partitions}
    unanswered = [request for request in sent if request.model == whole.name]
    faults = list[str]()
    for name, log in parts.items():
        answered = [request for request in sent if request.model == name]
        faults += log.faults + lost_or_twice(name, log, [*answered, *unanswered])
    places = Counter(sample for log in parts.values() for sample in log.samples)
    faults += [
        f"{whole.name}: {sample} is there {n} times" for sample, n in places.items() if n > 1
    ]
    own = Log(whole)
    faults += [*own.faults, *_wrong_merges(whole.name, own, parts)]
    if own.reached != sum(len(log.samples) for log in parts.values()):
        faults.append(f"{whole.name}: its last merge is of {own.reached} samples only")
    reads = [answer for answer in read if answer.model == whole.name]
    faults += _other_bits(whole, own, partitions, reads, probe)
    # The last one is what a new leader begins with.
    snapshots.pinned(whole.number, own.rollbacks[-1]["digest"])
    return Checked(parts, own, faults)


def _wrong_merges(name: str, own: Log, parts: dict[str, Log]) -> Iterator[str]:
    """Merges of what no log has, and of less than the merge before."""
    merges = [rollback["description"] for rollback in own.rollbacks]
    for merge in merges:
        named = {part["partition"]: part["sequence"] for part in merge["partitions"]}
        if len(named) != len(merge["partitions"]) or sum(named.values()) != merge["at"]:
            yield f"{name}: the merge at {merge['at']} is of {merge['partitions']}"
        for part in merge["partitions"]:
            if part["epoch"] not in parts[part["partition"]].epochs_at(part["sequence"]):
                yield f"{name}: the merge at {merge['at']} names another epoch of {part}"
    for before, after in pairwise(merges):
        if before["at"] >= after["at"]:
            yield f"{name}: a merge at {after['at']} comes after one at {before['at']}"


def _other_bits(
    whole: RecordedModel,
    own: Log,
    partitions: list[RecordedModel],
    reads: list[Read],
    probe: Any,
) -> Iterator[str]:
    """Yield the merges, and the predictions, that the partitions' logs do not make."""
    spec = read_stored_spec(whole.spec)
    again = {partition.name: _Again(partition) for partition in partitions}
    by_sequence = defaultdict[int, list[Read]](list)
    for answer in reads:
        by_sequence[answer.sequence].append(answer)
    for merge in own.rollbacks:
        named = merge["description"]["partitions"]
        learners = [again[part["partition"]].at(part["sequence"]) for part in named]
        content = _bytes_of(merged(whole.name, spec, learners))
        at = merge["description"]["at"]
        if not matches_pinned_name(merge["digest"], content):
            yield f"{whole.name}: the merge at {at} has other bits than the logs"
        published = _restored(whole, content).model.published
        for answer in by_sequence.pop(at, []):
            made = published.predict(spec.serve, published.seen(np.asarray(probe)))
            if np.asarray(made.decision).tolist() != answer.decision:
                yield f"{whole.name}: other predictions at {at}"
            if answer.epoch not in own.epochs_at(at):
                yield f"{whole.name}: epoch {answer.epoch} at {at}"
    for at in by_sequence:
        yield f"{whole.name}: no merge is at {at}"


class _Again:
    """A partition, whose log is learned again, step by step."""

    def __init__(self, model: RecordedModel) -> None:
        self._model, self._learner = model, new_learner(model)
        self._steps = learn_log(model)

    def at(self, sequence: int) -> Learner:
        """Return a learner of the state in which a snapshot of a sequence is saved."""
        while self._learner.sequence < sequence:
            self._learner = next(self._steps)
        assert self._learner.sequence == sequence, f"no block of {self._model.name} ends there"
        return _restored(self._model, _bytes_of(self._learner))


def _bytes_of(learner: Learner) -> bytes:
    return b"".join(encode_state(State(*learner.state())))


def _restored(model: RecordedModel, content: bytes) -> Learner:
    live = Model(model.number, model.name, read_stored_spec(model.spec))
    return fill_model(live, decode_state(content, model.name), model.name).learner
