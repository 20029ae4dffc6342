"""Reads of single messages and of several, from a stream's leader or from any copy."""

import base64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.service.jetstream import errors
from tests.service.jetstream.errors import ApiRefusal
from tests.service.jetstream.packet import Packet, encoded, extended
from tests.service.jetstream.store import Store, StoredMessage

_NOT_MODELLED = frozenset({"multi_last", "start_time", "up_to_seq", "up_to_time", "no_hdr"})
# What a server sends at most for one request without a bound.
_MOST_BYTES = 64 << 20


def timestamp(nanoseconds: int) -> str:
    """Return a time as the server writes it, in UTC."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment}{fraction}Z"


def read_of_leader(store: Store, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message in the answer to STREAM.MSG.GET. Raises ApiRefusal."""
    if request.get("batch") or request.get("max_bytes") or not _is_valid(request):
        raise ApiRefusal(errors.BAD_REQUEST)
    found = _found(store, request)
    if found is None:
        raise ApiRefusal(errors.NO_MESSAGE)
    message = {"subject": found.subject, "seq": found.sequence}
    if found.headers:
        message["hdrs"] = base64.b64encode(found.headers).decode()
    if found.body:
        message["data"] = base64.b64encode(found.body).decode()
    return {"message": message | {"time": timestamp(found.time)}}


def read_of_copy(
    name: str, store: Store, request: Mapping[str, Any], reply: str
) -> Iterator[Packet]:
    """Yield the answers to DIRECT.GET: messages, and for a batch an empty one at the end.

    name: of the stream.
    store: what the copy has.
    """
    if not any(request.get(key) for key in ("seq", "last_by_subj", "next_by_subj")):
        yield Packet(reply, "", encoded(None, "408 Empty Request"))
    elif not _is_valid(request) or (request.get("last_by_subj") and request.get("batch")):
        yield Packet(reply, "", encoded(None, "408 Bad Request"))
    elif request.get("batch"):
        yield from _batch(name, store, request, reply)
    elif (found := _found(store, request)) is None:
        yield Packet(reply, "", encoded(None, "404 Message Not Found"))
    else:
        yield _answer(name, found, reply, {})


def _batch(name: str, store: Store, request: Mapping[str, Any], reply: str) -> Iterator[Packet]:
    subject, sequence = str(request.get("next_by_subj") or ""), int(request.get("seq") or 0)
    pending, before, n_bytes = store.count_from(subject, sequence), 0, 0
    for number in range(int(request["batch"])):
        found = store.next_of(subject, sequence)
        if found is None:
            if not number:
                yield Packet(reply, "", encoded(None, "404 Message Not Found"))
                return
            break
        pending = max(pending - 1, 0)
        more = {"Nats-Num-Pending": str(pending), "Nats-Last-Sequence": str(before)}
        yield _answer(name, found, reply, more)
        before, sequence = found.sequence, found.sequence + 1
        n_bytes += len(found.subject) + len(found.headers) + len(found.body)
        if n_bytes >= (request.get("max_bytes") or _MOST_BYTES):
            break
    end = {"Nats-Num-Pending": str(pending), "Nats-Last-Sequence": str(before)}
    yield Packet(reply, "", encoded(end, "204 EOB"))


def _answer(name: str, found: StoredMessage, reply: str, more: Mapping[str, str]) -> Packet:
    headers = {
        "Nats-Stream": name,
        "Nats-Subject": found.subject,
        "Nats-Sequence": str(found.sequence),
        "Nats-Time-Stamp": timestamp(found.time),
        **more,
    }
    return Packet(reply, "", extended(found.headers, headers), found.body)


def _is_valid(request: Mapping[str, Any]) -> bool:
    """Return whether a request asks for one thing."""
    if unknown := _NOT_MODELLED & request.keys():
        raise NotImplementedError(f"the stand-in does not model reads with {unknown}")
    sequence, last, following = (
        request.get(key) for key in ("seq", "last_by_subj", "next_by_subj")
    )
    return bool(sequence or last or following) and not (last and (sequence or following))


def _found(store: Store, request: Mapping[str, Any]) -> StoredMessage | None:
    sequence = int(request.get("seq") or 0)
    if following := request.get("next_by_subj"):
        return store.next_of(following, sequence)
    if sequence:
        return store.get(sequence)
    return store.last_of(request["last_by_subj"])
