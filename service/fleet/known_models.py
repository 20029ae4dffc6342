"""What a replica has read of the catalogue: its models, and which of them follow others."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from wolfstream.service.storage.entries import CatalogueEntry


class KnownModels(NamedTuple):
    """The models of a fleet at a revision of the catalogue.

    made: models and when each was created, oldest first. champions: the names of the models that
    others follow, by the names of these; without models that are gone. numbers: of all models.
    learners: how many those models have that have several, by their names.
    """

    revision: int
    made: Sequence[tuple[CatalogueEntry, datetime]]
    champions: Mapping[str, str]
    numbers: frozenset[int]
    learners: Mapping[str, int]


def known(revision: int, found: Sequence[tuple[CatalogueEntry, datetime]]) -> KnownModels:
    """Return what was read of the catalogue."""
    made = sorted(found, key=lambda one: one[0].number)
    names = {entry.number: entry.name for entry, _ in made}
    champions = {
        entry.name: names[entry.follows]
        for entry, _ in made
        if entry.follows is not None and entry.follows in names
    }
    learners = {
        entry.name: int(entry.spec["learners"]) for entry, _ in made if "learners" in entry.spec
    }
    numbers = frozenset(entry.number for entry, _ in made)
    return KnownModels(revision, made, champions, numbers, learners)


NOTHING_KNOWN = known(0, ())
