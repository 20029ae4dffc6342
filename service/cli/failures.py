"""The ways in which commands fail: one line, `Error: ...`, and an exit code."""

import click

from wolfstream.service.errors.visible_text import visible


class Failure(click.ClickException):
    """An error in one line, `Error: ...`, which may quote a file that others made."""

    def __init__(self, message: str) -> None:
        super().__init__(visible(message, besides="\n"))


class NoConnection(Failure):
    """The server cannot be reached, or the connection to it was lost."""

    exit_code = 3


class Interrupted(Failure):
    """Ctrl-C, with the exit code that shells use for it."""

    exit_code = 130
