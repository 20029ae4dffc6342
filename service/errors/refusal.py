"""The base of all errors, and the fields that clients get."""

from typing import ClassVar, Literal, TypeAlias, TypedDict

# What became of the samples of a request that was answered with an error.
Outcome: TypeAlias = Literal["not-learned", "durable", "unknown"]


class WolfstreamError(Exception):
    """Base of all errors raised on purpose."""


class StartupError(WolfstreamError):
    """The server cannot start; the message says what to do about it."""


class SampleError(TypedDict, total=False):
    """One error in a request: its `row` if it has one, JSON `pointer` and `detail`.

    line: of the row, counted from 1, in a body of lines.
    """

    row: int
    line: int
    pointer: str
    detail: str


def pointer_to(*path: object) -> str:
    """Return the JSON pointer (RFC 6901) of a place."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


class Refusal(WolfstreamError):
    """A request that is refused as a whole.

    outcome: of its samples. "durable": on disk, and learned after a restart at the latest.
    """

    outcome: ClassVar[Outcome] = "not-learned"
    slug: ClassVar[str] = "refused"
    title: ClassVar[str] = "The request was refused"

    def __init__(self, detail: str, errors: list[SampleError] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []
