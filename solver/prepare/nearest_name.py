"""The known name that may be meant by an unknown one."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

# Names that are compared: to compare one takes some 50 microseconds.
MOST_COMPARED = 500
_LONGEST_COMPARED = 40
_LENGTHS = 2


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a name; None if none is like it.

    Of many names, those of about its length with its first letter are compared first, then those of
    about its length, then others: at most MOST_COMPARED.
    """
    asked = name[:_LONGEST_COMPARED]
    near, alike, others = list[str](), list[str](), list[str]()
    for one in known:
        if len(one) > 2 * _LONGEST_COMPARED:
            continue
        if abs(len(one) - len(asked)) > _LENGTHS:
            others.append(one)
        elif one[:1] == asked[:1]:
            near.append(one)
        else:
            alike.append(one)
    compared = islice((one for names in (near, alike, others) for one in names), MOST_COMPARED)
    close = get_close_matches(asked, list(compared), 1)
    return close[0] if close else None
