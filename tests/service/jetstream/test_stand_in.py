"""The stand-in answers as a real nats-server does, to scripted and to random operations."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nats.aio.client import Client

from tests.service.jetstream import operations as on
from tests.service.jetstream.client import connection
from tests.service.jetstream.operations import LAST, Operation
from tests.service.jetstream.server import Server
from tests.service.jetstream.wire import Wire
from tests.service.nats import MISSING, connected_server
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.streams import make_bucket

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

_numbers = itertools.count()
_SECONDS = 60.0
_ID = "Nats-Msg-Id"

Both = tuple[NatsConnection, NatsConnection]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A connection to a real server, and one to the stand-in."""
    with connected_server(tmp_path_factory.mktemp("nats")) as real:
        ours = connection(Wire(Server()), "test")
        yield real, ours
        ours.close()


def told(both: Both, operations: Sequence[Operation]) -> list[Any]:
    """Return what operations on a new stream tell, which is the same of both servers."""
    stream = f"S{next(_numbers)}"
    every = [*operations, on.contents, on.call("STREAM.DELETE.{}")]
    real, ours = (one.run(on.outcomes(one.client, stream, every), _SECONDS) for one in both)
    for number, (theirs, own) in enumerate(zip(real, ours, strict=True)):
        assert own == theirs, on.names(every[: number + 1])
    return list(ours[: len(operations)])


def code(answer: Any) -> int:
    """Return the number of the error in an answer; 0 if there is none."""
    return int(answer.get("error", {}).get("err_code", 0))


class TestStreams:
    def test_settings_are_equal(self, both: Both) -> None:
        told(
            both,
            [
                on.call("STREAM.INFO.{}", {}),
                on.create(num_replicas=3),
                on.create(max_bytes=5000),
                on.create(max_bytes=5000),
                on.create(max_bytes=6000),
                on.call("STREAM.CREATE.{}", on.settings("another")),
                on.call("STREAM.CREATE.{}x", on.settings("{}x", subjects=["{}.a"])),
                on.update(max_bytes=7000, metadata={"a": "b"}),
                on.call("STREAM.UPDATE.{}x", on.settings("{}x")),
                on.call("STREAM.INFO.{}"),
                on.call("STREAM.NAMES", {}),
                on.call("STREAM.DELETE.{}x", {}),
            ],
        )

    def test_purged_subject_expects_zero(self, both: Both) -> None:
        answers = told(
            both,
            [
                on.create(),
                on.append("a"),
                on.append("a", expected=1),
                on.append("a", expected=1),
                on.call("STREAM.PURGE.{}", {"filter": "{}.a"}),
                on.append("a", expected=2),
                on.append("a", expected=0),
                on.append("a", expected="x"),
            ],
        )
        assert [code(one) for one in answers[1:]] == [0, 0, 10071, 0, 10071, 0, 10071]

    @pytest.mark.parametrize(
        "request_",
        [
            {},
            {"seq": 1},
            {"seq": 4},
            {"seq": 900},
            {"keep": 2},
            {"keep": 900},
            {"filter": "{}.a"},
            {"filter": "{}.a", "seq": 1},
            {"filter": "{}.a", "seq": 5},
            {"filter": "{}.a", "keep": 1},
            {"filter": "{}.*", "seq": 5},
            {"filter": ">", "seq": 5},
            {"filter": ">"},
            {"filter": ">", "keep": 3},
            {"filter": "{}.a", "seq": 5, "keep": 1},
        ],
    )
    def test_purge_removes_the_same(self, both: Both, request_: dict[str, Any]) -> None:
        appends = [on.append(subject) for subject in "abacaba"]
        purge = on.call("STREAM.PURGE.{}", request_)
        told(both, [on.create(), purge, *appends, purge, on.contents, *appends, purge])

    def test_deleted_messages_leave_gaps(self, both: Both) -> None:
        deletes = [on.call("STREAM.MSG.DELETE.{}", {"seq": at}) for at in (2, 2, 1, 1, 9, 4)]
        told(both, [on.create(), *(on.append(one) for one in "abac"), *deletes, on.append("a")])

    def test_reads_are_equal(self, both: Both) -> None:
        requests: list[dict[str, Any]] = [
            {"seq": 1},
            {"seq": 3},
            {"seq": 99},
            {"last_by_subj": "{}.a"},
            {"last_by_subj": "{}.*"},
            {"last_by_subj": "{}.none"},
            {"seq": 2, "next_by_subj": "{}.a"},
            {"seq": 2, "next_by_subj": "{}.*"},
            {"seq": 99, "next_by_subj": "{}.a"},
            {"next_by_subj": "{}.a"},
            {"seq": 1, "last_by_subj": "{}.a"},
            {"last_by_subj": "{}.a", "next_by_subj": "{}.a"},
            {"seq": 1, "batch": 2},
            {"seq": 1, "batch": 1},
            {"seq": 1, "batch": 50, "max_bytes": 20},
            {"seq": 2, "next_by_subj": "{}.a", "batch": 50},
            {"seq": 2, "next_by_subj": "{}.a", "batch": 1},
            {"seq": 2, "next_by_subj": "{}.*", "batch": 3, "max_bytes": 30},
            {"seq": 90, "next_by_subj": "{}.a", "batch": 50},
            {"last_by_subj": "{}.a", "batch": 5},
            {},
        ]
        told(
            both,
            [
                on.create(),
                on.read({"seq": 1, "batch": 4}),
                *(on.append(subject, size) for size, subject in enumerate("abacabab")),
                on.append("c", more={"A": "b"}),
                on.call("STREAM.MSG.DELETE.{}", {"seq": 3}),
                *(on.call("STREAM.MSG.GET.{}", one) for one in requests),
                *(on.read(one) for one in requests),
                on.read(None, subject="a"),
                on.read(None, subject="none"),
                on.call("STREAM.MSG.GET.{}x", {"seq": 1}),
                *(
                    on.call("STREAM.INFO.{}", {"subjects_filter": one})
                    for one in ("{}.a", "{}.*", ">", "{}.none")
                ),
            ],
        )

    def test_full_stream_refuses(self, both: Both) -> None:
        answers = told(
            both,
            [
                on.create(max_bytes=1000),
                on.append("a", 500),
                on.append("a", 500),
                *(on.append("b", 0) for _ in range(20)),
                on.update(max_bytes=1500),
                on.append("a", 300),
                on.update(max_bytes=100),
                on.append("a", 0),
                on.call("STREAM.PURGE.{}", {"filter": "{}.a"}),
                on.update(max_bytes=1100),
                on.part("i", 1, "c", size=100),
                on.part("i", 2, "c", "1", size=100),
                on.part("j", 1, "c", size=900),
                on.part("j", 2, "c", "1", size=900),
            ],
        )
        assert [code(one) for one in answers if isinstance(one, dict)].count(10077) > 3

    def test_messages_of_bounded_subjects_replace(self, both: Both) -> None:
        appends = [on.append(subject, size) for size in (10, 60, 900, 20) for subject in "ab"]
        told(both, [on.create(max_bytes=1000, max_msgs_per_subject=1), *appends])

    def test_known_message_ids_are_duplicates(self, both: Both) -> None:
        told(
            both,
            [
                on.create(),
                on.append("a", more={_ID: "i"}),
                on.append("b", 9, more={_ID: "i"}),
                on.append("a", expected=0, more={_ID: "i"}),
                on.append("a", more={"Nats-Expected-Stream": "other"}),
                on.append("a", more={"Nats-Expected-Last-Sequence": "1"}),
                on.append("a", more={"Nats-Expected-Last-Sequence": "1"}),
                on.append("a", more={"Nats-Rollup": "sub"}),
            ],
        )

    def test_unknown_subject_has_no_responders(self, both: Both) -> None:
        answers = told(both, [on.append("a"), on.create(), on.append("a")])
        assert answers[0][0] == "NoRespondersError"


