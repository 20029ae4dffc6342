"""Tables as text."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return the lines of a table, the first row its head, with columns as wide as needed."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
