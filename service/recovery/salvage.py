"""Salvage: what is left of a data directory after its journal was lost.

A snapshot is all of a model at its sequence. Samples after the newest snapshot were in the journal
alone and are lost with it; so are idempotency keys.
"""

import logging
from contextlib import closing
from pathlib import Path

from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.recovery.model_files import ModelFileError, add_state, describe
from wolfstream.service.storage.data_directory import (
    forget_high_water,
    has_lost_journal,
    open_storage,
    set_aside,
)
from wolfstream.service.storage.entries import new_epoch
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.log import rolled_back_at
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import DamagedSnapshot

logger = logging.getLogger(__name__)


def recover_directory(data: Path) -> None:
    """Give up what is lost, so that a server can start with the rest. Raises StartupError."""
    if has_lost_journal(data):
        salvage(data)
        return
    try:
        forget_high_water(data)
        with closing(open_storage(data)) as storage:
            begin_epochs(storage)
    except (OSError, StorageFailed) as error:
        raise StartupError(f"{data} cannot be written: {error}") from None
    logger.warning("journal accepted as it is, commits at its end may be lost: data=%s", data)


def begin_epochs(storage: Storage) -> None:
    """Begin another epoch of each model: sequences after its end may be given out again.

    Raises StartupError, StorageFailed.
    """
    for model, *_ in storage.catalogue.models():
        log = storage.journal.reader(model)
        ends = (log.end(), rolled_back_at(log) or 0)
        log.begin_term(max(*ends, *storage.snapshots.sequences(model)[:1]), new_epoch())


def salvage(data: Path) -> None:
    """Create a new journal, with a model from each model's newest intact snapshot.

    The previous files are kept under other names. Raises StartupError.
    """
    try:
        aside = set_aside(data)
        logger.warning("journal missing, its other files renamed: files=%s", aside)
        with closing(open_storage(data)) as storage:
            snapshots = SnapshotFiles(aside)
            for model_id in snapshots.models():
                _salvage_model(model_id, snapshots, storage)
    except (OSError, StorageFailed) as error:
        raise StartupError(f"the snapshots of {data} cannot be made models: {error}") from None


def _salvage_model(model_id: int, snapshots: SnapshotFiles, storage: Storage) -> None:
    """Create a model from its newest intact snapshot. Raises StorageFailed, OSError."""
    for sequence in snapshots.sequences(model_id):
        source = snapshots.name(model_id, sequence)
        try:
            state = snapshots.load(model_id, sequence)
            name = state.plain["model"]
            loaded, _ = add_state(name, state, source, storage)
        except (DamagedSnapshot, ModelFileError) as error:
            logger.warning("snapshot unusable, trying an older one: error=%s", error)
        else:
            logger.warning(
                "model salvaged, later samples lost: model=%s sequence=%d file=%s state=%r",
                name,
                sequence,
                source,
                describe(loaded),
            )
            return
    logger.error("model lost, it has no intact snapshot: model_id=%d", model_id)