class TestBatches:
    def test_append_between_refuses_commit(self, both: Both) -> None:
        answers = told(
            both,
            [
                on.create(),
                on.part("i", 1, "a", expected=0),
                on.append("a", expected=0),
                on.part("i", 2, "a", "1"),
                on.batch("j", ("a", LAST), ("a", None), ("b", 0)),
                on.batch("k", ("a", LAST), ("b", 0)),
            ],
        )
        assert code(answers[3]) == code(answers[5]) == 10071
        assert answers[4]["seq"] == 4

    def test_refusals_are_equal(self, both: Both) -> None:
        answers = told(
            both,
            [
                on.create(),
                on.part("gap", 1, "a"),
                on.part("gap", 3, "a", "1"),
                on.part("gap", 2, "a", "1"),
                on.part("late", 2, "a", "1"),
                on.part("long", 1001, "a", "1"),
                on.part("id", 1, "a", more={_ID: "i"}),
                on.part("id", 2, "a", "1", more={_ID: "i"}),
                on.part("again", 1, "a", expected=0),
                on.part("again", 2, "a", "1", expected=0),
                on.part("unread", 1, "a", more={"Nats-Expected-Last-Msg-Id": "i"}),
                on.part("unread", 2, "a", "1"),
                on.part("x" * 65, 1, "a"),
                on.append("a", more={"Nats-Batch-Id": "n"}),
                on.part("odd", 1, "a"),
                on.part("odd", 2, "a", "2"),
                on.part("odd", 3, "a", "1"),
                on.part("last", 1, "a", more={"Nats-Expected-Last-Sequence": "0"}),
                on.part("last", 2, "a", "1", more={"Nats-Expected-Last-Sequence": "1"}),
                on.part("one", 1, "a", "1", expected=0),
            ],
        )
        codes = {code(one) for one in answers if isinstance(one, dict)}
        assert codes >= {10164, 10175, 10176, 10177, 10179, 10199, 10200, 10201}

    def test_thousand_messages_are_most(self, both: Both) -> None:
        most = [on.part("i", number, "a", heard=False) for number in range(1, 1000)]
        more = [on.part("j", number, "a", heard=False) for number in range(1, 1001)]
        ends = [on.part("i", 1000, "a", "1"), on.part("j", 1001, "a", "1")]
        answers = told(both, [on.create(), *most, ends[0], *more, ends[1]])
        assert [answers[1000]["count"], code(answers[-1])] == [1000, 10199]

    def test_fifty_batches_are_most(self, both: Both) -> None:
        answers = told(both, [on.create(), *(on.part(f"b{n}", 1, "a") for n in range(52))])
        assert code(answers[-1]) == 10210

    def test_stream_may_allow_none(self, both: Both) -> None:
        answers = told(both, [on.create(allow_atomic=False), on.part("i", 1, "a", "1")])
        assert code(answers[1]) == 10174


