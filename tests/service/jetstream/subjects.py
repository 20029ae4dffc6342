"""Subjects, and patterns of them with wildcards."""

from functools import lru_cache


@lru_cache(maxsize=4096)
def matches(pattern: str, subject: str) -> bool:
    """Return whether a pattern covers a subject, which may itself have wildcards.

    `*` stands for one token, `>` for one or more at the end.
    """
    wanted, found = pattern.split("."), subject.split(".")
    for place, token in enumerate(wanted):
        if token == ">":
            return len(found) > place
        if place >= len(found) or found[place] == ">":
            return False
        if token not in ("*", found[place]):
            return False
    return len(wanted) == len(found)


def collide(one: str, other: str) -> bool:
    """Return whether there is a subject that two patterns both cover."""
    for a, b in zip(one.split("."), other.split("."), strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return one.count(".") == other.count(".")


def has_wildcard(subject: str) -> bool:
    """Return whether a subject is a pattern."""
    return any(token in ("*", ">") for token in subject.split("."))
