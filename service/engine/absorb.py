"""Absorbing a block: what live learning and replay share, so that they give the same bits."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from service.model.learner import Learner
from service.samples.record import from_record, one_after_another
from service.samples.validation import Samples
from service.storage.entries import Entry

# The results of a part of a request: of each kind one for each sample.
Results: TypeAlias = dict[str, list[Any]]


def recorded_samples(block: Sequence[Entry]) -> Samples:
    """The samples in the records of a block's entries, one after another."""
    return one_after_another([from_record(entry.record) for entry in block])


def absorb_block(
    learner: Learner, block: Sequence[Entry], samples: Samples
) -> list[dict[str, Any]]:
    """Absorb and publish a block; the answers to its entries.

    samples: bit for bit `recorded_samples(block)`; live they need not be decoded again.
    """
    head = block[0].head
    absorbed = learner.absorb(head, samples)
    learner.publish()
    stats = learner.model.published.heads[head].stats
    answers: list[dict[str, Any]] = []
    start = 0
    for entry in block:
        stop = start + entry.samples
        answers.append(
            {
                "model": learner.model.name,
                "sequence": entry.sequence,
                "epoch": learner.epoch,
                "learned": entry.samples,
                "results": absorbed.part(start, stop),
                "head": {"name": head, **stats},
            }
        )
        start = stop
    return answers


def absorb_part(learner: Learner, entry: Entry, samples: Samples) -> Results:
    """Absorb a part of a large request, and publish nothing: it is seen as a whole or not at all.

    samples: as of `absorb_block`, which absorbs its last part.
    """
    return learner.absorb(entry.head, samples).part(0, entry.samples)


def joined_answer(before: Sequence[Results], last: dict[str, Any]) -> dict[str, Any]:
    """The answer to a large request: that of its last part, with all results before it."""
    if not before:
        return last
    parts = [*before, last["results"]]
    results = {name: [value for part in parts for value in part[name]] for name in last["results"]}
    learned = last["learned"] + sum(len(part["prediction"]) for part in before)
    return {**last, "learned": learned, "results": results}