_subjects = st.sampled_from(["a", "b", "c"])
_expected = st.sampled_from([None, LAST, LAST, 0, 1, 2, 5])
_sizes = st.sampled_from([0, 1, 40, 300])
_filters = st.sampled_from(["{}.a", "{}.b", "{}.*", ">"])
_places = st.integers(1, 12)
_requests = st.one_of(
    st.builds(lambda at: {"seq": at}, _places),
    st.builds(lambda of: {"last_by_subj": of}, _filters),
    st.builds(lambda at, of: {"seq": at, "next_by_subj": of}, _places, _filters),
)
_batched = st.builds(
    lambda request, most, n_bytes: request | {"batch": most, "max_bytes": n_bytes},
    st.builds(lambda at, of: {"seq": at, "next_by_subj": of}, _places, _filters),
    st.integers(1, 6),
    st.sampled_from([10, 100, 10_000]),
)
_purges = st.one_of(
    st.builds(lambda of: {"filter": of}, _filters),
    st.builds(lambda of, at: {"filter": of, "seq": at}, _filters, _places),
    st.builds(lambda of, n: {"filter": of, "keep": n}, _filters, st.integers(1, 3)),
    st.builds(lambda at: {"seq": at}, _places),
)
_messages = st.lists(st.tuples(_subjects, _expected), min_size=2, max_size=4)
_names = st.sampled_from(["i", "j", "k"])
_operations = st.lists(
    st.one_of(
        st.builds(on.append, _subjects, _sizes, _expected),
        st.builds(on.append, _subjects, _sizes, _expected),
        st.builds(lambda name, messages: on.batch(name, *messages), _names, _messages),
        st.builds(
            on.part,
            _names,
            st.integers(1, 3),
            _subjects,
            st.sampled_from([None, None, "1"]),
            _expected,
        ),
        st.builds(lambda request: on.call("STREAM.PURGE.{}", request), _purges),
        st.builds(lambda at: on.call("STREAM.MSG.DELETE.{}", {"seq": at}), _places),
        st.builds(lambda request: on.call("STREAM.MSG.GET.{}", request), _requests),
        st.builds(on.read, st.one_of(_requests, _batched)),
        st.builds(lambda of: on.call("STREAM.INFO.{}", {"subjects_filter": of}), _filters),
        st.builds(lambda n: on.update(max_bytes=n), st.sampled_from([400, 900, 5000])),
    ),
    min_size=5,
    max_size=40,
)
_often = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_often
@given(_operations, st.sampled_from([-1, -1, 1, 2]))
def test_random_operations_are_equal(
    both: Both, operations: list[Operation], per_subject: int
) -> None:
    told(both, [on.create(max_bytes=900, max_msgs_per_subject=per_subject), *operations])


def told_of_bucket(both: Both, operations: Sequence[Operation]) -> list[Any]:
    """Return what operations on a new bucket tell, and what a watch tells meanwhile."""
    bucket = f"b{next(_numbers)}"
    answers = [one.run(_watched_outcomes(one, bucket, operations), _SECONDS) for one in both]
    (real, watched), (ours, own) = answers
    for number, (theirs, one) in enumerate(zip(real, ours, strict=True)):
        assert one == theirs, on.names(operations[: number + 1])
    # A real server skips values that were replaced before it came to them.
    assert [one for one in own if one in watched] == watched
    assert {key: rest for key, *rest in own} == {key: rest for key, *rest in watched}
    return list(ours)


