"""What becomes of messages to the stand-in, and what connections make of it."""

import asyncio
from collections.abc import Iterator

import pytest

pytest.importorskip("nats")

from nats.js.errors import KeyNotFoundError

from tests.service.jetstream import operations as on
from tests.service.jetstream.client import StandInClient, connection
from tests.service.jetstream.network import (
    Behind,
    Call,
    Delivered,
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
    Unserved,
)
from tests.service.jetstream.server import Server
from tests.service.jetstream.wire import Wire
from wolfstream.service.fleet.batches import Message, send
from wolfstream.service.fleet.connection import (
    NatsConnection,
    NatsDisconnected,
    NatsRefusal,
    NatsTimeout,
)
from wolfstream.service.fleet.streams import make_bucket

_SECONDS = 30.0


@pytest.fixture
def network() -> ScriptedNetwork:
    return ScriptedNetwork()


@pytest.fixture
def wire(network: ScriptedNetwork) -> Wire:
    return Wire(Server(), network)


@pytest.fixture
def pair(wire: Wire) -> Iterator[tuple[NatsConnection, NatsConnection]]:
    """Two connections to a server that has a stream S."""
    both = connection(wire, "a"), connection(wire, "b")
    both[0].run(on.create()(both[0].client, "S"), _SECONDS)
    yield both
    for one in both:
        one.close()


Pair = tuple[NatsConnection, NatsConnection]


def append(nats: NatsConnection, expected: int) -> int:
    return nats.run(send(nats, [Message("S.m", b"m", expected)]), _SECONDS)


def read(nats: NatsConnection, most: int = 1) -> list[int]:
    request: dict[str, object] = {"seq": 1, "next_by_subj": "S.m"}
    if most > 1:
        request |= {"batch": most}
    return [one.sequence for one in nats.run(nats.get("S", request, most), _SECONDS)]


def test_unheard_append_is_stored(pair: Pair, network: ScriptedNetwork) -> None:
    network.next(Unheard(), kind=Kind.APPEND)
    with pytest.raises(NatsTimeout):
        append(pair[0], 0)
    assert read(pair[1]) == [1]


def test_lost_append_is_not_stored(pair: Pair, network: ScriptedNetwork) -> None:
    network.next(Lost(), kind=Kind.APPEND)
    with pytest.raises(NatsTimeout):
        append(pair[0], 0)
    assert append(pair[1], 0) == 1


def test_held_append_passes_later_ones(pair: Pair, network: ScriptedNetwork, wire: Wire) -> None:
    network.next(Held(past=2), Held(), client="a", kind=Kind.APPEND)
    for _ in range(2):
        with pytest.raises(NatsTimeout):
            append(pair[0], 2)
    assert [append(pair[1], expected) for expected in (0, 1)] == [1, 2]
    assert read(pair[1], 9) == [1, 2, 3]
    assert wire.n_held == 1
    wire.release()
    assert read(pair[1], 9) == [1, 2, 3]


def test_held_append_may_be_heard(pair: Pair, network: ScriptedNetwork, wire: Wire) -> None:
    network.next(Held(heard=True), kind=Kind.APPEND)
    future = pair[0].begin(send(pair[0], [Message("S.m", b"m", 0)]))
    while not wire.n_held:
        pair[1].run(asyncio.sleep(0), _SECONDS)
    wire.release()
    assert future.result(_SECONDS) == 1


def test_refusals_have_the_given_code(pair: Pair, network: ScriptedNetwork) -> None:
    network.next(RefusedWith(10164), kind=Kind.APPEND, client="a")
    assert append(pair[1], 0) == 1
    with pytest.raises(NatsRefusal) as refused:
        append(pair[0], 1)
    assert refused.value.code == 10164
    assert append(pair[0], 1) == 2


def test_no_quorum_is_no_answer(pair: Pair, network: ScriptedNetwork) -> None:
    network.next(RefusedWith(10158, status=503), Unserved(), kind=Kind.APPEND)
    for _ in range(2):
        with pytest.raises(NatsTimeout):
            append(pair[0], 0)


@pytest.mark.parametrize(
    "fate", [Lost(), Unheard(timed=True), Unserved(), RefusedWith(10008, status=503)], ids=repr
)
def test_read_is_repeated_while_leader_changes(
    pair: Pair, network: ScriptedNetwork, fate: Fate
) -> None:
    append(pair[0], 0)
    network.next(fate, kind=Kind.CALL)
    message = pair[0].run(pair[0].last_of_leader("S", "S.m"), _SECONDS)
    assert message is not None
    assert message.sequence == 1


def test_lost_part_refuses_its_batch(pair: Pair, network: ScriptedNetwork) -> None:
    network.next(Lost(), kind=Kind.PART)
    messages = [Message("S.m", b"m", 0), Message("S.m", b"m", None)]
    with pytest.raises(NatsRefusal) as refused:
        pair[0].run(send(pair[0], messages), _SECONDS)
    assert refused.value.code == 10176
    assert pair[0].run(send(pair[0], messages), _SECONDS) == 2


def test_abandoned_batch_is_refused(pair: Pair, wire: Wire) -> None:
    client = pair[0].client
    pair[0].run(on.part("i", 1, "m")(client, "S"), _SECONDS)
    wire.abandon_batches()
    answer = pair[0].run(on.part("i", 2, "m", "1")(client, "S"), _SECONDS)
    assert answer["error"]["err_code"] == 10176


