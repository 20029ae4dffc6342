"""Limits on the rows and numbers of a request, checked before the numbers are read."""

from collections.abc import Sequence
from typing import Any

from wolfstream.service.errors import InvalidSamples, TooLarge
from wolfstream.service.settings import Settings
from wolfstream.solver.prepare.named_rows import NamedRows, Rows, n_entries, n_rows


def check_size(body: Any, settings: Settings) -> None:
    """Raise TooLarge for too many rows in `x`, InvalidSamples for a row with too many numbers.

    A body without a valid `x` passes; it is refused when its numbers are read.
    """
    _check(*_size(body.get("x") if isinstance(body, dict) else None), settings)


def check_rows(rows: Rows, settings: Settings) -> None:
    """Check rows like `check_size`, for formats whose size is known only after reading them."""
    if isinstance(rows, NamedRows):
        _check(n_rows(rows), rows.lengths.tolist(), settings)
    else:
        _check(n_rows(rows), [n_entries(rows) // n_rows(rows)], settings)


def check_ids(body: Any, settings: Settings) -> None:
    """Raise TooLarge if there are labels for too many ids."""
    ids = body.get("ids") if isinstance(body, dict) else None
    if isinstance(ids, list):
        _check(len(ids), (), settings)


def _check(rows: int, widths: Sequence[int], settings: Settings) -> None:
    if rows > settings.request_rows:
        raise TooLarge(
            f"a request may have at most {settings.request_rows} rows, this one has {rows}; "
            "send smaller batches"
        )
    most = settings.row_numbers
    if max(widths, default=0) > most:
        i, width = next(pair for pair in enumerate(widths) if pair[1] > most)
        detail = f"has {width} numbers, a row may have at most {most}"
        raise InvalidSamples("a row is too long", [{"row": i, "pointer": "/x", "detail": detail}])


def _size(x: Any) -> tuple[int, Sequence[int]]:
    """Return the number of rows, and the numbers in each row; a raw array's rows count once."""
    if isinstance(x, dict):
        match x.get("shape"):
            case [int(rows), int(width)]:
                return rows, [width]
            case [int(width)]:
                return 1, [width]
        return 1, [len(x)]
    if not isinstance(x, list):
        return 0, []
    if x and isinstance(x[0], (list, dict)):
        return len(x), [len(row) if isinstance(row, (list, dict)) else 0 for row in x]
    return 1, [len(x)]