async def _watched_outcomes(
    connection: NatsConnection, bucket: str, operations: Sequence[Operation]
) -> tuple[list[Any], list[Any]]:
    client: Client = connection.client
    await make_bucket(connection, bucket)
    opened = await client.jetstream(timeout=5).key_value(bucket)
    watcher, changes = await opened.watch(">"), list[Any]()
    ended = [on.on_bucket(lambda of: of.put("end", b""))]
    answers = await on.outcomes(client, bucket, [*operations, *ended])
    while not changes or changes[-1][0] != "end":
        change = await watcher.updates(5)  # type: ignore[no-untyped-call]
        if change is not None:
            # How many wait behind it depends on when the server sends it.
            changes.append(on.entry(change)[:3])
    await watcher.stop()  # type: ignore[no-untyped-call]
    await on.call("STREAM.DELETE.KV_{}")(client, bucket)
    return answers, changes


def put(key: str, value: bytes = b"v") -> Operation:
    return on.on_bucket(lambda bucket: bucket.put(key, value))


def create(key: str, value: bytes = b"v") -> Operation:
    return on.on_bucket(lambda bucket: bucket.create(key, value))


def replace(key: str, last: int) -> Operation:
    return on.on_bucket(lambda bucket: bucket.update(key, b"u", last=last))


def delete(key: str, last: int | None = None) -> Operation:
    return on.on_bucket(lambda bucket: bucket.delete(key, last=last))


def purge(key: str) -> Operation:
    return on.on_bucket(lambda bucket: bucket.purge(key))


def get(key: str, revision: int | None = None) -> Operation:
    return on.on_bucket(lambda bucket: bucket.get(key, revision))


def history(key: str) -> Operation:
    return on.watched(key, history=True)


class TestBuckets:
    def test_deleted_key_is_created_again(self, both: Both) -> None:
        answers = told_of_bucket(
            both,
            [
                get("k"),
                create("k"),
                create("k"),
                get("k"),
                get("k", 1),
                delete("k"),
                get("k"),
                create("k"),
                history("k"),
                on.watched(">"),
            ],
        )
        assert [answers[0][0], answers[2][0]] == ["KeyNotFoundError", "KeyWrongLastSequenceError"]
        assert [answers[6][0], answers[7]] == ["KeyNotFoundError", 3]

    def test_delete_by_revision_spares_others(self, both: Both) -> None:
        answers = told_of_bucket(
            both,
            [create("k"), replace("k", 1), delete("k", 1), get("k"), delete("k", 2), get("k")],
        )
        assert [answers[2][0], answers[5][0]] == ["BadRequestError", "KeyNotFoundError"]

    def test_watches_report_delete_markers(self, both: Both) -> None:
        told_of_bucket(
            both,
            [
                on.watched(">"),
                put("a.b"),
                put("a.c", b""),
                put("d"),
                delete("a.c"),
                purge("d"),
                on.watched("a.>"),
                on.watched("d"),
                on.watched("none"),
                history("none"),
                delete("none"),
                create("d"),
                on.watched(">"),
            ],
        )


_keys = st.sampled_from(["a", "m.b", "m.c"])
_bucket_operations = st.lists(
    st.one_of(
        st.builds(put, _keys, st.sampled_from([b"", b"v", b"long" * 9])),
        st.builds(create, _keys),
        st.builds(replace, _keys, st.integers(0, 9)),
        st.builds(delete, _keys, st.sampled_from([None, 0, 1, 2, 3, 4])),
        st.builds(purge, _keys),
        st.builds(get, _keys, st.sampled_from([None, None, 1, 2, 5])),
        st.builds(on.watched, st.sampled_from([">", "m.>", "a"])),
        st.builds(history, _keys),
    ),
    min_size=3,
    max_size=15,
)


@_often
@given(_bucket_operations)
def test_random_buckets_are_equal(both: Both, operations: list[Operation]) -> None:
    told_of_bucket(both, operations)


def test_core_messages_reach_every_subscriber(both: Both) -> None:
    async def exchange(one: NatsConnection) -> list[tuple[str, bytes]]:
        client, heard, all_heard = one.client, list[tuple[str, bytes]](), asyncio.Event()

        async def hear(message: Any) -> None:
            heard.append((message.subject, message.data))
            if len(heard) == 3:
                all_heard.set()

        for pattern in ("beat.*", "beat.a", "other"):
            await client.subscribe(pattern, cb=hear)
        for subject in ("beat.a", "none", "beat.b"):
            await client.publish(subject, subject.encode())
        await asyncio.wait_for(all_heard.wait(), 5)
        return sorted(heard)

    real, ours = (one.run(exchange(one), _SECONDS) for one in both)
    assert ours == real
