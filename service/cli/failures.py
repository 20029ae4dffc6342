"""How commands fail: with one line, `Error: ...`, and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from wolfstream.service.errors import visible


class Failure(click.ClickException):
    """An error of a command, whose message may quote files of others."""

    def __init__(self, message: str) -> None:
        """Make the message safe to print."""
        super().__init__(visible(message, besides="\n"))


class NoConnection(Failure):
    """The server cannot be reached, or the connection to it was lost."""

    exit_code = 3


class Interrupted(Failure):
    """Ctrl-C, with the exit code that shells use."""

    exit_code = 130


@contextmanager
def as_failures(subject: object) -> Iterator[None]:
    """Turn the errors of the service and of files within the block into Failures.

    Args:
        subject: what the block works on, for errors of the system that name no file.
    """
    from wolfstream.service.errors import WolfstreamError

    try:
        yield
    except WolfstreamError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{error.filename or subject}: {error.strerror or error}") from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
