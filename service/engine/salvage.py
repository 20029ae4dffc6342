"""Salvage: what a data directory still holds after its journal was lost.

A snapshot is all of a model at its sequence. What was learned after the newest one was in the
journal alone, and is lost with it; so are the keys of requests.
"""

import logging
from contextlib import closing
from pathlib import Path

from wolfstream.service.engine.model_files import ModelFileError, add_state, describe
from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.storage.data_directory import (
    forget_high_water,
    has_lost_journal,
    open_storage,
    set_aside,
)
from wolfstream.service.storage.entries import new_epoch
from wolfstream.service.storage.interfaces import Storage
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
    logger.warning("commits that the journal may have lost at its end are given up")


def begin_epochs(storage: Storage) -> None:
    """Let another epoch of each model begin at its end, where sequences may be given out again.

    Raises StartupError, StorageFailed.
    """
    for model, *_ in storage.catalogue.models():
        log = storage.journal.reader(model)
        ends = (log.end(), log.rolled_back_at() or 0)
        log.begin_term(max(*ends, *storage.snapshots.sequences(model)[:1]), new_epoch())


def salvage(data: Path) -> None:
    """Begin a new journal with a model of each model's newest whole snapshot.

    The files of before are kept, under other names. Raises StartupError.
    """
    try:
        aside = set_aside(data)
        logger.warning("the journal is missing; the files that it left are now %s", aside)
        with closing(open_storage(data)) as storage:
            files = SnapshotFiles(aside)
            for number in files.models():
                _salvage_model(number, files, storage)
    except (OSError, StorageFailed) as error:
        raise StartupError(f"the snapshots of {data} cannot be made models: {error}") from None


def _salvage_model(number: int, files: SnapshotFiles, storage: Storage) -> None:
    """Make the newest whole snapshot a model. Raises StorageFailed, OSError."""
    for sequence in files.sequences(number):
        source = files.name(number, sequence)
        try:
            state = files.load(number, sequence)
            name = state.plain.get("model", f"recovered-{number}")
            loaded, _ = add_state(name, state, source, storage)
        except (DamagedSnapshot, ModelFileError) as error:
            logger.warning("%s; trying the one before", error)
        else:
            logger.warning(
                "model %s: made of %s, %s; what it learned after sequence %d is lost",
                name,
                source,
                describe(loaded),
                sequence,
            )
            return
    logger.error("%s has no whole snapshot of model %d", files.name(number, 0), number)
