"""Other replicas with the address of this one, which is also the name by which the others know it.

If both announced themselves, each would be taken for the other, and their models would have no
leader every other moment. So one of them is silent: the one that begins to announce itself while
the other one is heard, or does so again after a break.
"""

import logging
import random
import time

logger = logging.getLogger(__name__)


class Namesakes:
    """What a replica hears of replicas with its own address. Used on the connection's loop.

    url: the address. beat_seconds: between two announcements of a replica. silent_seconds: without
    one, after which it is taken for gone.
    """

    def __init__(self, url: str, beat_seconds: float, silent_seconds: float) -> None:
        self._url, self._beat, self._silent = url, beat_seconds, silent_seconds
        self._heard_at = self._silent_until = self._announced_at = -float("inf")
        self._announces_since = time.monotonic()

    @property
    def silenced(self) -> bool:
        """Whether this replica leaves the address to the other one; on any thread."""
        return time.monotonic() < self._silent_until

    def may_announce(self) -> bool:
        """Note that this replica announces itself now; return False if it must not."""
        if self.silenced:
            return False
        now = time.monotonic()
        if now > self._announced_at + self._silent:  # the others have taken it for gone
            self._announces_since = now
        self._announced_at = now
        return True

    def note_heard(self) -> None:
        """Note that another replica with the address was heard."""
        now = time.monotonic()
        if now > self._heard_at + self._silent:
            logger.error(
                "another replica has the address %s, too: give each one an address of its own "
                "with --advertise, since the others cannot tell them apart",
                self._url,
            )
        self._heard_at = now
        if self.silenced or now < self._announces_since + 2 * self._beat:
            # Of several that begin at once, one tries again first.
            self._silent_until = now + self._silent * random.uniform(1, 3)
