"""Absorbs a block: the one function that live learning and replay share, so the bits agree.

Nothing here writes a log or answers a client; whoever calls does.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wolfstream.service.heads.protocol import Answers, part_of
from wolfstream.service.model.columns import plain_notices
from wolfstream.service.model.learner import Learner
from wolfstream.service.samples.record import (
    JoinedRows,
    PredictedRows,
    concatenate_joined_rows,
    concatenate_samples,
    from_labels_record,
    from_record,
)
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import Entry
from wolfstream.solver.prepare.column_facts import MOST_NOTICES

# name of a result -> its values, one for each sample of a part of a request
Results: TypeAlias = dict[str, list[Any]]


class BlockSamples(NamedTuple):
    """The samples of a block, and what was known about their rows if these had been predicted."""

    samples: Samples
    joined: JoinedRows | None = None


def decode_block(block: Sequence[Entry]) -> BlockSamples:
    """Decode the records of a block's entries, one after another."""
    if block[0].kind == "labels":
        return concatenate([BlockSamples(*from_labels_record(entry.record)) for entry in block])
    return concatenate([BlockSamples(from_record(entry.record)) for entry in block])


def concatenate(parts: Sequence[BlockSamples]) -> BlockSamples:
    """Concatenate parts; a dense array that comes alone is not copied."""
    if len(parts) == 1 and isinstance(parts[0].samples.X, np.ndarray):
        return parts[0]
    samples = concatenate_samples([part.samples for part in parts])
    joined = [part.joined for part in parts if part.joined is not None]
    return BlockSamples(samples, concatenate_joined_rows(joined) if joined else None)


def store_waiting_rows(learner: Learner, entry: Entry, predicted: PredictedRows) -> None:
    """Let the rows of a prediction wait for labels, unless a snapshot has counted them already.

    predicted: what the entry's record holds.
    """
    assert learner.pending is not None
    if entry.block > learner.pending.received:
        learner.add_waiting_rows(predicted, entry.record)


def absorb_block(
    learner: Learner, block: Sequence[Entry], content: BlockSamples
) -> list[dict[str, Any]]:
    """Absorb and publish a block; return the answers to its entries.

    Answers describe the head that serves, and have its predictions.

    content: equal, bit for bit, to `decode_block(block)`, so that live learning decodes nothing.
    """
    warnings_before = learner.model.warnings()
    absorbed = _absorbed(learner, block[0].head, content)
    learner.publish()
    serves = learner.model.spec.serve
    head = {"name": serves, **learner.model.published.heads[serves].stats}
    label_warnings = _new(learner.model.warnings(), warnings_before)
    warnings = [*label_warnings, *plain_notices(learner.take_notices())][:MOST_NOTICES]
    more = {"head": head, "warnings": warnings} if warnings else {"head": head}
    name, epoch, columns = learner.model.name, learner.epoch, absorbed.present()
    answers: list[dict[str, Any]] = []
    start = 0
    for entry in block:
        stop = start + entry.samples
        answers.append(
            {
                "model": name,
                "sequence": entry.sequence,
                "epoch": epoch,
                "learned": entry.samples,
                "results": part_of(columns, start, stop),
                **more,
            }
        )
        start = stop
    return answers


def _new(warnings: list[dict[str, Any]], earlier: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the warnings that are new: no earlier one is of the same kind and column."""
    seen = {(warning["slug"], warning["column"]) for warning in earlier}
    return [warning for warning in warnings if (warning["slug"], warning["column"]) not in seen]


def learn_again(learner: Learner, block: Sequence[Entry]) -> None:
    """Absorb a block in a replay, where nobody waits for an answer."""
    _absorbed(learner, block[0].head, decode_block(block))
    learner.take_notices()


def absorb_part(learner: Learner, entry: Entry, content: BlockSamples) -> Results:
    """Absorb a part of a large request without publishing: readers see all of it or nothing.

    content: see `absorb_block`, which absorbs the last part.
    """
    return _absorbed(learner, entry.head, content).part(0, entry.samples)


def _absorbed(learner: Learner, head: HeadName, content: BlockSamples) -> Answers:
    samples, joined = content
    began = time.monotonic()
    if joined is None:
        answers = learner.absorb(head, samples)
    else:
        answers = learner.absorb(head, samples, joined.prediction)
        learner.join(joined, samples.y)
    seconds, learning_time = time.monotonic() - began, learner.model.learning_time
    learner.unsaved_seconds += learning_time.without_compiling(head, len(samples.y), seconds)
    return answers


def joined_answer(before: Sequence[Results], last: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a large request: that of its last part, with the results of all.

    Args:
        before: the results of the other parts, in order.
        last: the answer to the last part.
    """
    if not before:
        return last
    parts = [*before, last["results"]]
    results = {name: [value for part in parts for value in part[name]] for name in last["results"]}
    learned = last["learned"] + sum(len(part["prediction"]) for part in before)
    return {**last, "learned": learned, "results": results}
