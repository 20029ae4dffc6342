"""When snapshots are made, and what they let the journal forget.

The journal and the snapshots of these tests are in memory.
"""

from collections.abc import Iterator

import pytest

from tests.service.engine.test_commits import Server


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.writer.close()


def test_what_is_handed_over_while_it_is_saved_keeps_its_snapshots(server: Server) -> None:
    """Another replica reads them."""
    server.send((server.a, 0, None))
    server.writer.snapshots.start(server.a)[1].result()
    server.writer.models.release(server.a)
    server.writer.snapshots.finish(wait=True)
    assert list(server.memory.saved[server.a.id]) == [10]


def test_what_is_deleted_while_it_is_saved_leaves_no_snapshot(server: Server) -> None:
    server.send((server.a, 0, None))
    server.writer.snapshots.start(server.a)[1].result()
    server.writer.models.delete(server.a)
    server.writer.snapshots.finish(wait=True)
    assert server.a.id not in server.memory.saved
