"""How commands fail: with one line, `Error: ...`, and an exit code."""

import click

from wolfstream.service.errors.visible_text import visible


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
