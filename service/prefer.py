"""`Prefer` (RFC 7240) on learning calls: an answer before the samples are learned.

    respond-async     202 as soon as the samples are durable
    wait=N            the answer if it is there within N seconds, else 202; with respond-async too

202 is said of samples on disk only: what is not there yet after N seconds is waited for. N is at
most `wait_seconds`, like the wait for a sequence; a longer one is shortened. A request that came
before under its idempotency key gets its answer. `Preference-Applied` names what was honoured,
with the N that it was. Other preferences, and those that cannot be read, are passed over, as the
RFC wants it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple


class Preference(NamedTuple):
    """What a client prefers; wait: seconds, None where it does not say."""

    respond_async: bool
    wait: int | None

    def named(self) -> str:
        """As `Preference-Applied` has it."""
        names = ["respond-async"] if self.respond_async else []
        return ", ".join(names if self.wait is None else [*names, f"wait={self.wait}"])


class Acknowledgement(NamedTuple):
    """What a learning call is answered, and with which status and headers."""

    answer: dict[str, Any]
    status: int
    headers: dict[str, str]


def read_preference(values: Sequence[str], most_seconds: float) -> Preference | None:
    """The preference in the `Prefer` headers of a request; None where there is none.

    most_seconds: bound on the wait, of which whole seconds count, but one at least.
    """
    given: dict[str, str] = {}
    for part in ",".join(values).split(","):
        name, _, value = part.partition(";")[0].partition("=")
        given.setdefault(name.strip().lower(), value.strip().strip('"'))
    wait, seconds = None, given.get("wait", "")
    if seconds.isascii() and seconds.isdecimal():
        # Of ten digits any are too many.
        wait = min(int(seconds[:10]), max(1, int(most_seconds)))
    preference = Preference("respond-async" in given, wait)
    return preference if preference.named() else None


async def acknowledged(
    answer: "asyncio.Future[dict[str, Any]]",
    durable: "asyncio.Future[dict[str, Any]] | None",
    preference: Preference | None,
) -> Acknowledgement:
    """Wait for the answer, or for less if that is preferred; raises what the answer raises.

    answer, durable: of `Engine.submit`; durable is there where a preference is.
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
    told = await answer
    if told.pop("replayed", False):
        headers["Idempotency-Replayed"] = "true"
    return Acknowledgement(told, 200, headers)


def _abandon(answer: "asyncio.Future[dict[str, Any]]") -> None:
    """Nobody waits for it any more, nor for its error."""
    if not answer.cancel():
        answer.exception()
