"""What durable storage promises, whatever journal it has, and its three interfaces together.

The writer's thread makes all calls, except those of `Snapshots`, which any thread may make. A
model is known by the number that the catalogue gave it, which is never given to another model.

"Durable" means on disk: no crash of the process or the machine takes it back. Writing raises
StorageFailed where nothing was written, and InDoubt where that is unknown. What is read at start
raises StartupError where it is missing or damaged.
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
        """Close the journal, and with it the catalogue."""
        self.journal.close()
