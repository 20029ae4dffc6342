"""The body of every refusal, and of health."""

from typing import NotRequired

from wolfstream.service.calls.values import Body, Count
from wolfstream.service.errors import Outcome


class Fault(Body):
    """One place of a request that is wrong."""

    detail: str
    row: NotRequired[Count]
    line: NotRequired[Count]
    """Line of the row in a body of lines, counted from 1."""
    pointer: NotRequired[str]


class Problem(Body):
    """RFC 9457: what is wrong, and where."""

    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[list[Fault]]
    retry_after_seconds: NotRequired[Count]
    outcome: NotRequired[Outcome]
    """The outcome for samples that were to be learned. `durable`: they are on disk, and learned
    after a restart at the latest."""
    request_id: NotRequired[str]
    """The client's `X-Request-ID`, or a new one; the log has it too."""


class Status(Body):
    """What the server says of itself."""

    status: str
    compiling: NotRequired[str]
    """How much of the code for all kinds of models is compiled."""
    broken: NotRequired[str]
    """How many models learn nothing more, if any."""
