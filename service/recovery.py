"""The way back after a stop: load the snapshot, replay the rest of the log.

A rollback in the log stands for a snapshot of its sequence. It counts for more than one of the
same sequence, which may be older than it; what came after both at this sequence is in the log.
"""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from service.errors import StartupError, StorageFailed
from service.fits import fit_from_record
from service.idempotency import answered
from service.log import Log
from service.log_rows import Entry, Keyed
from service.model import Model
from service.records import from_record, one_after_another
from service.samples import Samples
from service.snapshots import DamagedSnapshot, Snapshots, decode_state
from service.spec import ModelSpec

logger = logging.getLogger(__name__)


def recover(log: Log, snapshots: Snapshots, use_threads: Callable[[int], None]) -> Iterator[Model]:
    """All models as they were acknowledged, one by one.

    Raises StartupError where that is impossible.
    """
    for model_id, name, spec in log.models():
        yield _recover_model(model_id, name, spec, log, snapshots, use_threads)


def samples_of(block: list[Entry]) -> Samples:
    """The samples of a block's entries, one after another."""
    return one_after_another([from_record(entry.record) for entry in block])


def learn_block(model: Model, block: list[Entry]) -> list[dict[str, Any]]:
    """Absorb and publish a block; the answers to its entries, the same live and in replay."""
    head = block[0].head
    said = model.absorb(head, samples_of(block))
    model.publish(model.taught(head))
    stats = model.published.heads[head].stats
    answers: list[dict[str, Any]] = []
    start = 0
    for entry in block:
        stop = start + entry.samples
        answers.append(
            {
                "model": model.name,
                "sequence": entry.sequence,
                "learned": entry.samples,
                "results": said.part(start, stop),
                "head": {"name": head, **stats},
            }
        )
        start = stop
    return answers


def _recover_model(
    model_id: int,
    name: str,
    spec: dict[str, Any],
    log: Log,
    snapshots: Snapshots,
    use_threads: Callable[[int], None],
) -> Model:
    model = Model(model_id, name, ModelSpec(**spec))
    for sequence in restore_newest(model, log, snapshots):
        snapshots.set_aside(model_id, sequence)
    found = [row for rows in replay(model, log, use_threads) for row in rows]
    _keep_answers(log, found)
    model.publish()
    logger.info("model %s: recovered at sequence %d", name, model.sequence)
    return model


def replay(model: Model, log: Log, use_threads: Callable[[int], None]) -> Iterator[list[Keyed]]:
    """Learn what the log has behind a restored model, block by block.

    Yields keys whose answers had not been written, with their answers. Where learning fails the
    model is broken from there on. Raises StartupError.
    """
    unanswered = {row.sequence: row for row in log.unanswered(model.id)}
    for block in log.blocks(model.id, model.sequence):
        _check_continuous(model, block)
        use_threads(block[0].threads)
        try:
            found = _replay(model, block, unanswered)
        except Exception as error:
            logger.exception("model %s: replay failed at sequence %d", model.name, model.sequence)
            model.broken = f"replay failed behind sequence {model.sequence}: {error}"
            break
        yield found


def _replay(model: Model, block: list[Entry], unanswered: dict[int, Keyed]) -> list[Keyed]:
    """Apply a block; keys whose answers had not been written, with their answers."""
    if not block[0].samples:
        model.adopt(fit_from_record(block[0].record))
    elif unanswered.keys() & {entry.sequence for entry in block}:
        answers = learn_block(model, block)
        return [
            answered(unanswered[entry.sequence], answer)
            for entry, answer in zip(block, answers, strict=True)
            if entry.sequence in unanswered
        ]
    else:
        model.absorb(block[0].head, samples_of(block))
    return []


def _keep_answers(log: Log, found: list[Keyed]) -> None:
    try:
        if found:
            log.append((), found)
    except StorageFailed as error:
        raise StartupError(f"{error}; make room for it and start again") from None


def restore_newest(model: Model, log: Log, snapshots: Snapshots) -> list[int]:
    """Fill a fresh model with the newest whole state, if there is any.

    Returns the sequences of the damaged snapshots that were passed over. Raises StartupError.
    """
    rolled_back_at = log.rolled_back_at(model.id)
    damaged: list[int] = []
    for sequence in snapshots.sequences(model.id):
        if rolled_back_at is not None and sequence <= rolled_back_at:
            break
        try:
            state = snapshots.load(model.id, sequence)
        except DamagedSnapshot as error:
            logger.warning("model %s: %s; trying the one before", model.name, error)
            damaged.append(sequence)
            continue
        model.restore(state.plain, state.arrays)
        model.snapshot_time = time.monotonic() - snapshots.age(model.id, sequence)
        return damaged
    if rolled_back_at is not None:
        _restore_rollback(model, log)
        model.snapshot_sequence = max(set(snapshots.sequences(model.id)) - {*damaged}, default=0)
    return damaged


def _restore_rollback(model: Model, log: Log) -> None:
    rollback = log.rollback(model.id)
    try:
        state = decode_state(rollback.content, "the record of its rollback")
    except DamagedSnapshot as error:
        raise StartupError(
            f"model {model.name!r}: {error}. Restore the log of the data directory from a "
            "backup; without it the model would be what it was before it was rolled back"
        ) from None
    source = Model(model.id, model.name, model.spec)
    source.restore(state.plain, state.arrays)
    model.roll_back(source, rollback.told)


def _check_continuous(model: Model, block: list[Entry]) -> None:
    first = block[0].sequence - block[0].samples
    if first != model.sequence:
        raise StartupError(
            f"model {model.name!r}: its log goes on after sample {first}, but the newest whole "
            f"snapshot ends at {model.sequence}. Restore the snapshots of the data directory "
            "from a backup; starting without them would silently lose acknowledged samples"
        )
