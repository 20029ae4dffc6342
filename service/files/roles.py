"""Finds the columns of a table that are not features: labels, ids and weights.

The user may name the label. Otherwise only a column with an unmistakable name is taken as the
label: refusing the table, with a list of its columns, is better than silently learning another
column.
"""

from collections.abc import Sequence
from typing import NamedTuple

from wolfstream.service.files.text import DataFileError

LABEL_COLUMNS = ("y", "label", "target", "class")
_MOST_LISTED, _LONGEST_LISTED = 50, 40


class Roles(NamedTuple):
    """Columns that are not features, each given by its name, or its number from 1.

    Attributes:
        label: the column of labels; by default the only column with a name in `LABEL_COLUMNS`.
        id: the column that identifies a row.
        weight: the column of sample weights.
    """

    label: str | None = None
    id: str | None = None
    weight: str | None = None


NO_ROLES = Roles()


class RolePlaces(NamedTuple):
    """Indices of a table's columns that are not features; None if it has no such column."""

    label: int | None
    id: int | None
    weight: int | None


def find_roles(names: Sequence[str], roles: Roles, labelled: bool | None) -> RolePlaces:
    """Return the indices of the columns that are not features. Raises DataFileError.

    Args:
        names: the names of all columns.
        roles: the columns that the user names.
        labelled: whether there must be labels; None if they may be missing; False if only a column
            that the user names has them.
    """
    label = None
    if roles.label is not None:
        label = _place_of(names, roles.label, "label", must=labelled is not False)
    elif labelled is not False:
        label = unmistakable_label(names)
        if label is None and labelled:
            raise DataFileError(
                "none of the columns is named y, label, target or class, so say which one has the "
                f"labels, {_how('label')}: {listed_columns(names)}"
            )
    id_place = None if roles.id is None else _place_of(names, roles.id, "id")
    weight = None
    if roles.weight is not None:
        weight = _place_of(names, roles.weight, "weight", must=labelled is True)
    taken = [place for place in (label, id_place, weight) if place is not None]
    if len(set(taken)) < len(taken):
        raise DataFileError("label, id and weight must be different columns")
    return RolePlaces(label, id_place, weight)


def unmistakable_label(names: Sequence[str]) -> int | None:
    """Return the index of the only column with a label's name; None without one.

    Of y and Y, y is the label. Raises DataFileError if several columns could be it.
    """
    folded = [i for i, name in enumerate(names) if name.lower() in LABEL_COLUMNS]
    if len({names[i].lower() for i in folded}) == 1:
        folded = [i for i in folded if names[i].islower()] or folded
    if len(folded) > 1:
        both = " and ".join(names[i] for i in folded)
        raise DataFileError(f"{both} could each be the label: say which one, {_how('label')}")
    return folded[0] if folded else None


def listed_columns(names: Sequence[str]) -> str:
    """Return the names of columns for a message, shortened if there are many."""
    shown = ", ".join(name[:_LONGEST_LISTED] or "(no name)" for name in names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return f"{shown} and {more:,} more" if more > 0 else shown


def _place_of(names: Sequence[str], wanted: str, role: str, *, must: bool = True) -> int | None:
    if wanted in names:
        return names.index(wanted)
    if wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    if not must:
        return None
    # Clients come without numerics, and need this for an error only.
    from wolfstream.solver.prepare.nearest_name import nearest_name

    folded = {name.casefold().strip(): name for name in names}
    meant = folded.get(wanted.casefold().strip()) or nearest_name(wanted, names)
    hint = "" if meant is None else f" (did you mean {meant[:_LONGEST_LISTED]!r}?)"
    raise DataFileError(
        f"there is no column {wanted[:_LONGEST_LISTED]!r}; choose the {role}{hint}, {_how(role)}, "
        f"among {listed_columns(names)}"
    )


def _how(role: str) -> str:
    return f"as {role}=NAME or --{role} NAME"
