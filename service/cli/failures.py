"""The ways in which commands fail: one line, `Error: ...`, and an exit code."""

import click


class Failure(click.ClickException):
    """An error in one line, `Error: ...`."""


class NoConnection(Failure):
    """The server cannot be reached, or the connection to it was lost."""

    exit_code = 3


class Interrupted(Failure):
    """Ctrl-C, with the exit code that shells use for it."""

    exit_code = 130
