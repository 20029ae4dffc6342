"""What a process writes as it crashes, so that the next one knows that it did.

A crash, unlike a kill for want of memory, comes of what was computed: a model that caused it would
cause it again. The file `DIR/crash` is empty while a process runs, and has its stack once it has
crashed.
"""

import contextlib
import faulthandler
import logging
from pathlib import Path

from wolfstream.service.storage.directories import make_private

logger = logging.getLogger(__name__)

_MOST_CHARACTERS = 2000


def last_crash(path: Path) -> str:
    """Return and log the stack of the last process, if it crashed; else ""."""
    text = ""
    with contextlib.suppress(OSError), path.open(errors="replace") as file:
        text = file.read(_MOST_CHARACTERS)
    if text:
        logger.error("the last process crashed: trace=%s", text)
    return text


def watch_for_crashes(path: Path) -> None:
    """Have this process write its stack to the file should it crash, and forget the last one's."""
    try:
        make_private(path)
        # Open until the process ends: the handler writes to its number.
        file = path.open("w")
        faulthandler.enable(file, all_threads=False)
    except OSError as error:
        logger.error("crashes cannot be traced: path=%s error=%s", path, error)
