"""Accepted requests, divided into the parts that are learned at a time, with their journal entries.

A replay learns the same parts, so that it computes the same bits.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from wolfstream.service.engine.absorb import Recorded
from wolfstream.service.engine.late_labels import Found, LabelRequest, Run
from wolfstream.service.engine.learn_request import LearnRequest
from wolfstream.service.samples.predicted import to_labels_record
from wolfstream.service.samples.record import part_of, with_record
from wolfstream.service.storage.entries import PART_BYTES, PART_SAMPLES, Entry
from wolfstream.solver.prepare.named_rows import form_of


class Accepted(NamedTuple):
    """A request that is learned up to a sequence. found: as of `Admitted`."""

    request: LearnRequest | LabelRequest
    sequence: int
    runs: list[Run]
    found: Found | None = None

    @property
    def large(self) -> bool:
        """Whether others come between its parts."""
        run = self.runs[0]
        small = len(run.samples.y) <= PART_SAMPLES and len(run.record) <= PART_BYTES
        return not small or len(self.runs) > 1


class Part(NamedTuple):
    """What is learned at a time, and its entry in the journal."""

    entry: Entry
    content: Recorded


class Admitted(NamedTuple):
    """A request that will be learned, in its parts; one, unless it is large.

    found: what became of each label, of a request of labels.
    """

    request: LearnRequest | LabelRequest
    parts: list[Part]
    found: Found | None = None

    @property
    def sequence(self) -> int:
        """Of its last sample."""
        return self.parts[-1].entry.sequence

    @property
    def samples(self) -> int:
        """How many are learned."""
        return sum([part.entry.samples for part in self.parts])


def in_parts(accepted: Sequence[Accepted], threads: int) -> Iterator[Admitted]:
    """Yield a model's accepted requests, in order, with their parts.

    threads: how many compute the products of a part, now and in a replay.
    """
    for block in _blocks(accepted):
        yield from _admitted(block, threads)


def _blocks(accepted: Sequence[Accepted]) -> list[list[Accepted]]:
    """Requests that are learned together: rows of different forms are not joined."""
    if len(accepted) == 1:
        return [list(accepted)]
    return [list(block) for _, block in groupby(accepted, key=_kind_of_block)]


def _kind_of_block(item: Accepted) -> Hashable:
    return item.request.head, item.large, item.found is None, form_of(item.runs[0].samples.X)


def _admitted(block: list[Accepted], threads: int) -> list[Admitted]:
    """Journal entries of consecutive requests for one head of one model.

    Small ones are one block. Of a large one each part is a block, so that a replay learns it in the
    same parts.
    """
    if not block[0].large:
        ends = block[-1].sequence
        return [
            Admitted(item.request, [_part(item, run, item.sequence, ends, threads)], item.found)
            for item in block
            for run in item.runs
        ]
    return [Admitted(item.request, list(_parts(item, threads)), item.found) for item in block]


def _parts(item: Accepted, threads: int) -> Iterator[Part]:
    """The parts of a large request: as many samples in each as its bounds allow, at least one."""
    sequence = item.sequence - sum(len(run.samples.y) for run in item.runs)
    for run in item.runs:
        n = len(run.samples.y)
        step = max(1, min(PART_SAMPLES, n * PART_BYTES // len(run.record)))
        for start in range(0, n, step):
            samples, record = with_record(part_of(run.samples, start, min(start + step, n)))
            joined = None if run.joined is None else run.joined.part(start, start + step)
            sequence += len(samples.y)
            part = Run(samples, record, joined)
            yield _part(item, part, sequence, sequence, threads)


def _part(item: Accepted, run: Run, sequence: int, block: int, threads: int) -> Part:
    samples, record, joined = run
    entry = Entry(
        model=item.request.model.id,
        sequence=sequence,
        samples=len(samples.y),
        block=block,
        head=item.request.head,
        threads=threads,
        record=record if joined is None else to_labels_record(record, joined),
        kind="samples" if joined is None else "labels",
    )
    return Part(entry, Recorded(samples, joined))
