"""The three interfaces of durable storage, and what all of them promise.

"Durable" means on disk: no crash of the process or the machine undoes it. Writing raises
StorageFailed if nothing was written, and InDoubt if that is unknown. Reading at start raises
StartupError if something is missing or damaged.

Only the writer's thread calls them, except `Snapshots`, which any thread may use. A model is
identified by its number in the catalogue, which is never reused.
"""

from typing import NamedTuple

from wolfstream.service.storage.catalogue import Catalogue
from wolfstream.service.storage.journal import Journal
from wolfstream.service.storage.snapshots import Snapshots


class Storage(NamedTuple):
    """The storage of one server."""

    journal: Journal
    catalogue: Catalogue
    snapshots: Snapshots

    def close(self) -> None:
        """Close the journal, and the catalogue with it."""
        self.journal.close()
