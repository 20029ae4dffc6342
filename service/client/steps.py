"""Calls of a client as steps, which leave all input and output to the caller.

A call is a generator. It yields effects (an HTTP request, a pause, a message to send); for each it
is sent the outcome, or the ClientError of a failure is thrown into it. So each call is written
once: `run` and `run_async` carry it out over blocking and over asyncio connections, and `blocking`
and `awaited` make the methods of clients and streams that do so.
"""

import functools
import inspect
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from datetime import datetime, timedelta
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar, get_args

from wolfstream.service.client.errors import ClientError, Refused, Unreachable, may_pass

logger = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
# Retries within this time are not logged.
_SILENT_SECONDS = 1.0
RETRY_SECONDS = 60.0


class Request(NamedTuple):
    """An HTTP request; the outcome is a Reply."""

    method: str
    path: str
    body: bytes | None = None
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    # Whether it may be sent again after a lost response: the server applies it once, or applying it
    # twice makes no difference.
    repeatable: bool = True


class Reply(NamedTuple):
    """An HTTP response, with the names of headers in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


class Pause(NamedTuple):
    """A wait of some seconds."""

    seconds: float


class Work(NamedTuple):
    """Something that takes a while, such as reading a file; the outcome is what it returns."""

    do: Callable[[], Any]


class Connect(NamedTuple):
    """Open a stream, and close the one before; the outcome is the server's greeting."""

    query: Mapping[str, str]


class Transmit(NamedTuple):
    """Send a message over the stream."""

    message: bytes


class Receive(NamedTuple):
    """Wait for the stream's next message, which is the outcome."""


Effect: TypeAlias = Request | Pause | Work | Connect | Transmit | Receive
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


def blocking(call: Callable[Concatenate[Any, P], Steps[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return the method of a blocking client or stream that carries out a call.

    Args:
        call: a method of the class of the object's `_calls`. The object's `_run` runs its steps.
    """

    @functools.wraps(call)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._run(call(self._calls, *args, **kwargs))
        return result

    _set_signature(method, call)
    return method


def awaited(
    call: Callable[Concatenate[Any, P], Steps[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the method of a client or stream for asyncio that carries out a call; see `blocking`.

    Args:
        call: a method of the class of the object's `_calls`.
    """

    @functools.wraps(call)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._run(call(self._calls, *args, **kwargs))
        return result

    _set_signature(method, call)
    return method


def _set_signature(method: Any, call: Callable[..., Any]) -> None:
    """Show the parameters of a call and the type of its result as those of a method."""
    signature = inspect.signature(call)
    result = get_args(signature.return_annotation)[-1]
    method.__signature__ = signature.replace(return_annotation=result)


class Retry:
    """How long the calls of a client are tried again.

    Attributes:
        seconds: from a call's first failure.
        reached: whether the server has ever responded.
    """

    def __init__(self, seconds: float | None = None) -> None:
        """Begin before the first call.

        Args:
            seconds: from a call's first failure, also while there is no server yet. None means
                `RETRY_SECONDS`, but not before the server was reached for the first time.
        """
        self.seconds = RETRY_SECONDS if seconds is None else seconds
        self._waits_for_server = seconds is not None
        self.reached = False

    def may_help(self, error: ClientError) -> bool:
        """Return whether the same request may succeed later."""
        if isinstance(error, Unreachable) and not (self.reached or self._waits_for_server):
            return False
        return may_pass(error)


class Backoff:
    """The pauses before retries of one call, and when to give up.

    Pauses double from 0.1 s to 5 s. Up to half of each is left out at random, so that many clients
    do not retry at the same moment. If the server asks for a pause, that is used instead. No
    attempt begins later than `retry.seconds` after the first failure. Retrying for more than a
    second is logged once.
    """

    def __init__(
        self,
        retry: Retry,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Begin without failures.

        Args:
            retry: of the client.
            clock: returns the time in seconds.
            chance: returns random numbers in [0, 1).
        """
        self._retry = retry
        self._clock = clock
        self._chance = chance
        self._failures = 0  # in a row
        self._since = 0.0  # time of the first of them
        self._warned = False  # whether retrying was logged

    def pause(self, error: ClientError) -> Pause:
        """Return the pause after a failure; raise the failure if waiting cannot help."""
        now = self._clock()
        if not self._failures:
            self._since = now
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures, 10))
        self._failures += 1
        seconds = longest * (1.0 + self._chance()) / 2
        retry_after = error.retry_after if isinstance(error, Refused) else None
        if retry_after is not None:
            seconds = retry_after * (1.0 + 0.1 * self._chance())
        end = self._since + self._retry.seconds
        if not self._retry.may_help(error) or now + seconds > end:
            self._forget_failures()
            raise error
        if now + seconds - self._since > _SILENT_SECONDS and not self._warned:
            self._warned = True
            until = datetime.now() + timedelta(seconds=end - now)
            logger.warning("%s; trying again until %s (`retry`)", error, f"{until:%H:%M:%S}")
        return Pause(seconds)

    def record_answer(self) -> None:
        """Record that the server has responded, with whatever status."""
        self._retry.reached = True

    def reset(self) -> None:
        """Record a success: the next failure is the first again."""
        self.record_answer()
        self._forget_failures()

    def _forget_failures(self) -> None:
        self._failures, self._warned = 0, False
