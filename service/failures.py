"""How commands end when they do not succeed: one line, `Error: ...`, and an exit code."""

import click


class Failure(click.ClickException):
    """An error in one line, `Error: ...`."""


class NoConnection(Failure):
    """The server cannot be reached, or it was lost on the way."""

    exit_code = 3


class Interrupted(Failure):
    """Ctrl-C, with the exit code that shells give to it."""

    exit_code = 130
