"""`Prefer` (RFC 7240) on learning calls: a response before the samples are learned.

    respond-async     202 as soon as the samples are durable
    wait=N            200 if they are learned within N seconds, else 202; with respond-async too

A 202 always means that the samples are on disk: after N seconds it still waits for that. N is at
most `wait_seconds`, like the wait for a sequence; a longer one is shortened. A request that was
answered before under its idempotency key gets that answer. `Preference-Applied` names the
preferences that were honoured, with the N that was used. Other preferences, and those that cannot
be read, are ignored, as the RFC asks.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple


class Preference(NamedTuple):
    """What a client prefers. wait: seconds, None without this preference."""

    respond_async: bool
    wait: int | None

    def named(self) -> str:
        """Return the value of `Preference-Applied`."""
        names = ["respond-async"] if self.respond_async else []
        return ", ".join(names if self.wait is None else [*names, f"wait={self.wait}"])


class Acknowledgement(NamedTuple):
    """The answer to a learning call, with the response's status and headers."""

    answer: dict[str, Any]
    status: int
    headers: dict[str, str]


def read_preference(values: Sequence[str], most_seconds: float) -> Preference | None:
    """Return the preference in the `Prefer` headers of a request; None without one.

    most_seconds: bound on the wait, rounded down to whole seconds, but at least one.
    """
    given: dict[str, str] = {}
    for part in ",".join(values).split(","):
        name, _, value = part.partition(";")[0].partition("=")
        given.setdefault(name.strip().lower(), value.strip().strip('"'))
    wait, seconds = None, given.get("wait", "")
    if seconds.isascii() and seconds.isdecimal():
        # Any number of ten digits exceeds the bound.
        wait = min(int(seconds[:10]), max(1, int(most_seconds)))
    preference = Preference("respond-async" in given, wait)
    return preference if preference.named() else None


async def acknowledged(
    answer: "asyncio.Future[dict[str, Any]]",
    durable: "asyncio.Future[dict[str, Any]] | None",
    preference: Preference | None,
) -> Acknowledgement:
    """Wait for the answer, or only until the samples are durable if the client prefers that.

    answer, durable: of `Engine.submit`; durable is None without a preference. Raises what they
        raise.
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
            headers["Preference-Applied"] = preference.named()
            return Acknowledgement(durable.result(), 202, headers)
    learned = await answer
    if learned.pop("replayed", False):
        headers["Idempotency-Replayed"] = "true"
    return Acknowledgement(learned, 200, headers)


def _abandon(answer: "asyncio.Future[dict[str, Any]]") -> None:
    """Mark an answer, or its error, as no longer awaited."""
    if not answer.cancel():
        answer.exception()
