"""A commit of one model as messages of its log.

A commit is a list of rows. It is one message, or several where it has more bytes than a message may
have. Each message says which one it follows: so a reader notices where one is missing between two.
It is sealed (`storage.seals`) together with what it says of its place.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack

from service.storage.entries import Entry, KeyedRequest, Rollback
from service.storage.seals import BrokenSeal, seal, unseal

# Of the first element of each message. A reader refuses what it does not know.
FORMAT = 1
# Room for the headers and for what stands around a message's part of the rows.
_AROUND_BYTES = 2048


class LogRow(NamedTuple):
    """A row of a model's log.

    kind: that of an `Entry`, or "key", "answer", "shorter" (an answer in the place of another one),
    "rollback", "epoch". time: in milliseconds since 1970. The others are those of an entry.
    """

    kind: str
    sequence: int
    time: int
    samples: int
    block: int
    head: str
    threads: int
    record: bytes


class Part(NamedTuple):
    """What a message holds: a part of a commit's rows, encoded.

    previous: the sequence of the log's message before the commit; 0 before the first. commit: which
    no two commits have in common. part, parts: which one it is, from 0, and of how many.
    """

    model: int
    previous: int
    commit: bytes
    part: int
    parts: int
    content: bytes


def encode(
    model: int, previous: int, commit: bytes, rows: Sequence[LogRow], most_bytes: int
) -> list[bytes]:
    """The messages of a commit, none of more bytes than a message may have."""
    content: bytes = msgpack.packb(rows)
    size = most_bytes - _AROUND_BYTES
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    places = [(model, previous, commit, part, len(pieces)) for part in range(len(pieces))]
    return [
        msgpack.packb([FORMAT, *place, seal(piece, *place)])
        for place, piece in zip(places, pieces, strict=True)
    ]


def decode(message: bytes) -> Part:
    """Inverse of one message of `encode`. Raises BrokenSeal."""
    try:
        form, *place, sealed = msgpack.unpackb(message)
    except (ValueError, TypeError, msgpack.UnpackException):
        raise BrokenSeal from None
    if form != FORMAT or len(place) != len(Part._fields) - 1:
        raise BrokenSeal
    return Part._make((*place, unseal(sealed, *place)))


def joined(parts: Sequence[Part]) -> list[LogRow]:
    """The rows of a commit, all of whose parts are there."""
    rows = msgpack.unpackb(b"".join(part.content for part in parts))
    return [LogRow._make(row) for row in rows]


def entry_row(entry: Entry, time: int) -> LogRow:
    """The row of an entry."""
    _, sequence, samples, block, head, threads, record, kind = entry
    return LogRow(kind, sequence, time, samples, block, head, threads, record)


def read_entry(model: int, row: LogRow) -> Entry:
    """The entry in a row."""
    kind, sequence, _, samples, block, head, threads, record = row
    values: Any = (model, sequence, samples, block, head, threads, record, kind)
    return Entry._make(values)


def key_row(keyed: KeyedRequest, time: int) -> LogRow:
    """The row of a request's key, or of its answer where it has one."""
    if keyed.answer is not None:
        return event_row("answer", keyed.sequence, time, keyed.answer)
    record = bytes([len(keyed.key)]) + keyed.key + keyed.digest
    return event_row("key", keyed.sequence, time, record)._replace(samples=keyed.samples)


def read_key(model: int, row: LogRow) -> KeyedRequest:
    """The key in a row, without an answer."""
    end = 1 + row.record[0]
    key, digest = row.record[1:end], row.record[end:]
    return KeyedRequest(model, row.sequence, key, digest, None, row.samples)


def rollback_row(rollback: Rollback, learned: int, time: int) -> LogRow:
    """The row of a rollback, of a model that had learned its entries up to a sequence."""
    record = json.dumps({**rollback._asdict(), "learned": learned}).encode()
    return event_row("rollback", rollback.description["at"], time, record)


def read_rollback(row: LogRow) -> tuple[Rollback, int]:
    """The rollback in a row, and the sequence up to which the model had learned."""
    fields = json.loads(row.record)
    learned: int = fields.pop("learned")
    return Rollback(**fields), learned


def event_row(kind: str, sequence: int, time: int, record: bytes) -> LogRow:
    """A row that brings no samples."""
    return LogRow(kind, sequence, time, 0, sequence, "", 0, record)
