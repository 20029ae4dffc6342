"""The calls of a client as steps, which leave all input and output to the caller.

A call is a generator: it yields the next effect (an HTTP request, a pause, a frame to send) and
is sent its outcome, or thrown the ClientError that it ended with. So each call is written once;
`run` and `run_async` carry it out over blocking and over asyncio connections.
"""

import logging
import random
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias, TypeVar

from wolfstream.service.client.errors import ClientError, Refused, Unreachable, may_pass

logger = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
# Without a word.
_SILENT_SECONDS = 1.0
RETRY_SECONDS = 60.0


class Request(NamedTuple):
    """An HTTP request, whose outcome is a Reply.

    again: whether it may be sent again after a lost response, because the server applies it
        once or because twice makes no difference.
    """

    method: str
    path: str
    body: bytes | None = None
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    again: bool = True


class Reply(NamedTuple):
    """An HTTP response; headers are found under lower-case names."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


class Pause(NamedTuple):
    """A wait of some seconds."""

    seconds: float


class Connect(NamedTuple):
    """Open a stream, in place of one that may be open; the outcome is the server's greeting."""

    query: Mapping[str, str]


class Transmit(NamedTuple):
    """Send a message over the stream."""

    message: bytes


class Receive(NamedTuple):
    """Wait for the stream's next message."""


Effect: TypeAlias = Request | Pause | Connect | Transmit | Receive
Steps: TypeAlias = Generator[Effect, Any, T]


def run(steps: Steps[T], do: Callable[[Effect], Any]) -> T:
    """Carry out the steps and return their result."""
    try:
        effect = next(steps)
        while True:
            try:
                outcome = do(effect)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result


async def run_async(steps: Steps[T], do: Callable[[Effect], Awaitable[Any]]) -> T:
    """Carry out the steps, awaiting each, and return their result."""
    try:
        effect = next(steps)
        while True:
            try:
                outcome = await do(effect)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result


class Retry:
    """How long the calls of a client are tried again.

    seconds: counted from a call's first failure, also while there is no server yet. None: for
        `RETRY_SECONDS`, but a server that was never reached is not waited for.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = RETRY_SECONDS if seconds is None else seconds
        self._waits_for_first = seconds is not None
        # Whether the server has ever answered.
        self.reached = False

    def may_help(self, error: ClientError) -> bool:
        """Return whether the same request may succeed later."""
        if isinstance(error, Unreachable) and not (self.reached or self._waits_for_first):
            return False
        return may_pass(error)


class Patience:
    """How long to wait before each retry, and when to give up.

    The pauses double from 0.1 s to 5 s, half of each at random, so that many clients do not
    retry at the same moment. A pause that the server asks for is kept. No attempt begins later
    than `retry.seconds` after the first failure. If that takes a second, it is logged, once.
    """

    def __init__(
        self,
        retry: Retry,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._retry = retry
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._since = 0.0
        self._warned = False

    def pause(self, error: ClientError) -> Pause:
        """Return the pause after a failure; raise the failure if waiting cannot help."""
        now = self._clock()
        if not self._failures:
            self._since = now
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures, 10))
        self._failures += 1
        seconds = longest * (1.0 + self._chance()) / 2
        asked = error.retry_after if isinstance(error, Refused) else None
        if asked is not None:
            seconds = asked * (1.0 + 0.1 * self._chance())
        end = self._since + self._retry.seconds
        if not self._retry.may_help(error) or now + seconds > end:
            self._begin_anew()
            raise error
        if now + seconds - self._since > _SILENT_SECONDS and not self._warned:
            self._warned = True
            until = datetime.now() + timedelta(seconds=end - now)
            logger.warning("%s; trying again until %s (`retry`)", error, f"{until:%H:%M:%S}")
        return Pause(seconds)

    def answered(self) -> None:
        """Note that there is a server, whatever its answer."""
        self._retry.reached = True

    def renew(self) -> None:
        """Count the next failure as the first one, after a success."""
        self.answered()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._failures, self._warned = 0, False
