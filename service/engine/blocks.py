"""Divides accepted requests into blocks, and encodes them as entries of the log.

A block is what one matrix product learns. Its size is bounded by the time that it is expected to
take, so that a model's turn is short (see `engine.turns`). Blocks are divided before they are
written: the log names them, so a replay learns the same blocks and computes the same bits, even
where it would have expected other times. That time is the model's recent one, or else follows from
the size of the samples.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from wolfstream.service.engine.queue_items import (
    LabelOutcomes,
    LabelRequest,
    LearnRequest,
    SampleRun,
)
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.absorb import BlockSamples
from wolfstream.service.samples.record import slice_samples, to_labels_record, with_record
from wolfstream.service.samples.tasks import task_of
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import (
    LEAST_PART_SAMPLES,
    PART_BYTES,
    PART_SAMPLES,
    Entry,
    EntryKind,
)
from wolfstream.solver.prepare.named_rows import form_of, n_bytes

# About how long a turn takes: enough to be spent in matrix products rather than around them, and
# little beside a second, the most that another model may have to wait.
TURN_SECONDS = 0.4
# Before anything was measured: for a sample, and for each of its numbers times each class.
_SAMPLE_SECONDS, _NUMBER_SECONDS = 1e-4, 3e-8


class CheckedRequest(NamedTuple):
    """A request that passed its checks.

    Attributes:
        request: of samples, or of labels.
        sequence: of its last sample.
        runs: its samples: one run of a `LearnRequest`, any number of a `LabelRequest`.
        outcomes: see `AdmittedRequest`.
    """

    request: LearnRequest | LabelRequest
    sequence: int
    runs: list[SampleRun]
    outcomes: LabelOutcomes | None = None

    @property
    def samples(self) -> int:
        """The number of samples."""
        return sum([len(run.samples.y) for run in self.runs])


class RequestPart(NamedTuple):
    """Samples that are learned at a time, as an entry of the log and decoded."""

    entry: Entry
    content: BlockSamples


class AdmittedRequest(NamedTuple):
    """A request that will be learned, in one part or, if it is large, in several.

    Attributes:
        request: of samples, or of labels.
        parts: in order.
        outcomes: what becomes of each label, if the request is of labels.
    """

    request: LearnRequest | LabelRequest
    parts: list[RequestPart]
    outcomes: LabelOutcomes | None = None

    @property
    def sequence(self) -> int:
        """Sequence of the request's last sample."""
        return self.parts[-1].entry.sequence

    @property
    def samples(self) -> int:
        """The number of samples."""
        if len(self.parts) == 1:
            return self.parts[0].entry.samples
        return sum([part.entry.samples for part in self.parts])


def in_parts(accepted: Sequence[CheckedRequest], threads: int) -> Iterator[AdmittedRequest]:
    """Yield a model's accepted requests, in order, with their parts.

    threads: on how many threads the matrix products of each part are computed, live and in replays.
    """
    for head, requests in groupby(accepted, key=lambda item: item.request.head):
        items = list(requests)
        model, first = items[0].request.model, items[0].runs[0].samples
        block_samples = block_size(seconds_per_sample(model, head, first))
        for kind, block in _blocks(items, block_samples):
            if kind.large:
                parts = [list(_parts(item, block_samples, threads)) for item in block]
            else:
                end = block[-1].sequence
                parts = [[_part(item, item.runs[0], item.sequence, end, threads)] for item in block]
            for item, own_parts in zip(block, parts, strict=True):
                yield AdmittedRequest(item.request, own_parts, item.outcomes)


class _BlockKind(NamedTuple):
    """What requests that are learned together share.

    large: whether each of their parts is a block by itself; small requests form one block.
    labels: whether they are requests of labels.
    form: of their rows.
    """

    large: bool
    labels: bool
    form: Hashable


def _blocks(
    accepted: list[CheckedRequest], block_samples: int
) -> Iterator[tuple[_BlockKind, list[CheckedRequest]]]:
    """Yield requests of one kind that are learned together.

    block_samples: bound on the samples of a block, unless it is a single request.
    """
    block, samples = list[CheckedRequest](), 0
    kind: _BlockKind | None = None
    for item in accepted:
        added = item.samples
        previous, kind = kind, _kind_of_block(item, added > block_samples)
        if previous is not None and (kind != previous or samples + added > block_samples):
            yield previous, block
            block, samples = [], 0
        block.append(item)
        samples += added
    if kind is not None:
        yield kind, block


def _kind_of_block(item: CheckedRequest, is_long: bool) -> _BlockKind:
    """Return a request's kind; is_long: whether it has more samples than a block."""
    samples, record, _ = item.runs[0]
    large = is_long or len(record) > PART_BYTES or len(item.runs) > 1
    return _BlockKind(large, item.outcomes is not None, form_of(samples.X))


def _parts(item: CheckedRequest, block_samples: int, threads: int) -> Iterator[RequestPart]:
    """Yield the parts of a large request, each as large as time and bytes allow."""
    sequence = item.sequence - item.samples
    for run in item.runs:
        n = len(run.samples.y)
        step = max(1, min(block_samples, n * PART_BYTES // len(run.record)))
        for start in range(0, n, step):
            samples, record = with_record(slice_samples(run.samples, start, min(start + step, n)))
            joined = None if run.joined is None else run.joined.part(start, start + step)
            sequence += len(samples.y)
            part = SampleRun(samples, record, joined)
            yield _part(item, part, sequence, sequence, threads)


def _part(
    item: CheckedRequest, run: SampleRun, sequence: int, block: int, threads: int
) -> RequestPart:
    """Encode samples of a request, which end at a sequence, in the block that ends at `block`."""
    (samples, record, joined), request = run, item.request
    kind: EntryKind = "samples"
    if joined is not None:
        record, kind = to_labels_record(record, joined), "labels"
    model, n = request.model.id, len(samples.y)
    entry = Entry(model, sequence, n, block, request.head, threads, record, kind)
    return RequestPart(entry, BlockSamples(samples, joined))


def seconds_per_sample(model: Model, head: HeadName, samples: Samples) -> float:
    """Return the seconds that a model is expected to take for each of these samples."""
    measured = model.learning_time.seconds_per_sample(head)
    if measured is not None:
        return measured
    y = samples.y
    numbers = n_bytes(samples.X) / 8 / max(len(y), 1)
    classes = task_of(y).n_classes(y)
    return _SAMPLE_SECONDS + _NUMBER_SECONDS * numbers * (1 + classes)


def block_size(sample_seconds: float) -> int:
    """Return how many samples form a block, if each takes this many seconds."""
    in_time = int(TURN_SECONDS / max(sample_seconds, 1e-9))
    return min(PART_SAMPLES, max(LEAST_PART_SAMPLES, in_time))
