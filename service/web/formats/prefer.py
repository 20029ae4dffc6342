"""`Prefer` (RFC 7240) on learning calls: a response before the samples are learned.

    respond-async     202 as soon as the samples are durable
    wait=N            200 if they are learned within N seconds, else 202; with respond-async too

A 202 always means that the samples are on disk; the response waits for that even after N seconds. N
is at most the setting `wait_seconds`. A request that was answered before under its idempotency key
gets the same answer. `Preference-Applied` has the preferences that were honoured, with the N that
was used. Unknown and invalid preferences are ignored, as the RFC requires.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple


class Preference(NamedTuple):
    """The preferences of a client."""

    respond_async: bool
    wait: int | None  # seconds; None without this preference

    def header_value(self) -> str:
        """Return the value of `Preference-Applied`."""
        names = ["respond-async"] if self.respond_async else []
        return ", ".join(names if self.wait is None else [*names, f"wait={self.wait}"])


class Acknowledgement(NamedTuple):
    """The answer to a learning call, with the status and headers of the response."""

    answer: dict[str, Any]
    status: int
    headers: dict[str, str]


def read_preference(values: Sequence[str], max_seconds: float) -> Preference | None:
    """Return the preference in the `Prefer` headers of a request; None if it has none.

    Args:
        values: the values of the headers.
        max_seconds: the longest wait; rounded down to whole seconds, but at least one second.
    """
    given: dict[str, str] = {}
    for part in ",".join(values).split(","):
        name, _, value = part.partition(";")[0].partition("=")
        given.setdefault(name.strip().lower(), value.strip().strip('"'))
    wait, seconds = None, given.get("wait", "")
    if seconds.isascii() and seconds.isdecimal():
        # Ten digits suffice to exceed any bound, and more need not be parsed.
        wait = min(int(seconds[:10]), max(1, int(max_seconds)))
    preference = Preference("respond-async" in given, wait)
    return preference if preference.header_value() else None


async def acknowledge(
    answer: "asyncio.Future[dict[str, Any]]",
    durable: "asyncio.Future[dict[str, Any]] | None",
    preference: Preference | None,
) -> Acknowledgement:
    """Wait until the samples are learned, or only until they are durable if the client prefers it.

    Args:
        answer: done once the samples are learned.
        durable: done once they are on disk; None without a preference.
        preference: the client's preference; None without one.

    Raises the exceptions of the two futures.
    """
    headers = {}
    if preference is not None and durable is not None:
        if preference.wait:
            await asyncio.wait({answer}, timeout=preference.wait)
            if answer.done():
                headers["Preference-Applied"] = f"wait={preference.wait}"
        if not answer.done():
            await asyncio.wait({answer, durable}, return_when=asyncio.FIRST_COMPLETED)
        if durable.done() and (preference.wait is None or not answer.done()):
            _abandon(answer)
            headers["Preference-Applied"] = preference.header_value()
            return Acknowledgement(durable.result(), 202, headers)
    learned = await answer
    if learned.pop("replayed", False):
        headers["Idempotency-Replayed"] = "true"
    return Acknowledgement(learned, 200, headers)


def _abandon(answer: "asyncio.Future[dict[str, Any]]") -> None:
    """Cancel an answer for which nobody waits."""
    if not answer.cancel():
        answer.exception()  # otherwise asyncio logs the exception, because nobody has read it
