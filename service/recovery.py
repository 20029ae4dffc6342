"""The way back after a stop: load the snapshot, replay the rest of the log."""

import logging
from collections.abc import Callable
from typing import Any

from service.errors import StartupError, StorageFailed
from service.fits import fit_from_record
from service.idempotency import answered
from service.log import Entry, Keyed, Log
from service.model import Model
from service.records import from_record, one_after_another
from service.samples import Samples
from service.snapshots import DamagedSnapshot, Snapshots
from service.spec import ModelSpec

logger = logging.getLogger(__name__)


def recover(log: Log, snapshots: Snapshots, use_threads: Callable[[int], None]) -> list[Model]:
    """All models as they were acknowledged. Raises StartupError where that is impossible."""
    return [
        _recover_model(model_id, name, spec, log, snapshots, use_threads)
        for model_id, name, spec in log.models()
    ]


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
    model = _from_newest_whole_snapshot(Model(model_id, name, ModelSpec(**spec)), snapshots)
    unanswered = {row.sequence: row for row in log.unanswered(model_id)}
    found: list[Keyed] = []
    for block in log.blocks(model_id, model.sequence):
        _check_continuous(model, block)
        use_threads(block[0].threads)
        try:
            found += _replay(model, block, unanswered)
        except Exception as error:
            logger.exception("model %s: replay failed at sequence %d", name, model.sequence)
            model.broken = f"replay failed behind sequence {model.sequence}: {error}"
            break
    _keep_answers(log, found)
    model.publish()
    logger.info("model %s: recovered at sequence %d", name, model.sequence)
    return model


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


def _from_newest_whole_snapshot(model: Model, snapshots: Snapshots) -> Model:
    for sequence in snapshots.sequences(model.id):
        try:
            state = snapshots.load(model.id, sequence)
        except DamagedSnapshot as error:
            logger.warning("model %s: %s; trying the one before", model.name, error)
            snapshots.set_aside(model.id, sequence)
            continue
        model.restore(state.plain, state.arrays)
        break
    return model


def _check_continuous(model: Model, block: list[Entry]) -> None:
    first = block[0].sequence - block[0].samples
    if first != model.sequence:
        raise StartupError(
            f"model {model.name!r}: its log goes on after sample {first}, but the newest whole "
            f"snapshot ends at {model.sequence}. Restore the snapshots of the data directory "
            "from a backup; starting without them would silently lose acknowledged samples"
        )
