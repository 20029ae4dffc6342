"""Warns if a server that accepts connections does not answer."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

logger = logging.getLogger(__name__)

# A server that has not answered for so long is reported.
_SILENT_SECONDS = 1.5


class FirstAnswer:
    """The wait for the first answer of a server, of which a long one is logged once.

    Later calls may take as long as they need: what they ask for may be much.
    """

    def __init__(self, url: str, timeout: float) -> None:
        """Begin before the first request.

        Args:
            url: of the server.
            timeout: seconds without an answer after which a connection counts as lost.
        """
        self._url, self._timeout = url, timeout
        # Whether there is nothing to report: an answer has come or is waited for, or was reported.
        self._done = False
        self._reported = False

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Log a warning if the block takes long, and is the first one, or those before failed."""
        if self._done:
            yield
            return
        self._done = True
        timer = threading.Timer(_SILENT_SECONDS, self._warn)
        timer.daemon = True
        timer.start()
        try:
            yield
        except BaseException:
            self._done = self._reported
            raise
        finally:
            timer.cancel()

    def _warn(self) -> None:
        self._reported = True
        until = datetime.now() + timedelta(seconds=self._timeout - _SILENT_SECONDS)
        logger.warning(
            "%s has not answered for %s s; waiting until %s (`timeout`)",
            self._url,
            _SILENT_SECONDS,
            f"{until:%H:%M:%S}",
        )
