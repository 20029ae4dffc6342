"""The tables of the SQLite journal, and how its rows are sealed."""

from service.storage.entries import Entry, KeyedRequest
from service.storage.seals import seal, unseal, unseal_if_marked

# Format 1 had no fits, 2 neither keys nor rollbacks; they are read, and become 3 when opened.
FORMAT = 3
READABLE_FORMATS = (0, 1, 2, FORMAT)
_ENTRY_COLUMNS = """
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
CREATE TABLE IF NOT EXISTS entries ({_ENTRY_COLUMNS}) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fits ({_ENTRY_COLUMNS});
CREATE TABLE IF NOT EXISTS keys (
    model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
    sequence INTEGER NOT NULL,  -- of the entry
    key BLOB NOT NULL,
    digest BLOB NOT NULL,       -- of the request
    answer BLOB,                -- null until it is known
    PRIMARY KEY (model, sequence),
    UNIQUE (model, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rollbacks (
    model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
    part INTEGER NOT NULL,
    sequence INTEGER NOT NULL,  -- of the model when it went back
    told BLOB NOT NULL,         -- what the model's description says of the rollback
    record BLOB NOT NULL,       -- a part of the bytes of the snapshot that it went back to
    PRIMARY KEY (model, part)
);
"""
# The columns of each table in their order.
COLUMNS = {
    "models": ("id", "name", "spec"),
    "entries": Entry._fields,
    "fits": Entry._fields,
    "keys": KeyedRequest._fields,
    "rollbacks": ("model", "part", "sequence", "told", "record"),
}


def seal_entry(entry: Entry) -> Entry:
    """An entry as its row holds it."""
    *columns, record = entry
    return entry._replace(record=seal(record, *columns))


def unseal_entry(row: tuple[object, ...]) -> Entry:
    """The entry in a row. Raises BrokenSeal."""
    entry = Entry._make(row)
    *columns, record = entry
    return entry._replace(record=unseal_if_marked(record, *columns))


def seal_key(keyed: KeyedRequest) -> KeyedRequest:
    """A key as its row holds it."""
    model, sequence, key, digest, answer = keyed
    return keyed._replace(
        digest=seal(digest, model, sequence, key),
        answer=None if answer is None else seal(answer, model, sequence),
    )


def unseal_key(row: tuple[object, ...]) -> KeyedRequest:
    """The key in a row. Raises BrokenSeal."""
    keyed = KeyedRequest._make(row)
    model, sequence, key, digest, answer = keyed
    return keyed._replace(
        digest=unseal(digest, model, sequence, key),
        answer=None if answer is None else unseal(answer, model, sequence),
    )
