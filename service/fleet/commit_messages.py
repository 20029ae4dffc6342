"""The messages of a model's log that hold one commit.

A commit is a list of rows. It takes one message, or several if it has more bytes than a message may
have. Each message names the one that it follows, so that a reader notices a missing one. The rows
and the place in the log are sealed together (`storage.seals`).
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback
from wolfstream.service.storage.seals import BrokenSeal, seal, unseal

# The format, first in each message. A reader refuses a format that it does not know.
FORMAT = 2
# The bytes of a commit's name that all commits of one term have in common.
WRITER_BYTES = 6
# The bytes of a message that are left to headers and to the fields around its part of the rows.
_AROUND_BYTES = 2048


class OtherFormat(Exception):
    """A message is of a format that this version does not read; the text follows a log's name."""


class LogRow(NamedTuple):
    """A row of a model's log.

    Attributes:
        kind: that of an `Entry`, or one of these:

            | kind | says |
            |---|---|
            | created | the model was made; first in each log, and the maker's term begins |
            | epoch | another replica's term begins, in this epoch |
            | rollback | the model went back to a pinned state |
            | unpinned | these pinned states are deleted now or later |
            | key, answer | the idempotency key of a request, and its answer |
            | shorter | an answer in the place of another one |
            | forgotten | the keys up to this sequence are forgotten |
            | purged | the messages before one are deleted now or later (`log_index.Purge`) |
            | deleted | the model was deleted; last in the log |
        sequence: of the model, when the row was written.
        time: in milliseconds since 1970.
        samples: as of an entry, like the rest.
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
    """The content of a message: a part of a commit's encoded rows.

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
    """Return the messages of a commit, none with more bytes than a message may have."""
    content: bytes = msgpack.packb(rows)
    size = most_bytes - _AROUND_BYTES
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    places = [(model, previous, commit, part, len(pieces)) for part in range(len(pieces))]
    return [
        msgpack.packb([FORMAT, *place, seal(piece, *place)])
        for place, piece in zip(places, pieces, strict=True)
    ]


def decode(message: bytes) -> Part:
    """Return the content of a message; the inverse of `encode`. Raises BrokenSeal, OtherFormat."""
    try:
        form, *place, sealed = msgpack.unpackb(message)
    except (ValueError, TypeError, msgpack.UnpackException):
        raise BrokenSeal from None
    if form != FORMAT:
        raise OtherFormat(_other_format(form))
    if len(place) != len(Part._fields) - 1:
        raise BrokenSeal
    return Part._make((*place, unseal(sealed, *place)))


def _other_format(form: object) -> str:
    if isinstance(form, int) and form < FORMAT:
        return (
            f"has format {form}, and this version reads {FORMAT}: export its models with the "
            "version that wrote them (`wolfstream fleet backup`), and restore them here"
        )
    return (
        f"has a message of format {str(form)[:20]}, and this version reads {FORMAT}: start the "
        "version that wrote it"
    )


def joined(parts: Sequence[Part]) -> list[LogRow]:
    """Return the rows of a commit, given all its parts."""
    rows = msgpack.unpackb(b"".join(part.content for part in parts))
    return [LogRow._make(row) for row in rows]


def entry_row(entry: Entry, time: int) -> LogRow:
    """Return the row of an entry."""
    _, sequence, samples, block, head, threads, record, kind = entry
    return LogRow(kind, sequence, time, samples, block, head, threads, record)


def read_entry(model: int, row: LogRow) -> Entry:
    """Return the entry in a row."""
    kind, sequence, _, samples, block, head, threads, record = row
    values: Any = (model, sequence, samples, block, head, threads, record, kind)
    return Entry._make(values)


def key_row(keyed: KeyedRequest, time: int) -> LogRow:
    """Return the row of a request's key, or of its answer if it has one."""
    if keyed.answer is not None:
        return event_row("answer", keyed.sequence, time, keyed.answer)
    record = bytes([len(keyed.key)]) + keyed.key + keyed.digest
    return event_row("key", keyed.sequence, time, record)._replace(samples=keyed.samples)


def read_key(model: int, row: LogRow) -> KeyedRequest:
    """Return the key in a row, without an answer."""
    end = 1 + row.record[0]
    key, digest = row.record[1:end], row.record[end:]
    return KeyedRequest(model, row.sequence, key, digest, None, row.samples)


def rollback_row(rollback: Rollback, learned: int, time: int) -> LogRow:
    """Return the row of a rollback. learned: the sequence that the model had reached."""
    record = json.dumps({**rollback._asdict(), "learned": learned}).encode()
    return event_row("rollback", rollback.description["at"], time, record)


def read_rollback(row: LogRow) -> tuple[Rollback, int]:
    """Return the rollback in a row, and the sequence that the model had reached."""
    fields = json.loads(row.record)
    learned: int = fields.pop("learned")
    return Rollback(**fields), learned


def event_row(kind: str, sequence: int, time: int, record: bytes) -> LogRow:
    """Return a row without samples."""
    return LogRow(kind, sequence, time, 0, sequence, "", 0, record)
