"""Says what of a table is left out: titles, a line of sums, and columns without a name."""

from collections.abc import Sequence
from typing import NamedTuple

MOST_LISTED = 16
"""The most parts of a table that are listed one by one."""


class LeftOut(NamedTuple):
    """A part of a table that is left out.

    Attributes:
        slug: names what it is, for programs.
        message: a sentence that says which part it is, and why it is left out.
    """

    slug: str
    message: str


def left_out_parts(titles: int, unnamed: Sequence[int], sums: int = 0) -> list[LeftOut]:
    """Return the parts of a table that are left out, MOST_LISTED at most.

    Args:
        titles: the number of lines above the header that are titles.
        unnamed: numbers, from 1, of columns without a name.
        sums: the line with sums of the rows; 0 without one.
    """
    parts = list[LeftOut]()
    if titles:
        lines = "line 1 is" if titles == 1 else f"lines 1 to {titles} are"
        message = (
            f"{lines} left out as titles: line {titles + 1} is the header, by its words and the "
            "rows below it"
        )
        parts.append(LeftOut("lines-left-out", message))
    if sums:
        message = f"line {sums} is left out: it has sums or means of the lines above it"
        parts.append(LeftOut("lines-left-out", message))
    for number in unnamed[: MOST_LISTED - len(parts)]:
        message = (
            f"column {number} has no name, as an index that a data frame wrote, and is left out; "
            "give it a name to have it learned"
        )
        parts.append(LeftOut("column-left-out", message))
    return parts
