"""The stand-in on a loop whose time is not real: it takes no time, and repeats exactly."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("nats")

from nats.aio.msg import Msg

from tests.service.jetstream import operations as on
from tests.service.jetstream.network import (
    Behind,
    Call,
    Fate,
    Held,
    Kind,
    Late,
    Lost,
    Network,
    Odds,
    RandomNetwork,
    RefusedWith,
    ScriptedNetwork,
    Unheard,
)
from tests.service.jetstream.server import Server
from tests.service.jetstream.virtual_time import VirtualLoop, connected
from tests.service.jetstream.wire import Wire
from wolfstream.service.fleet.batches import Message, send
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.streams import make_bucket


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.end()


def test_time_out_passes_virtually(loop: VirtualLoop) -> None:
    network = ScriptedNetwork()
    nats = connected(Wire(Server(), network), loop, "a")
    nats.run(on.create()(nats.client, "S"), 9)
    network.next(Lost(timed=True), Late(there=1.5, back=9), kind=Kind.APPEND)
    for passed in (2.0, 4.0):
        with pytest.raises(NatsTimeout):
            nats.run(send(nats, [Message("S.m", b"m", 0)]), 9)
        assert loop.time() == passed
    assert nats.run(nats.last_of_leader("S", "S.m"), 9) is not None


def test_silent_copy_is_asked_again(loop: VirtualLoop) -> None:
    network = ScriptedNetwork()
    nats = connected(Wire(Server(), network), loop, "a")
    nats.run(on.create()(nats.client, "S"), 9)
    network.next(Lost(timed=True), Behind(), kind=Kind.READ)
    nats.run(send(nats, [Message("S.m", b"m", 0)]), 9)
    request = {"last_by_subj": "S.m"}
    assert [len(nats.run(nats.get("S", request), 9)) for _ in range(2)] == [1, 1]
    nats.run(asyncio.sleep(11), 20)
    assert nats.run(nats.get("S", request), 9) == []


def test_quiet_watch_lasts_an_hour(loop: VirtualLoop) -> None:
    nats = connected(Wire(Server()), loop, "a")

    async def watch() -> list[Any]:
        await make_bucket(nats, "b")
        bucket = await nats.stream.key_value("b")
        watcher = await bucket.watch(">")
        await asyncio.sleep(3600)
        await bucket.put("k", b"v")
        first = await watcher.updates(5)  # type: ignore[no-untyped-call]
        told = await watcher.updates(5)  # type: ignore[no-untyped-call]
        return [first, told.revision]

    assert nats.run(watch(), 4000) == [None, 1]
    assert loop.time() >= 3600


_ODDS: Odds = {
    Kind.APPEND: [
        (Unheard(timed=True), 5),
        (Lost(timed=True), 5),
        (Held(past=3), 5),
        (RefusedWith(10164), 5),
        (Late(0.3, 0.1), 20),
    ],
    Kind.READ: [(Behind(2), 10), (Lost(timed=True), 5), (Late(0.01), 30)],
    Kind.PUBLISH: [(Lost(), 20), (Late(0.7), 20)],
    Kind.PUSH: [(Lost(), 10), (Late(0.2), 20)],
}


class _Recorded(Network):
    """Notes each fate and its moment."""

    def __init__(self, of: Network, loop: asyncio.AbstractEventLoop) -> None:
        self._of, self._loop, self.fates = of, loop, list[tuple[float, Call, Fate]]()

    def fate(self, call: Call) -> Fate:
        fate = self._of.fate(call)
        self.fates.append((self._loop.time(), call, fate))
        return fate


def recorded(seed: int) -> tuple[list[tuple[float, Call, Fate]], list[int]]:
    """Return the fates of what three rivals send, and the messages of each of them at the end."""
    loop = VirtualLoop()
    wire = Wire(Server())
    replicas = [connected(wire, loop, name) for name in "abc"]
    replicas[0].run(on.create()(replicas[0].client, "S"), 9)
    wire.network = network = _Recorded(RandomNetwork(seed, _ODDS), loop)

    async def hear(_: Msg) -> None:
        await asyncio.sleep(0.01)

    async def write(nats: NatsConnection) -> None:
        await nats.client.subscribe("beat", cb=hear)
        for _ in range(30):
            await nats.client.publish("beat", nats.servers.encode())
            try:
                found = await nats.get("S", {"last_by_subj": "S.m"})
                last = found[0].sequence if found else 0
                await send(nats, [Message("S.m", nats.servers.encode(), last)])
            except (NatsRefusal, NatsTimeout):
                await asyncio.sleep(0.05)

    async def write_all() -> None:
        await asyncio.gather(*(write(nats) for nats in replicas))

    replicas[0].run(write_all(), 1e6)
    stored = [message.body[0] for message in wire.server.streams["S"].store]
    for nats in replicas:
        nats.close()
    loop.close()
    return network.fates, stored


def test_same_seed_repeats_everything() -> None:
    one, other = recorded(3), recorded(3)
    assert one == other
    assert len(set(one[1])) == 3
    assert recorded(4) != one
