"""The rows of the SQLite journal: one table, whose rows are added and deleted, never changed.

At each sequence of a model, rows are in this order: the samples, their key, their response, then
whatever else happened before the next sample, in order of arrival.

The rows of model 0 record creations and deletions of models. Their sequence counts these events;
the sequence of a creation is the model's number.

Rows are deleted only when snapshots have replaced them, with their model, or when there are too
many keys or responses.

A row's content has a seal, a digest of the whole row. SQLite checks the structure of its pages, not
their content: a seal reveals damage there. It does not prove who wrote a row.
"""

import hashlib
import json
from typing import Any, NamedTuple

from wolfstream.service.storage.entries import CatalogueEntry, Entry, KeyedRequest, Rollback

# First byte of a seal. Neither MessagePack nor JSON ever begins with it.
_MARK = b"\xc1"
_DIGEST_BYTES = 8


class BrokenSeal(Exception):
    """A row differs from what was written."""

    def __str__(self) -> str:
        return "a row does not match its checksum"


def seal(content: bytes, *columns: object) -> bytes:
    """Return the content with a seal over it and the row's other columns."""
    return _MARK + _digest(content, columns) + content


def unseal(sealed: Any, *columns: object) -> bytes:
    """Invert `seal`. Raises BrokenSeal."""
    if not isinstance(sealed, bytes) or not sealed.startswith(_MARK):
        raise BrokenSeal
    digest, content = sealed[1 : 1 + _DIGEST_BYTES], sealed[1 + _DIGEST_BYTES :]
    if digest != _digest(content, columns):
        raise BrokenSeal
    return content


def _digest(content: bytes, columns: tuple[object, ...]) -> bytes:
    hashed = hashlib.blake2b(repr(columns).encode(), digest_size=_DIGEST_BYTES)
    hashed.update(content)
    return hashed.digest()


FORMAT = 1
OF_SERVER = 0  # the model of rows that record creations and deletions
# Places of rows at a sequence; from LATER on, in order of arrival.
SAMPLES, KEY, ANSWER, LATER = range(4)
# kind of row -> its place, or the first of its places.
KINDS = {
    "samples": SAMPLES,
    "labels": SAMPLES,
    "key": KEY,
    "answer": ANSWER,
    "fit": LATER,
    "checkpoint": LATER,
    "prediction": LATER,
    "rollback": LATER,
    "epoch": LATER,
    "created": SAMPLES,
    "deleted": SAMPLES,
}
# As SQL lists: kinds of entries that have samples, and those that share another's sequence.
WITH_SAMPLES = "('samples', 'labels')"
WITHOUT_SAMPLES = "('prediction', 'fit', 'checkpoint')"
SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    model INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    place INTEGER NOT NULL,     -- the order of the rows of a sequence
    kind TEXT NOT NULL,
    time INTEGER NOT NULL,      -- in milliseconds since 1970
    samples INTEGER NOT NULL,
    block INTEGER NOT NULL,     -- sequence of the block's last sample; see storage.entries
    head TEXT NOT NULL,
    threads INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (model, sequence, place)
) WITHOUT ROWID
"""


class Row(NamedTuple):
    """A row of the table `log`, with its columns in order."""

    model: int
    sequence: int
    place: int
    kind: str
    time: int
    samples: int
    block: int
    head: str
    threads: int
    record: bytes


def entry_row(entry: Entry, time: int, place: int = SAMPLES) -> Row:
    """Return the row of an entry."""
    model, sequence, samples, block, head, threads, record, kind = entry
    columns = (model, sequence, place, kind, time, samples, block, head, threads)
    return Row._make((*columns, seal(record, *columns)))


def key_row(keyed: KeyedRequest, time: int) -> Row:
    """Return the row of a keyed request, without its response."""
    record = bytes([len(keyed.key)]) + keyed.key + keyed.digest
    model, sequence, samples = keyed.model, keyed.sequence, keyed.samples
    return sealed(Row(model, sequence, KEY, "key", time, samples, sequence, "", 0, record))


def answer_row(keyed: KeyedRequest, time: int) -> Row:
    """Return the row of the response to a keyed request."""
    record = keyed.answer or b""
    return event_row(keyed.model, keyed.sequence, ANSWER, "answer", time, record)


def event_row(model: int, sequence: int, place: int, kind: str, time: int, record: bytes) -> Row:
    """Return a row without samples."""
    return sealed(Row(model, sequence, place, kind, time, 0, sequence, "", 0, record))


def sealed(row: Row) -> Row:
    """Return a row to store: its record is sealed together with the other columns."""
    columns = row[:-1]
    return Row(*columns, seal(row.record, *columns))


def unsealed(values: tuple[Any, ...]) -> Row:
    """Return a row from its stored columns. Raises BrokenSeal."""
    row = Row._make(values)
    *columns, record = row
    return row._replace(record=unseal(record, *columns))


def read_entry(values: tuple[Any, ...]) -> Entry:
    """Return the entry in a row. Raises BrokenSeal."""
    row = unsealed(values)
    return Entry(
        row.model,
        row.sequence,
        row.samples,
        row.block,
        row.head,  # type: ignore[arg-type]  # the seal proves that an entry's head was stored
        row.threads,
        row.record,
        row.kind,  # type: ignore[arg-type]  # callers select rows of entries only
    )


def read_key(values: tuple[Any, ...], answer: tuple[Any, ...] | None) -> KeyedRequest:
    """Return the keyed request in a row, with the response in another. Raises BrokenSeal."""
    row = unsealed(values)
    end = 1 + row.record[0]  # the first byte is the length of the key
    answer_record = None if answer is None else unsealed(answer).record
    key, digest = row.record[1:end], row.record[end:]
    return KeyedRequest(row.model, row.sequence, key, digest, answer_record, row.samples)


def rollback_record(rollback: Rollback) -> bytes:
    """Return a rollback as bytes."""
    return json.dumps(rollback._asdict()).encode()


def read_rollback(values: tuple[Any, ...]) -> Rollback:
    """Return the rollback in a row. Raises BrokenSeal."""
    return Rollback(**json.loads(unsealed(values).record))


def created_record(
    name: str, spec: dict[str, Any], epoch: str, follows: int | None = None
) -> bytes:
    """Return the creation of a model as bytes."""
    record = {"name": name, "spec": spec, "epoch": epoch}
    return json.dumps(record if follows is None else {**record, "follows": follows}).encode()


def read_created(values: tuple[Any, ...]) -> CatalogueEntry:
    """Return the model whose creation a row records. Raises BrokenSeal."""
    row = unsealed(values)
    return CatalogueEntry(row.sequence, **json.loads(row.record))