def test_copy_behind_lacks_changes(pair: Pair, network: ScriptedNetwork) -> None:
    for expected in range(3):
        append(pair[0], expected)
    pair[0].run(pair[0].call("STREAM.PURGE.S", {"filter": "S.m", "seq": 3}), _SECONDS)
    assert read(pair[0], 9) == [3]
    network.next(Behind(1), Behind(2), Behind(None), Behind(99), kind=Kind.READ)
    assert [read(pair[0], 9) for _ in range(4)] == [[1, 2, 3], [1, 2], [], []]


def test_silent_copy_leaves_the_leader(pair: Pair, network: ScriptedNetwork) -> None:
    append(pair[0], 0)
    network.next(Lost(), client="a", kind=Kind.READ)
    network.next(Lost(), client="b", kind=Kind.READ)
    assert read(pair[0], 9) == read(pair[1]) == [1]
    assert not network.left


def test_behind_bucket_has_deleted_keys(pair: Pair, network: ScriptedNetwork) -> None:
    nats = pair[0]

    async def use() -> tuple[bytes | None, bytes | None]:
        await make_bucket(nats, "b")
        bucket = await nats.stream.key_value("b")
        await bucket.put("k", b"old")
        await bucket.put("k", b"new")
        await bucket.delete("k")
        network.next(Behind(1), Behind(2), kind=Kind.READ)
        values = (await bucket.get("k")).value, (await bucket.get("k")).value
        with pytest.raises(KeyNotFoundError):
            await bucket.get("k")
        return values

    assert nats.run(use(), _SECONDS) == (b"new", b"old")


def test_lost_push_renews_the_watch(pair: Pair, network: ScriptedNetwork) -> None:
    nats = pair[0]

    async def use() -> list[object]:
        await make_bucket(nats, "b")
        bucket = await nats.stream.key_value("b")
        watcher, told = await bucket.watch(">"), list[object]()
        network.next(Lost(), kind=Kind.PUSH, subject="$KV")
        for value in (b"1", b"2", b"3"):
            await bucket.put(value.decode(), value)
        while not told or told[-1] != b"3":
            change = await watcher.updates(5)  # type: ignore[no-untyped-call]
            told.append(change and change.value)
        return told

    assert nats.run(use(), _SECONDS) == [None, b"1", b"2", b"3"]


def test_late_push_ends_a_look_early(pair: Pair, network: ScriptedNetwork) -> None:
    nats = pair[0]

    async def use() -> list[object]:
        await make_bucket(nats, "b")
        bucket = await nats.stream.key_value("b")
        await bucket.put("k", b"v")
        network.next(Late(0.02), kind=Kind.PUSH, subject="$KV")
        watcher = await bucket.watch(">")
        changes = [await watcher.updates(5) for _ in range(2)]  # type: ignore[no-untyped-call]
        return [change and change.value for change in changes]

    # None says that all entries have come.
    assert nats.run(use(), _SECONDS) == [None, b"v"]


def test_request_waits_for_another_server(pair: Pair) -> None:
    nats, client = pair[0], pair[0].client
    assert isinstance(client, StandInClient)

    async def use() -> dict[str, object]:
        client.disconnect()
        asking = asyncio.ensure_future(nats.ask("S.m", b"one"))
        await asyncio.sleep(0.1)
        assert not asking.done()
        client.reconnect()
        return await asking

    assert nats.run(use(), _SECONDS)["seq"] == 1


def test_disconnected_client_sends_later(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolfstream.service.fleet.connection._RECONNECT_SECONDS", 0.1)
    nats, client = pair[0], pair[0].client
    assert isinstance(client, StandInClient)

    async def use() -> None:
        client.disconnect()
        with pytest.raises(NatsDisconnected):
            await nats.ask("S.m", b"")
        with pytest.raises(TimeoutError):
            await client.request("S.m", b"later")
        client.reconnect()

    nats.run(use(), _SECONDS)
    assert read(pair[1]) == [1]


def test_late_message_comes_after_others(pair: Pair, network: ScriptedNetwork) -> None:
    network.next(Late(there=0.2), client="a", kind=Kind.APPEND)
    late = pair[0].begin(send(pair[0], [Message("S.m", b"m", 1)]))
    assert append(pair[1], 0) == 1
    assert late.result(_SECONDS) == 2


def test_impossible_fate_is_an_error(pair: Pair, wire: Wire) -> None:
    class OnlyBehind(Network):
        def fate(self, call: Call) -> Fate:  # noqa: ARG002 - it is the same for all
            return Behind(1)

    with pytest.raises(ValueError, match="APPEND"):
        RandomNetwork(1, {Kind.APPEND: [(Behind(1), 50.0)]})
    wire.network = OnlyBehind()
    with pytest.raises(ValueError, match="APPEND"):
        append(pair[0], 0)
    wire.network = Network()


def test_random_fates_repeat_by_client() -> None:
    odds: Odds = {Kind.APPEND: [(Lost(), 30.0), (Unheard(), 20.0), (Held(past=3), 10.0)]}
    calls = [Call(Kind.APPEND, name, 1, "S.m", {}, b"") for name in "ab"]

    def drawn(order: list[Call]) -> dict[str, list[Fate]]:
        network, fates = RandomNetwork(7, odds), dict[str, list[Fate]]()
        for call in order:
            fates.setdefault(call.client, []).append(network.fate(call))
        return fates

    one, other = drawn(200 * calls), drawn(200 * calls[:1] + 200 * calls[1:])
    assert one == other
    assert {type(fate) for fate in one["a"]} == {Lost, Unheard, Held, Delivered}


def test_two_clients_need_two_names(pair: Pair, wire: Wire) -> None:
    with pytest.raises(ValueError, match="'a'"):
        connection(wire, "a")
    pair[0].close()
    connection(wire, "a").close()
