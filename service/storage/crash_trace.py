"""The stack of a process that crashed, for the next one: the file `DIR/crash`.

The file is empty while a process runs. A crash, unlike a kill for want of memory, is caused by a
computation, so the same model would cause it again: the next start has to know.
"""

import contextlib
import faulthandler
import logging
from pathlib import Path

from wolfstream.service.storage.directories import make_private

logger = logging.getLogger(__name__)

_MAX_CHARACTERS = 2000


def last_crash(path: Path) -> str:
    """Return and log the stack of the last process if it crashed, otherwise ""."""
    text = ""
    with contextlib.suppress(OSError), path.open(errors="replace") as file:
        text = file.read(_MAX_CHARACTERS)
    if text:
        logger.error("the last process crashed: trace=%s", text)
    return text


def watch_for_crashes(path: Path) -> None:
    """Make this process write its stack to the file if it crashes; discard the last process's."""
    try:
        make_private(path)
        # Never closed: the handler writes to its file descriptor.
        file = path.open("w")
        faulthandler.enable(file, all_threads=False)
    except OSError as error:
        logger.error("crashes will not be traced: path=%s error=%s", path, error)
