"""Idempotency keys: what makes two requests the same, so that the second is not learned again.

What a client names a request by, and the text that becomes a key of the model:

    Idempotency-Key: KEY                          CLIENT KEY
    a frame's id on .../stream?producer=NAME      CLIENT NAME ID    the id as JSON

CLIENT is the name of the API key as JSON, so no client sees another's answers, and a client whose
key was replaced by another of the same name is still the same; it is empty where no API key is
needed.
KEY and NAME contain no space, so no two texts of different forms are the same.
The journal has digests of these texts.

A key is committed with its entry. Its answer is known once the entry's block is absorbed; it is
written in the next commit that has keys, and in any case before a snapshot is begun. So an entry
without an answer comes after every snapshot: recovery replays it, by the same function as live,
and the result is the first answer. A rollback takes only the keys of entries that were never
learned, because they broke the model.

Only the number of keys decides which are forgotten, the oldest first, so no clock that jumps can
lose one.
"""

import hashlib
import json
import re
from collections.abc import Sequence

from wolfstream.service.errors import Invalid
from wolfstream.service.spec.heads import HeadName

_VISIBLE = re.compile(r"[!-~]{1,255}")
# Two texts or records with one digest do not turn up by chance; keys stay in memory.
_KEY_BYTES, _BODY_BYTES = 16, 32


def header_key(values: Sequence[str], client: str) -> bytes | None:
    """The key in the `Idempotency-Key` headers of a request; None without one. Raises Invalid.

    A value is the key itself, or a string of structured fields (RFC 9651): the key in double
    quotes, with a backslash before a quote or backslash.
    """
    if not values:
        return None
    if len(values) > 1:
        raise Invalid("a request takes one Idempotency-Key")
    value = values[0]
    if value.startswith('"'):
        quoted = re.fullmatch(r'"((?:[^"\\]|\\["\\])*)"', value)
        value = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    return _digest(_KEY_BYTES, f"{_text(client)} {_checked(value, 'Idempotency-Key')}".encode())


def frame_key(client: str, producer: str, frame_id: int | str) -> bytes:
    """Return the key of a frame that brings samples, on a stream with a checked producer."""
    return _digest(_KEY_BYTES, f"{_text(client)} {producer} {json.dumps(frame_id)}".encode())


def read_producer(value: str | None) -> str | None:
    """Return the producer in a stream's query. Raises Invalid."""
    return None if value is None else _checked(value, "producer")


def body_digest(head: HeadName, record: bytes) -> bytes:
    """Return the digest of a request's head and, whatever format they came in, its samples."""
    return _digest(_BODY_BYTES, head.encode() + b" " + record)


def _text(client: str) -> str:
    return json.dumps(client) if client else ""


def _checked(key: str, name: str) -> str:
    if not _VISIBLE.fullmatch(key):
        raise Invalid(f"{name} must have 1 to 255 visible ASCII characters, without spaces")
    return key


def _digest(size: int, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()
