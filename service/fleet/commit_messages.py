"""The encoding of a commit in a model's log: rows, and the messages that hold them.

A commit is a list of rows. It is stored in one message, or in several as fragments if it is larger
than a message may be. Each message names its predecessor, so a reader notices gaps. A seal covers
the fragment and its position in the log (`storage.sqlite_rows`).
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback
from wolfstream.service.storage.sqlite_rows import BrokenSeal, seal, unseal

# The first field of each message. A reader refuses formats that it does not know.
FORMAT = 1
# A commit's name begins with the name of its writer, which is the same for all commits of a term.
WRITER_BYTES = 6
# Bytes of a message that are reserved for headers and for the fields other than its content.
_AROUND_BYTES = 2048


class OtherFormat(Exception):
    """A message has a format that this version cannot read.

    The error's text begins with a verb, to follow the name of a log.
    """


class LogRow(NamedTuple):
    """A row of a model's log.

    Attributes:
        kind: the kind of an `Entry`, or one of these:

            | kind | says |
            |---|---|
            | created | the model exists; the first row, which begins its creator's term |
            | epoch | another replica's term begins, in this epoch |
            | rollback | the model went back to a pinned state |
            | unpinned | these pinned states will be deleted, now or later |
            | key, answer | the idempotency key of a request, and its response |
            | shorter | a response that replaces another |
            | forgotten | the keys up to this sequence are forgotten |
            | purged | messages will be deleted, now or later (`log_index.Purge`) |
            | deleted | the model was deleted; the last row |
        sequence: sequence of the model when the row was written.
        time: milliseconds since 1970.
        samples: see `Entry`, also for the fields below.
    """

    kind: str
    sequence: int
    time: int
    samples: int
    block: int
    head: str
    threads: int
    record: bytes


class Fragment(NamedTuple):
    """The content of a message: one fragment of a commit."""

    model: int
    previous: int  # sequence in the stream of the log's message before the commit; 0 if none
    commit: bytes  # the commit's unique name
    number: int  # number of the fragment, from 0
    n_fragments: int  # number of fragments of the commit
    content: bytes  # part of the encoded rows


def encode(
    model: int, previous: int, commit: bytes, rows: Sequence[LogRow], max_bytes: int
) -> list[bytes]:
    """Return the messages of a commit.

    Args:
        model: number of the model.
        previous: sequence in the stream of the log's message before the commit; 0 if none.
        commit: the commit's unique name.
        rows: the commit's content.
        max_bytes: maximum size of a message with its headers.
    """
    content: bytes = msgpack.packb(rows)
    size = max_bytes - _AROUND_BYTES
    fragments = [content[start : start + size] for start in range(0, len(content), size)]
    messages = list[bytes]()
    for number, fragment in enumerate(fragments):
        position = model, previous, commit, number, len(fragments)
        messages.append(msgpack.packb([FORMAT, *position, seal(fragment, *position)]))
    return messages


def decode(message: bytes) -> Fragment:
    """Return the content of a message. Raises BrokenSeal, OtherFormat."""
    try:
        version, *position, sealed = msgpack.unpackb(message)
    except (ValueError, TypeError, msgpack.UnpackException):
        raise BrokenSeal from None
    if version != FORMAT:
        raise OtherFormat(
            f"has a message of format {str(version)[:20]}, and this version reads {FORMAT}: start "
            "the version that wrote it"
        )
    if len(position) != len(Fragment._fields) - 1:
        raise BrokenSeal
    return Fragment._make((*position, unseal(sealed, *position)))


def join_fragments(fragments: Sequence[Fragment]) -> list[LogRow]:
    """Return the rows of a commit from all its fragments in order."""
    rows = msgpack.unpackb(b"".join(fragment.content for fragment in fragments))
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
    """Return the row of a keyed request's response or, if it has none yet, of its key."""
    if keyed.answer is not None:
        return event_row("answer", keyed.sequence, time, keyed.answer)
    record = bytes([len(keyed.key)]) + keyed.key + keyed.digest
    return event_row("key", keyed.sequence, time, record)._replace(samples=keyed.samples)


def read_key(model: int, row: LogRow) -> KeyedRequest:
    """Return the keyed request in a row, without its response."""
    end = 1 + row.record[0]  # the first byte is the length of the key
    key, digest = row.record[1:end], row.record[end:]
    return KeyedRequest(model, row.sequence, key, digest, None, row.samples)


def rollback_row(rollback: Rollback, learned: int, time: int) -> LogRow:
    """Return the row of a rollback.

    Args:
        rollback: the rollback.
        learned: sequence up to which entries were, or may have been, learned.
        time: milliseconds since 1970.
    """
    record = json.dumps({**rollback._asdict(), "learned": learned}).encode()
    return event_row("rollback", rollback.description["at"], time, record)


def read_rollback(row: LogRow) -> tuple[Rollback, int]:
    """Return the rollback in a row, and the sequence up to which entries were learned."""
    fields = json.loads(row.record)
    learned: int = fields.pop("learned")
    return Rollback(**fields), learned


def event_row(kind: str, sequence: int, time: int, record: bytes) -> LogRow:
    """Return a row without samples."""
    return LogRow(kind, sequence, time, 0, sequence, "", 0, record)
