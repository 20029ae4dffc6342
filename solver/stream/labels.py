"""The labels that a head has met, and their numbers 0, 1, 2, ... in the order of appearance."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

Label: TypeAlias = str | int | bool
# What all spellings of a label have in common.
LabelKey: TypeAlias = int | str

# As numbers are written: "01" is not 1, as postcodes and account numbers are not numbers.
_WHOLE_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0*)?", re.ASCII)
_TRUTH: Mapping[str, int] = {"true": 1, "false": 0}


@lru_cache(maxsize=1024)
def key_of(label: Label) -> LabelKey:
    """Return what all spellings of a label have in common: 1, "1", "1.0", true and "True" are one.

    A file or a program spells the labels of one column in several ways: a data frame has true or
    1.0 where its CSV has "True" or "1". Of a head the first spelling decides what it answers.
    """
    if type(label) is not str:
        return int(label)
    if _WHOLE_NUMBER.fullmatch(label):
        return int(label.partition(".")[0])
    return _TRUTH.get(label.lower(), label)


def text_of(label: Label | float) -> str:
    """Return a label as a name in JSON, where true and false are lower case."""
    return str(label).lower() if isinstance(label, bool) else str(label)
