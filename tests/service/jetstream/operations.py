"""Operations on a stream or a bucket, which tell the same of every server.

Each operation is a coroutine function of a client of nats-py. What it returns has no times in it.
"""

import functools
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, ParamSpec, TypeAlias

import nats.errors
from nats.aio.client import Client
from nats.js.kv import KeyValue

Operation: TypeAlias = Callable[[Client, str], Coroutine[Any, Any, Any]]
Headers: TypeAlias = Mapping[str, str]
Arguments = ParamSpec("Arguments")

LAST = "last"
_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_TIMES = frozenset({"ts", "created", "time", "first_ts", "last_ts"})
_SECONDS = 5.0


def names(operations: Sequence[Operation]) -> str:
    """Return operations as the calls that make them."""
    return "\n".join(getattr(one, "__name__", "") for one in operations)


def settings(stream: str, **changed: Any) -> dict[str, Any]:
    """Return the settings of a stream whose subjects begin with its name."""
    return {
        "name": stream,
        "subjects": [f"{stream}.>"],
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "num_replicas": 1,
        "allow_direct": True,
        "allow_atomic": True,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_msg_size": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": -1,
        **changed,
    }


async def outcomes(client: Client, name: str, operations: Sequence[Operation]) -> list[Any]:
    """Return what the operations on a stream or bucket tell, one after another."""
    told = list[Any]()
    for operation in operations:
        try:
            told.append(await operation(client, name))
        except nats.errors.Error as error:
            told.append((type(error).__name__, str(error)))
    return told


