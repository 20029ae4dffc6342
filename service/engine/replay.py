"""The replay of a journal: blocks are learned again as they were learned live."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from wolfstream.service.engine.absorb import (
    Results,
    absorb_block,
    absorb_part,
    joined_answer,
    learn_again,
    recorded,
    remember,
)
from wolfstream.service.engine.remembered_keys import answered
from wolfstream.service.errors import StartupError
from wolfstream.service.heads.fit import fit_from_record
from wolfstream.service.model.learner import Learner
from wolfstream.service.samples.predicted import from_prediction_record
from wolfstream.service.storage.entries import Entry, KeyedRequest
from wolfstream.service.storage.log import LogReader

logger = logging.getLogger(__name__)

# Around the replay of a block, with its number of threads.
Computing: TypeAlias = Callable[[int], AbstractContextManager[None]]


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
        computing: entered for each block with its number of threads; nothing is read within it.
        blocks: those to learn; None for all after the learner's sequence.
        may_begin: is asked before each block, which it may not even read, with the sequence
            before it.

    Yields keys whose answers had not been written, with their answers. Where learning fails, the
    model is broken from there on. Raises StartupError, StorageFailed.
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
                found = _replay_block(learner, block, unanswered, epoch or learner.epoch, before)
        except Exception as error:  # one model that fails must not keep the others from starting
            logger.exception("model %s: replay failed at sequence %d", model.name, learner.sequence)
            model.broken = f"replay failed after sequence {learner.sequence}: {error}"
            break
        yield found


def _unanswered(learner: Learner, log: LogReader) -> tuple[dict[int, KeyedRequest], int]:
    """Return the keys that need answers, by their sequences, and up to where all are known.

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
    """Apply a block; keys whose answers had not been written, with their first answers.

    epoch: that in which it was written. before: results of the parts before, of a large request
    that goes on in this block.
    """
    if block[0].kind == "checkpoint":
        learner.go_on_from(learner.checkpoint())
        return []
    if block[0].kind == "prediction":
        remember(learner, block[0], from_prediction_record(block[0].record))
        return []
    if block[0].kind == "fit":
        learner.adopt(block[0].head, fit_from_record(block[0].record))
        return []
    begin, end = block[0].sequence - block[0].samples, block[-1].sequence
    asked = [
        row.sequence
        for row in unanswered.values()
        if begin < row.sequence and row.sequence - max(row.samples, 1) < end
    ]
    if not asked:
        learn_again(learner, block)
        return []
    if min(asked) > end:
        before.append(absorb_part(learner, block[0], recorded(block)))
        return []
    found = list[KeyedRequest]()
    answers = absorb_block(learner, block, recorded(block))
    for entry, answer in zip(block, answers, strict=True):
        if entry.sequence in unanswered:
            first = {**joined_answer(before, answer), "epoch": epoch}
            found.append(answered(unanswered[entry.sequence], first))
    before.clear()
    return found


def _check_continuous(learner: Learner, block: list[Entry]) -> None:
    """Raise StartupError unless each entry of a block comes directly after what was learned."""
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
