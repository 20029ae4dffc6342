"""The labels that a head has met, and their numbers 0, 1, 2, ... in the order of appearance."""

from typing import TypeAlias

Label: TypeAlias = str | int | bool
# A label with its type: JSON's true and 1 are different labels; in Python they are equal.
LabelKey: TypeAlias = tuple[type, Label]


def key_of(label: Label) -> LabelKey:
    """Return what makes a label another one than those that are equal to it."""
    return type(label), label


def text_of(label: Label | float) -> str:
    """Return a label as a name in JSON, where true and false are lower case."""
    return str(label).lower() if isinstance(label, bool) else str(label)
