"""First entries of buckets, written by replicas at the same time, and copies that lag."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.service.nats import MISSING, NatsServers, connected_server

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from nats.js.errors import KeyNotFoundError
from nats.js.kv import KeyValue

from wolfstream.service.access.keys import KeysError, add_key
from wolfstream.service.fleet import opening
from wolfstream.service.fleet.api_keys import FleetKeys
from wolfstream.service.fleet.bucket_watch import EntryTaken, create_entry
from wolfstream.service.fleet.connection import NatsConnection, NatsTimeout
from wolfstream.service.fleet.opening import identity
from wolfstream.service.fleet.streams import KEYS_BUCKET, MODELS_BUCKET, make_streams


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsConnection]:
    """A connection to a fresh server."""
    with connected_server(tmp_path / "nats") as connection:
        make_streams(connection, 8 << 20, 8 << 20)
        yield connection


@pytest.fixture
def lagging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no copy have any entry yet."""

    async def missing(*_: object, **__: object) -> None:
        raise KeyNotFoundError

    monkeypatch.setattr(KeyValue, "_get", missing)


@pytest.mark.usefixtures("lagging")
class TestCopiesThatLag:
    def test_do_not_hide_the_identity(self, nats: NatsConnection):
        assert identity(nats) == identity(nats)

    def test_do_not_hide_keys(self, nats: NatsConnection):
        keys, others = FleetKeys(nats), FleetKeys(nats)
        with pytest.raises(KeysError, match="changed at the same time"), keys.changing():
            add_key(others, "a", ("admin",))
        others.refresh()
        assert [key.name for key in others.read() or []] == ["a"]

    def test_do_not_hide_a_model(self, nats: NatsConnection):
        create(nats, MODELS_BUCKET, "model.m", b"first")
        with pytest.raises(EntryTaken):
            create(nats, MODELS_BUCKET, "model.m", b"second")


def create(nats: NatsConnection, bucket: str, key: str, content: bytes) -> int:
    return nats.run(create_entry(nats, bucket, key, content), 10)


def test_deleted_entry_is_written_again(nats: NatsConnection):
    create(nats, KEYS_BUCKET, "k", b"first")
    bucket = nats.run(nats.stream.key_value(KEYS_BUCKET), 10)
    nats.run(bucket.delete("k"), 10)
    create(nats, KEYS_BUCKET, "k", b"second")
    assert nats.run(bucket.get("k"), 10).value == b"second"


def test_damaged_keys_are_logged_once_and_the_last_ones_stay(
    nats: NatsConnection, caplog: pytest.LogCaptureFixture
):
    keys = FleetKeys(nats)
    add_key(keys, "a", ("admin",))
    keys.watch()
    bucket = nats.run(nats.stream.key_value(KEYS_BUCKET), 10)
    nats.run(bucket.put("keys", b"[{"), 10)
    deadline = time.monotonic() + 10
    while "are damaged" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1.0)  # the entry is read again and again
    assert caplog.text.count("are damaged") == 1
    assert [key.name for key in keys.read() or []] == ["a"]


def test_replicas_that_start_at_once_agree_on_the_identity(servers: NatsServers):
    nats = [NatsConnection(servers.addresses, "test") for _ in range(3)]
    try:
        make_streams(nats[0], 8 << 20, 8 << 20)
        with ThreadPoolExecutor(3) as starts:
            assert len(set(starts.map(identity, nats))) == 1
    finally:
        for one in nats:
            one.close()


def test_identity_is_asked_for_again_while_nobody_answers(
    nats: NatsConnection, monkeypatch: pytest.MonkeyPatch
):
    asked = list[str]()

    async def unanswered_at_first(_: str, subject: str) -> None:
        asked.append(subject)
        if len(asked) < 3:
            raise NatsTimeout("no server holds the stream now")

    monkeypatch.setattr(opening, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(nats, "last_of_leader", unanswered_at_first)
    assert identity(nats)
    assert len(asked) == 4  # and once more before it is written
