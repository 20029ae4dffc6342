"""The rows of the log, their tables, and how they are sealed."""

from typing import Any, NamedTuple

from service.seals import seal, unseal, unseal_if_marked
from service.spec import HeadName

# Format 1 had no fits, 2 neither keys nor rollbacks; they are read, and become 3 when opened.
FORMAT = 3
READ = (0, 1, 2, FORMAT)
_COLUMNS = """
    model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
    sequence INTEGER NOT NULL,  -- of the request's last sample
    samples INTEGER NOT NULL,
    block INTEGER NOT NULL,     -- sequence of the block's last sample
    head TEXT NOT NULL,
    threads INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (model, sequence)
"""
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS models (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entries ({_COLUMNS}) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fits ({_COLUMNS});
CREATE TABLE IF NOT EXISTS keys (
    model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
    sequence INTEGER NOT NULL,  -- of the entry
    key BLOB NOT NULL,
    digest BLOB NOT NULL,       -- of what was asked for
    answer BLOB,                -- null until it is known
    PRIMARY KEY (model, sequence),
    UNIQUE (model, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rollbacks (
    model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
    part INTEGER NOT NULL,
    sequence INTEGER NOT NULL,  -- of the model when it went back
    told BLOB NOT NULL,         -- what its description says of it
    record BLOB NOT NULL,       -- a part of the bytes of the snapshot that it went back to
    PRIMARY KEY (model, part)
);
"""


class Entry(NamedTuple):
    """One accepted request of one model; or a fit, which has no samples and is its own block."""

    model: int
    sequence: int
    samples: int
    block: int
    head: HeadName
    threads: int
    record: bytes

    def sealed(self) -> "Entry":
        """As it is stored."""
        *columns, record = self
        return self._replace(record=seal(record, *columns))

    def unsealed(self) -> "Entry":
        """Inverse of `sealed`. Raises BrokenSeal."""
        *columns, record = self
        return self._replace(record=unseal_if_marked(record, *columns))


class Keyed(NamedTuple):
    """The key of one entry; answer: None until it is known."""

    model: int
    sequence: int
    key: bytes
    digest: bytes
    answer: bytes | None

    def sealed(self) -> "Keyed":
        """As it is stored."""
        model, sequence, key, digest, answer = self
        return self._replace(
            digest=seal(digest, model, sequence, key),
            answer=None if answer is None else seal(answer, model, sequence),
        )

    def unsealed(self) -> "Keyed":
        """Inverse of `sealed`. Raises BrokenSeal."""
        model, sequence, key, digest, answer = self
        return self._replace(
            digest=unseal(digest, model, sequence, key),
            answer=None if answer is None else unseal(answer, model, sequence),
        )


class Rollback(NamedTuple):
    """A model's last rollback: what is told of it, and the snapshot's bytes."""

    told: dict[str, Any]
    content: bytes


# The columns of each table, which NamedTuples are read from.
COLUMNS = {
    "models": ("id", "name", "spec"),
    "entries": Entry._fields,
    "fits": Entry._fields,
    "keys": Keyed._fields,
    "rollbacks": ("model", "part", "sequence", "told", "record"),
}
