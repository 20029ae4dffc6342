"""After a crash, a process of its own uses each model, so that the server does not crash again.

`python -m wolfstream.service.recovery.rehearsal DIR FIRST` recovers the models of a data directory
one after another, from model id FIRST on. It predicts and learns with each, and writes nothing.
Before each step it prints the model's id and the sequence after which it goes on. If it crashes,
the model of its last line is left out of the next recovery, as one whose replay has ended the
server (see `storage.crash_marks`), and another process goes on after it.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.data_directory import replays_path

if TYPE_CHECKING:
    from wolfstream.service.model.learner import Learner
    from wolfstream.service.storage.entries import CatalogueEntry
    from wolfstream.service.storage.interfaces import Storage

_CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE, -signal.SIGABRT}


class _Step(NamedTuple):
    """A step of the process: a model's id, and the sequence after which it goes on."""

    model: int
    after: int


def leave_out_what_crashes(data: Path) -> list[int]:
    """Leave the models of a directory that crash a process out of the next recovery.

    Returns their ids. Raises StartupError, OSError.
    """
    models = list[int]()
    while (step := _crash_of(data, models[-1] + 1 if models else 0)) is not None:
        with closing(ReplayMarks(replays_path(data))) as marks:
            marks.leave_out(step.model, step.after, marks.max_crashes)
        models.append(step.model)
    return models


def _crash_of(data: Path, first: int) -> _Step | None:
    """Run a process from a model id on; return the step at which it crashed, if it did."""
    command = [sys.executable, "-m", __spec__.name, str(data), str(first)]
    step = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            step = _Step(*map(int, line.split()))
    return step if process.returncode in _CRASHES else None


def main(data: Path, first: int) -> None:
    """Use each model from an id on; print each step before it is taken."""
    from wolfstream.solver.compile_cache import use_compile_cache

    use_compile_cache()  # before numba is imported
    from wolfstream.service.storage.data_directory import open_storage

    with closing(open_storage(data, read_only=True)) as storage:
        for entry in sorted(storage.catalogue.models(), key=lambda entry: entry.number):
            if entry.number >= first:
                with suppress(Exception):  # the server itself will report what is wrong
                    for after in _use(entry, storage):
                        print(*_Step(entry.number, after), flush=True)


def _use(entry: "CatalogueEntry", storage: "Storage") -> Iterator[int]:
    """Yield the sequence after which each step goes on, before it is taken."""
    from wolfstream.service.model.draft import Limits
    from wolfstream.service.model.learner import Learner
    from wolfstream.service.model.live import Model
    from wolfstream.service.recovery.first_use import use_once
    from wolfstream.service.recovery.model_recovery import RESTORING, restore_newest
    from wolfstream.service.spec.stored import read_stored_spec

    model = Model(entry.number, entry.name, read_stored_spec(entry.spec))
    learner = Learner(model, entry.epoch)
    yield RESTORING
    log = storage.journal.reader(entry.number)
    restore_newest(learner, log, storage.snapshots)
    if entry.follows is None:
        yield from _replay(learner, storage)
    yield RESTORING
    learner.publish()
    use_once(learner, Limits(1000, 10**9))


def _replay(learner: "Learner", storage: "Storage") -> Iterator[int]:
    from wolfstream.service.recovery.replay import replay, unshared

    log = storage.journal.reader(learner.model.id)
    blocks = replay(learner, log, unshared)
    yield learner.sequence
    while next(blocks, None) is not None:
        yield learner.sequence


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
