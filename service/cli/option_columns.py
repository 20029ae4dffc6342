"""The columns of a table that are no features: the options --label, --id and --weight."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from wolfstream.service.files.roles import Roles

_DEFAULT = "the one headed y, label, target or class"
_COLUMN = "Column of a table, by its name or its number from 1,"


def column_options(
    default: str = _DEFAULT,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options to a command, which gets them as `roles`. default: of --label, in words."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(
            *args: Any, label: str | None, id_column: str | None, weight: str | None, **more: Any
        ) -> Any:
            return command(*args, roles=Roles(label, id_column, weight), **more)

        return of_label(of_id(of_weight(called)))

    of_label = click.option(
        "--label", metavar="NAME|N", help=f"{_COLUMN} that has the labels.  [default: {default}]"
    )
    of_id = click.option(
        "--id",
        "id_column",
        metavar="NAME|N",
        help=f"{_COLUMN} that says what a row is about, which is no feature.",
    )
    of_weight = click.option(
        "--weight",
        metavar="NAME|N",
        help=f"{_COLUMN} that says how much a sample counts in learning.",
    )
    return add
