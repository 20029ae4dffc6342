"""Confirmation of commands that cannot be undone, or not easily."""

import sys
from collections.abc import Callable
from typing import Any

import click


def ask_first(prompt: str) -> Callable[[Any], Any]:
    """Return a decorator that makes a command ask first, unless `--yes` is given.

    Args:
        prompt: the question.
    """

    def ask(_: click.Context, __: click.Parameter, yes: bool) -> None:
        if yes:
            return
        try:
            agreed = click.confirm(prompt)
        except click.Abort:
            if sys.stdin.isatty():
                raise
            raise click.UsageError("there is no terminal to ask on; confirm with --yes") from None
        if not agreed:
            raise click.Abort

    return click.option(
        "--yes",
        is_flag=True,
        expose_value=False,
        callback=ask,
        help="Do not ask; needed where there is no terminal.",
    )
