"""The models of a fleet, as a replica has last read them from the catalogue."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from wolfstream.service.storage.entries import CatalogueEntry


class FleetModels(NamedTuple):
    """The models of a fleet at one revision of the catalogue."""

    revision: int
    created: Sequence[tuple[CatalogueEntry, datetime]]  # oldest first
    champions: Mapping[str, str]  # challenger -> champion, if it still exists
    numbers: frozenset[int]  # of all models


def fleet_models(revision: int, created: Sequence[tuple[CatalogueEntry, datetime]]) -> FleetModels:
    """Return the models of a revision.

    Args:
        revision: the catalogue's revision.
        created: (model, when it was created) of each model, in any order.
    """
    created = sorted(created, key=lambda pair: pair[0].number)
    names = {entry.number: entry.name for entry, _ in created}
    champions = {
        entry.name: names[entry.follows]
        for entry, _ in created
        if entry.follows is not None and entry.follows in names
    }
    numbers = frozenset(entry.number for entry, _ in created)
    return FleetModels(revision, created, champions, numbers)


NO_MODELS = fleet_models(0, ())
