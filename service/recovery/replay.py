"""Replay: the blocks of a log are learned again, exactly as they were learned live.

A replay gives the same bits where the numerics (`spec.stored.NUMERICS`), numpy, numba and the kind
of processor are those with which the samples were learned. Elsewhere a sum may be rounded in
another order. Snapshots record these four, so that a difference can be reported.
"""

import functools
import logging
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from wolfstream.service.errors import StartupError
from wolfstream.service.heads.fit import fit_from_record
from wolfstream.service.model.learner import Learner
from wolfstream.service.recovery.absorb import (
    Results,
    absorb_block,
    absorb_part,
    decode_block,
    joined_answer,
    learn_again,
    store_waiting_rows,
)
from wolfstream.service.recovery.broken import error_text
from wolfstream.service.samples.record import from_prediction_record
from wolfstream.service.spec.stored import NUMERICS
from wolfstream.service.storage.entries import Entry, KeyedRequest
from wolfstream.service.storage.log import LogReader

_CPUINFO = Path("/proc/cpuinfo")


@functools.cache
def present_origin() -> Mapping[str, Any]:
    """Return what snapshots of this process record of their origin."""
    return {
        "numerics": NUMERICS,
        "numpy": version("numpy"),
        "numba": version("numba"),
        "processor": _processor(),
    }


def origin_difference(recorded: Mapping[str, Any] | None) -> str:
    """Return in words what differs from a snapshot's origin; "" if nothing does or it is unknown.

    recorded: the snapshot's origin; None if it recorded none.
    """
    if recorded is None:
        return ""
    return ", ".join(
        f"{name} {recorded.get(name)} (now {value})"
        for name, value in present_origin().items()
        if recorded.get(name) != value
    )


def _processor() -> str:
    """Return the system's name of the processor."""
    with suppress(OSError):
        for line in _CPUINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "CPU part"):
                return f"{platform.machine()} {value.strip()}"
    return platform.machine()


logger = logging.getLogger(__name__)

# A context that a block is replayed in, for this number of threads.
Computing: TypeAlias = Callable[[int], AbstractContextManager[None]]


def unshared(_: int) -> AbstractContextManager[None]:
    """Change nothing: the caller shares neither storage nor threads with others (a `Computing`)."""
    return nullcontext()


def replay(
    learner: Learner,
    log: LogReader,
    computing: Computing,
    blocks: Iterator[list[Entry]] | None = None,
    may_begin: Callable[[int], bool] = lambda _: True,
) -> Iterator[list[KeyedRequest]]:
    """Learn what a log has after a learner's sequence, block by block.

    Args:
        learner: that nobody else uses.
        log: of its model.
        computing: entered for each block, with the block's number of threads. The log is not read
            within it.
        blocks: to learn; None for all after the learner's sequence.
        may_begin: asked before each block is read, with the sequence before it; if False, the
            replay ends.

    Yields, for each block, the requests whose answers the log lacks, with their answers. If
    learning fails, the model is broken, and the replay ends. Raises StartupError, StorageFailed.
    """
    model = learner.model
    unanswered, end = _unanswered(learner, log)
    blocks, before = blocks or log.blocks(learner.sequence), list[Results]()
    while may_begin(learner.sequence) and (block := next(blocks, None)):
        _check_continuous(learner, block)
        if block[-1].sequence > end:  # another replica has written it since
            unanswered, end = _unanswered(learner, log)
        epoch = None
        if any(entry.sequence in unanswered for entry in block):
            epoch = log.epoch_before(block[-1].sequence)
        try:
            with computing(block[0].threads):
                requests = _replay_block(learner, block, unanswered, epoch or learner.epoch, before)
        except Exception as error:  # a model that fails must not keep the others from starting
            logger.exception(
                "replay failed, model broken: model=%s sequence=%d", model.name, learner.sequence
            )
            model.broken = f"replay failed after sequence {learner.sequence}: {error_text(error)}"
            break
        yield requests


def _unanswered(learner: Learner, log: LogReader) -> tuple[dict[int, KeyedRequest], int]:
    """Return sequence -> request that needs an answer, and up to where the log was looked at.

    Raises StartupError, StorageFailed.
    """
    rows = log.unanswered(learner.sequence)
    return {row.sequence: row for row in rows}, log.end()


def _replay_block(
    learner: Learner,
    block: list[Entry],
    unanswered: dict[int, KeyedRequest],
    epoch: str,
    before: list[Results],
) -> list[KeyedRequest]:
    """Apply a block; return the requests whose answers the log lacks, with their first answers.

    Args:
        learner: of the model.
        block: entries of one kind.
        unanswered: sequence -> request.
        epoch: in which the block was written.
        before: results of the earlier parts, if the block is a part of a large request. Extended or
            cleared here.
    """
    if block[0].kind == "checkpoint":
        learner.go_on_from(learner.checkpoint())
        return []
    if block[0].kind == "prediction":
        store_waiting_rows(learner, block[0], from_prediction_record(block[0].record))
        learner.show_pending()
        return []
    if block[0].kind == "fit":
        learner.adopt(block[0].head, fit_from_record(block[0].record))
        return []
    begin, end = block[0].sequence - block[0].samples, block[-1].sequence
    ends = [
        request.sequence
        for request in unanswered.values()
        if begin < request.sequence and request.sequence - request.samples < end
    ]
    if not ends:
        learn_again(learner, block)
        return []
    if min(ends) > end:  # a part of a large request that ends in a later block
        before.append(absorb_part(learner, block[0], decode_block(block)))
        return []
    requests = list[KeyedRequest]()
    answers = absorb_block(learner, block, decode_block(block))
    for entry, answer in zip(block, answers, strict=True):
        if entry.sequence in unanswered:
            first = {**joined_answer(before, answer), "epoch": epoch}
            requests.append(unanswered[entry.sequence].with_answer(first))
    before.clear()
    return requests


def _check_continuous(learner: Learner, block: list[Entry]) -> None:
    """Raise StartupError unless a block's entries follow what was learned without a gap."""
    reached = learner.sequence
    for entry in block:
        if entry.sequence - entry.samples != reached:
            raise StartupError(
                f"model {learner.model.name!r}: its journal goes on after sample "
                f"{entry.sequence - entry.samples}, but what comes before ends at {reached}. "
                "Restore the snapshots of the data directory from a backup (`wolfstream restore`); "
                "starting without them would silently lose acknowledged samples"
            )
        reached = entry.sequence
