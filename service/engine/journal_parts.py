"""Accepted requests, divided into blocks that are learned at a time, with their journal entries.

A block is bounded by the time that it is expected to take, so that a model's turn is short
(`engine.turns`). Blocks are divided before they are written: a replay learns the same ones, so that
it computes the same bits, whatever it would have expected itself.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from wolfstream.service.engine.absorb import Recorded
from wolfstream.service.engine.expected_time import samples_of_a_block, seconds_of_sample
from wolfstream.service.engine.late_labels import Found, LabelRequest, Run
from wolfstream.service.engine.learn_request import LearnRequest
from wolfstream.service.samples.predicted import to_labels_record
from wolfstream.service.samples.record import part_of, with_record
from wolfstream.service.storage.entries import PART_BYTES, Entry
from wolfstream.solver.prepare.named_rows import form_of


class Accepted(NamedTuple):
    """A request that is learned up to a sequence. found: as of `Admitted`."""

    request: LearnRequest | LabelRequest
    sequence: int
    runs: list[Run]
    found: Found | None = None

    @property
    def samples(self) -> int:
        """How many are learned."""
        return sum([len(run.samples.y) for run in self.runs])

    def is_large(self, most: int) -> bool:
        """Return whether others come between its parts. most: samples of a block."""
        run = self.runs[0]
        small = len(run.samples.y) <= most and len(run.record) <= PART_BYTES
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
    for head, of_head in groupby(accepted, key=lambda item: item.request.head):
        items = list(of_head)
        model, first = items[0].request.model, items[0].runs[0].samples
        most = samples_of_a_block(seconds_of_sample(model, head, first))
        for block in _blocks(items, most):
            yield from _admitted(block, most, threads)


def _blocks(accepted: list[Accepted], most: int) -> Iterator[list[Accepted]]:
    """Yield requests that are learned together: rows of different forms are not joined.

    most: samples of a block, unless a single request has more.
    """
    block, samples, kind = list[Accepted](), 0, None
    for item in accepted:
        before, kind = kind, _kind_of_block(item, most)
        if block and (kind != before or samples + item.samples > most):
            yield block
            block, samples = [], 0
        block.append(item)
        samples += item.samples
    yield block


def _kind_of_block(item: Accepted, most: int) -> Hashable:
    return item.is_large(most), item.found is None, form_of(item.runs[0].samples.X)


def _admitted(block: list[Accepted], most: int, threads: int) -> list[Admitted]:
    """Journal entries of consecutive requests for one head of one model.

    Small ones are one block. Of a large one each part is a block, so that a replay learns it in the
    same parts.
    """
    if not block[0].is_large(most):
        ends = block[-1].sequence
        return [
            Admitted(item.request, [_part(item, run, item.sequence, ends, threads)], item.found)
            for item in block
            for run in item.runs
        ]
    return [Admitted(item.request, list(_parts(item, most, threads)), item.found) for item in block]


def _parts(item: Accepted, most: int, threads: int) -> Iterator[Part]:
    """The parts of a large request: as many samples in each as its bounds allow, at least one."""
    sequence = item.sequence - item.samples
    for run in item.runs:
        n = len(run.samples.y)
        step = max(1, min(most, n * PART_BYTES // len(run.record)))
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
