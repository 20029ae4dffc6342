"""What a replica has read of the catalogue: its models, and which of them follow others."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from service.storage.entries import CatalogueEntry


class KnownModels(NamedTuple):
    """The models of a fleet at a revision of the catalogue.

    made: models and when each was created, oldest first. champions: the names of the models that
    others follow, by the names of these; without models that are gone.
    """

    revision: int
    made: Sequence[tuple[CatalogueEntry, datetime]]
    champions: Mapping[str, str]


def known(revision: int, found: Sequence[tuple[CatalogueEntry, datetime]]) -> KnownModels:
    """Return what was read of the catalogue."""
    made = sorted(found, key=lambda one: one[0].number)
    names = {entry.number: entry.name for entry, _ in made}
    champions = {
        entry.name: names[entry.follows]
        for entry, _ in made
        if entry.follows is not None and entry.follows in names
    }
    return KnownModels(revision, made, champions)


NOTHING_KNOWN = known(0, ())
