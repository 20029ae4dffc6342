"""The known name that may be meant by an unknown one."""

from collections.abc import Collection
from difflib import get_close_matches
from itertools import chain, islice

# Names that are compared: to compare two takes 0.1 ms, and thrice that if they have two letters.
MOST_COMPARED = 50
_LONGEST_COMPARED = 40
_LENGTHS = 2
_BEGINNING = 2


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most like a name; None if none is like it.

    Of many names, those of about its length that begin as it does are compared first, then those of
    about its length, then others: at most MOST_COMPARED. Names are compared as far as their first
    40 characters, and much longer ones not at all.
    """
    asked, begins = name[:_LONGEST_COMPARED], name[:_BEGINNING]
    short = [given for given in known if len(given) <= 2 * _LONGEST_COMPARED]
    alike = [given for given in short if abs(len(given) - len(name)) <= _LENGTHS]
    near = [given for given in alike if given.startswith(begins)]
    first = dict.fromkeys(chain(*(names[:MOST_COMPARED] for names in (near, alike, short))))
    compared = {given[:_LONGEST_COMPARED]: given for given in islice(first, MOST_COMPARED)}
    close = get_close_matches(asked, compared, 1)
    return compared[close[0]] if close else None