def _named_after(
    make: Callable[Arguments, Operation],
) -> Callable[Arguments, Operation]:
    """Let the operations that a function makes be printed as the call that makes them."""

    @functools.wraps(make)
    def named(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Operation:
        operation = make(*args, **kwargs)
        told = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
        operation.__name__ = f"{make.__name__}({', '.join(told)})"
        return operation

    return named


@_named_after
def call(name: str, request: Mapping[str, Any] | None = None) -> Operation:
    """Make a call of JetStream's interface; `{}` stands for the stream's name."""

    async def run(client: Client, stream: str) -> Any:
        body = _named(json.dumps(request), stream).encode() if request is not None else b""
        subject = f"$JS.API.{name.format(stream)}"
        return timeless(json.loads((await client.request(subject, body, _SECONDS)).data))

    return run


@_named_after
def create(**changed: Any) -> Operation:
    """Create the stream."""
    return _with_settings("STREAM.CREATE", changed)


@_named_after
def update(**changed: Any) -> Operation:
    """Change the stream's settings."""
    return _with_settings("STREAM.UPDATE", changed)


def _with_settings(name: str, changed: Mapping[str, Any]) -> Operation:
    async def run(client: Client, stream: str) -> Any:
        return await call(f"{name}.{{}}", settings(stream, **changed))(client, stream)

    return run


@_named_after
def append(
    subject: str,
    size: int = 1,
    expected: int | str | None = None,
    more: Headers | None = None,
    heard: bool = True,
) -> Operation:
    """Append a message to the stream.

    expected: the last sequence of the subject; LAST for the one that it has.
    heard: whether an answer is asked for.
    """

    async def run(client: Client, stream: str) -> Any:
        to, headers = f"{stream}.{subject}", dict(more or {})
        if expected is not None:
            last = await _last(client, stream, to) if expected == LAST else expected
            headers[_EXPECTED] = str(last)
        if not heard:
            await client.publish(to, b"m" * size, headers=headers or None)
            return None
        reply = await client.request(to, b"m" * size, _SECONDS, headers=headers or None)
        return json.loads(reply.data) if reply.data else "taken"

    return run


@_named_after
def part(
    batch: str,
    number: int,
    subject: str,
    commit: str | None = None,
    expected: int | str | None = None,
    size: int = 1,
    more: Headers | None = None,
    heard: bool = True,
) -> Operation:
    """Send one message of a batch."""
    place = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
    end = {} if commit is None else {"Nats-Batch-Commit": commit}
    return append(subject, size, expected, place | end | dict(more or {}), heard)


@_named_after
def batch(name: str, *messages: tuple[str, int | str | None]) -> Operation:
    """Send a whole batch as replicas do: only the last message asks for an answer."""

    async def run(client: Client, stream: str) -> Any:
        last = len(messages)
        for number, (subject, expected) in enumerate(messages[:-1], 1):
            await part(name, number, subject, None, expected, heard=False)(client, stream)
        return await part(name, last, messages[-1][0], "1", messages[-1][1])(client, stream)

    return run


@_named_after
def read(request: Mapping[str, Any] | None, subject: str = "") -> Operation:
    """Read directly; tell the headers and the body of each answer, to the end of a batch."""

    async def run(client: Client, stream: str) -> Any:
        inbox, told = client.new_inbox(), list[Any]()
        subscription = await client.subscribe(inbox)
        to = f"$JS.API.DIRECT.GET.{stream}" + (f".{stream}.{subject}" if subject else "")
        body = b"" if request is None else _named(json.dumps(request), stream).encode()
        await client.publish(to, body, reply=inbox)
        while True:
            message = await subscription.next_msg(timeout=_SECONDS)
            headers = {str(getattr(k, "value", k)): v for k, v in (message.headers or {}).items()}
            headers.pop("Nats-Time-Stamp", None)
            told.append((headers, message.data))
            if "Status" in headers or not (request or {}).get("batch"):
                break
        await subscription.unsubscribe()
        return told

    return run


async def contents(client: Client, stream: str) -> Any:
    """Tell all that a stream holds, and its state."""
    everything = read({"seq": 1, "batch": 1000})
    about = call("STREAM.INFO.{}", {"subjects_filter": ">"})
    return await everything(client, stream), await about(client, stream)


Use: TypeAlias = Callable[[KeyValue], Awaitable[Any]]


@_named_after
def on_bucket(use: Use) -> Operation:
    """Use the bucket."""

    async def run(client: Client, bucket: str) -> Any:
        told = await use(await client.jetstream(timeout=_SECONDS).key_value(bucket))
        if isinstance(told, KeyValue.Entry):
            return entry(told)
        return [entry(one) for one in told] if isinstance(told, list) else told

    return run


@_named_after
def watched(keys: str, history: bool = False) -> Operation:
    """Tell the present entries of keys that a watch reports.

    The watch may say that it has reported all of them while they are still on their way.
    """

    async def run(client: Client, bucket: str) -> Any:
        opened = await client.jetstream(timeout=_SECONDS).key_value(bucket)
        subjects = {"subjects_filter": f"$KV.{bucket}.{keys}"}
        state = (await call("STREAM.INFO.KV_{}", subjects)(client, bucket))["state"]
        n_entries, told = sum(state.get("subjects", {}).values()), list[Any]()
        watcher = await opened.watch(keys, include_history=history)
        while len(told) < n_entries + 1:
            one = await watcher.updates(_SECONDS)  # type: ignore[no-untyped-call]
            told.append(one and entry(one))
        await watcher.stop()  # type: ignore[no-untyped-call]
        return [one for one in told if one]

    return run


def entry(one: KeyValue.Entry) -> Any:
    """Return what an entry of a bucket says, without its time."""
    # A direct read of an empty value gives None, and a watch gives no bytes.
    return one.key, one.value or b"", one.revision, one.delta, one.operation


async def _last(client: Client, stream: str, subject: str) -> int:
    answer = await call("STREAM.MSG.GET.{}", {"last_by_subj": subject})(client, stream)
    return int(answer["message"]["seq"]) if "message" in answer else 0


def _named(text: str, stream: str) -> str:
    return text.replace("{}", stream) if "{}" in text and text != "{}" else text


def timeless(content: Any) -> Any:
    """Return the answer to a call without its times."""
    if isinstance(content, dict):
        return {key: timeless(of) for key, of in content.items() if key not in _TIMES}
    return content
