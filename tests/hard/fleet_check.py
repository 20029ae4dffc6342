"""Checks a fleet by comparing its logs, as its streams have them, with the answers of clients.

It does not know what failed, or when. The logs are read without code of the product; only bits of
predictions are compared with what the product's learners make of them.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.hard.fleet_clients import PROBE, Clients, Read
from tests.hard.fleet_learner import learn_log
from tests.hard.fleet_log import Log, RecordedModel, lost_or_twice, recorded_models
from tests.hard.fleet_pairs import check_pair
from tests.hard.fleet_recorder import Recorder
from wolfstream.service.fleet.opening import connect, open_fleet


class Findings(NamedTuple):
    """The numbers of comparisons, and everything that contradicts a promise."""

    figures: dict[str, int]
    faults: list[str]


def check(servers: Sequence[str], folder: Path, clients: Clients) -> Findings:
    """Compare a fleet's logs, of which nothing was purged, with the answers of its clients.

    folder: for the directory of a reader of snapshots.
    """
    with closing(Recorder(servers)) as recorder:
        faults = recorder.read_to_end()
        models = recorded_models(recorder.archive)
    figures = Counter[str]()
    fleet = open_fleet(connect(servers, 1 << 30, 1 << 30), folder)
    with closing(fleet.storage):
        _check_models(models, clients, figures, faults)
    sent = clients.sent
    figures["samples acknowledged"] = sum(
        len(request.samples) for request in sent if request.sequence
    )
    figures["requests without an answer"] = sum(request.sequence is None for request in sent)
    figures["predictions compared"] = len(clients.read)
    return Findings(dict(figures), faults)


def _check_models(
    models: list[RecordedModel],
    clients: Clients,
    figures: Counter[str],
    faults: list[str],
) -> None:
    """Compare each model's log with the answers; count what is compared, and add faults."""
    sent, read = clients.sent, clients.read
    pairs = {model.follows: model for model in models if model.follows is not None}
    for model in models:
        if model.follows is not None:  # with its champion
            continue
        log = Log(model)
        of_model = [request for request in sent if request.model == model.name]
        faults += log.faults + lost_or_twice(model.name, log, of_model)
        if model.number in pairs:
            below = pairs[model.number]
            contradictions, exchanges = check_pair(model, below, read, clients.promoted, PROBE)
            faults += contradictions
            figures["exchanges in the log"] += exchanges
        else:
            reads = [answer for answer in read if answer.model == model.name]
            faults += _other_bits(model, log, reads)
        _count(figures, log)


def _count(figures: Counter[str], log: Log) -> None:
    figures["samples in the log"] += len(log.samples)
    figures["terms"] += len(log.terms)


def _other_bits(model: RecordedModel, log: Log, reads: list[Read]) -> list[str]:
    """Return the predictions that the log's prefix of their sequence does not make."""
    by_sequence = defaultdict[int, list[Read]](list)
    for answer in reads:
        by_sequence[answer.sequence].append(answer)
    faults = list[str]()
    for learner in learn_log(model):
        for answer in by_sequence.pop(learner.sequence, []):
            learner.publish()
            published = learner.model.published
            head = learner.model.spec.serve
            made = published.predict(head, published.head_rows(np.asarray(PROBE)))
            if np.asarray(made.decision).tolist() != answer.decision:
                faults.append(f"{model.name}: other predictions at {answer.sequence}")
            if answer.epoch not in log.epochs_at(answer.sequence):
                faults.append(f"{model.name}: epoch {answer.epoch} at {answer.sequence}")
    return faults + [f"{model.name}: no block ends at {at}" for at in by_sequence]
