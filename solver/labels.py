"""Tasks and labels, and what different spellings of a label have in common."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

# What y is: labels of classes, or numbers.
Task = Literal["classification", "regression"]
Label: TypeAlias = str | int | bool
# Equal for all spellings of a label.
LabelKey: TypeAlias = int | str

# "01" is not 1: postcodes and account numbers are not numbers.
_WHOLE_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0*)?", re.ASCII)
_TRUTH: Mapping[str, int] = {"true": 1, "false": 0}


@lru_cache(maxsize=1024)
def key_of(label: Label) -> LabelKey:
    """Return the key of a label; that of 1, "1", "1.0", true and "True" is the same.

    The labels of one column may be spelled in several ways: a data frame has true or 1.0 where its
    CSV has "True" or "1". A head predicts the first spelling that it has met.
    """
    if type(label) is not str:
        return int(label)
    if _WHOLE_NUMBER.fullmatch(label):
        return int(label.partition(".")[0])
    return _TRUTH.get(label.lower(), label)


def text_of(label: Label | float) -> str:
    """Return a label as a key of a JSON object, true and false in lower case."""
    return str(label).lower() if isinstance(label, bool) else str(label)
