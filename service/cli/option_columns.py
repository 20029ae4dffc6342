"""The options --label, --id and --weight: the columns of a table that are not features."""

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
    """Return a decorator that adds the options to a command, which gets them as `roles`.

    Args:
        default: of --label, for the help text.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def command_with_roles(
            *args: Any, label: str | None, id_column: str | None, weight: str | None, **more: Any
        ) -> Any:
            return command(*args, roles=Roles(label, id_column, weight), **more)

        return label_option(id_option(weight_option(command_with_roles)))

    label_option = click.option(
        "--label", metavar="NAME|N", help=f"{_COLUMN} that has the labels.  [default: {default}]"
    )
    id_option = click.option(
        "--id",
        "id_column",
        metavar="NAME|N",
        help=f"{_COLUMN} that identifies a row; it is not a feature.",
    )
    weight_option = click.option(
        "--weight",
        metavar="NAME|N",
        help=f"{_COLUMN} that has the weights of the samples.",
    )
    return add
