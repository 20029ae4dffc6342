"""Learns recorded logs again, with the product's learners: bits are compared with theirs."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from tests.hard.fleet_log import RecordedModel
from tests.simulation.log_reader import Row, has_samples
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.absorb import learn_again
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import Entry

# Other rows that change what a model has learned.
STEPS = frozenset({"checkpoint", "rollback"})


def new_learner(model: RecordedModel) -> Learner:
    """Return the learner of a model that has learned nothing."""
    live = Model(model.number, model.name, read_stored_spec(model.spec))
    return Learner(live, model.epoch)


def entries_of(model: RecordedModel, rows: Sequence[Row]) -> list[Entry]:
    """Return rows with samples as what a learner takes."""
    entries = list[Entry]()
    for kind, sequence, _, samples, block, head, threads, record in rows:
        values: Any = (model.number, sequence, samples, block, head, threads, record, kind)
        entries.append(Entry._make(values))
    return entries


def steps(model: RecordedModel) -> Iterator[list[Row]]:
    """Yield the blocks of samples in a log, and checkpoints and exchanges, each alone."""
    for commit in model.log.commits:
        known = [row for row in commit.rows if has_samples(row) or row.kind in STEPS]
        for _, group in groupby(known, lambda row: (row.kind, row.block)):
            together = list(group)
            yield from [together] if has_samples(together[0]) else [[row] for row in together]


def learn_log(model: RecordedModel) -> Iterator[Learner]:
    """Learn a log in which nothing is exchanged; yield the learner after each step."""
    learner = new_learner(model)
    for rows in steps(model):
        if rows[0].kind == "checkpoint":
            learner.go_on_from(learner.checkpoint())
        else:
            assert has_samples(rows[0]), f"{model.name} has a {rows[0].kind}"
            learn_again(learner, entries_of(model, rows))
        yield learner
