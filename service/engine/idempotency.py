"""Idempotency keys: which requests count as the same, so that the second is not learned again.

A client names a request in one of two ways. Each becomes a text that is unique within the model:

    Idempotency-Key: KEY                          CLIENT KEY
    a frame's id on .../stream?producer=NAME      CLIENT NAME ID    the id as JSON

- CLIENT is the name of the API key as JSON, and empty where no API key is needed. So no client sees
  the answers to another's requests, and a replaced API key of the same name continues the old one.
- KEY and NAME contain no space, so texts of the two forms never collide.
- Logs and memory hold digests of the texts.

The life of a key:

1. It is committed with its entry.
2. Its answer is known once the entry's block is absorbed. The answer is written with the next
   commit that has keys, and at the latest before the next snapshot. So an entry without an answer
   comes after every snapshot: recovery replays it by the same function as live, and gets the first
   answer.
3. It is forgotten when the model has too many, oldest first. Time plays no part, so a clock that
   jumps loses no key. A rollback forgets only keys of entries that broke the model and were never
   learned.
"""

import hashlib
import json
import re
from collections.abc import Sequence

from wolfstream.service.errors import Invalid
from wolfstream.service.spec.heads import HeadName

_VISIBLE = re.compile(r"[!-~]{1,255}")
# Digests of these lengths do not collide by chance. Keys stay in memory, so theirs are short.
_KEY_BYTES, _BODY_BYTES = 16, 32


def header_key(values: Sequence[str], client: str) -> bytes | None:
    """Return the key in a request's `Idempotency-Key` headers; None without one. Raises Invalid.

    A value is the key itself, or a string as structured fields write it (RFC 9651): the key in
    double quotes, with a backslash before each quote or backslash.
    """
    if not values:
        return None
    if len(values) > 1:
        raise Invalid("several Idempotency-Key headers; send one")
    value = values[0]
    if value.startswith('"'):
        quoted = re.fullmatch(r'"((?:[^"\\]|\\["\\])*)"', value)
        value = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    return _digest(_KEY_BYTES, f"{_text(client)} {_checked(value, 'Idempotency-Key')}".encode())


def frame_key(client: str, producer: str, frame_id: int | str) -> bytes:
    """Return the key of a learning frame, on a stream whose producer was checked."""
    return _digest(_KEY_BYTES, f"{_text(client)} {producer} {json.dumps(frame_id)}".encode())


def read_producer(value: str | None) -> str | None:
    """Return the checked producer of a stream's query. Raises Invalid."""
    return None if value is None else _checked(value, "producer")


def body_digest(head: HeadName, record: bytes) -> bytes:
    """Return the digest of a request's head and samples, whatever format these came in."""
    return _digest(_BODY_BYTES, head.encode() + b" " + record)


def _text(client: str) -> str:
    return json.dumps(client) if client else ""


def _checked(key: str, name: str) -> str:
    if not _VISIBLE.fullmatch(key):
        raise Invalid(f"{name} must have 1 to 255 visible ASCII characters, without spaces")
    return key


def _digest(size: int, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()
