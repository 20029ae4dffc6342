"""Detects other replicas with this replica's address, which is also its name in the fleet.

If both announced themselves, each would be mistaken for the other, and models would keep losing
their leaders. So one of them stays silent: the one that starts to announce itself, for the first
time or again after a break, while the other one is heard.
"""

import logging
import random
import time

logger = logging.getLogger(__name__)


class Namesakes:
    """Decides whether a replica with a shared address is silent. Used on the connection's loop."""

    def __init__(self, url: str, beat_seconds: float, silent_seconds: float) -> None:
        """Begin with nothing heard.

        Args:
            url: the address of this replica.
            beat_seconds: time between two announcements of a replica.
            silent_seconds: time without announcements after which a replica counts as gone.
        """
        self._url, self._beat, self._silent = url, beat_seconds, silent_seconds
        # All times are of time.monotonic().
        self._heard_at = self._silent_until = self._announced_at = -float("inf")
        # When this replica began to announce itself without breaks of `silent_seconds`.
        self._announces_since = time.monotonic()

    @property
    def silenced(self) -> bool:
        """Whether this replica is silent because another one has its address; on any thread."""
        return time.monotonic() < self._silent_until

    def may_announce(self) -> bool:
        """Return whether this replica may announce itself; if so, record that it does so now."""
        if self.silenced:
            return False
        now = time.monotonic()
        if now > self._announced_at + self._silent:  # this replica counted as gone
            self._announces_since = now
        self._announced_at = now
        return True

    def record_heard(self) -> None:
        """Record that another replica with the address was heard; become silent if it was first."""
        now = time.monotonic()
        if now > self._heard_at + self._silent:
            logger.error(
                "another replica has the same address, and the others cannot tell them apart: "
                "url=%s. Give each replica its own address with --advertise",
                self._url,
            )
        self._heard_at = now
        if self.silenced or now < self._announces_since + 2 * self._beat:
            # The time is random, so that one of several replicas that started together tries first.
            self._silent_until = now + self._silent * random.uniform(1, 3)
