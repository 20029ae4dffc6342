"""The logs of a simulated fleet as its stream has stored them, purged messages included.

It is written from the description of the format, and shares no code with the product. A kind of
rows that it does not know has no samples.
"""

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgpack

from tests.simulation.stream_link import Archived

_LOG, CATALOGUE = "wolfstream.log.", "$KV.wolfstream-models.model."
# Bytes of a seal before the rows, and of the writer's name in the name of a commit.
_SEAL_BYTES, _WRITER_BYTES = 9, 6
_WITH_SAMPLES = ("samples", "labels")
_FLOAT = struct.Struct("<d")


class Row(NamedTuple):
    """A row of a log. record: the bytes that only some kinds have."""

    kind: str
    sequence: int
    time: int
    samples: int
    block: int
    head: str
    threads: int
    record: bytes


@dataclass
class Commit:
    """A commit: its messages, and who has sent them when.

    writer: the part of its name that one learner's commits have in common.
    client: the connection of the replica that has sent it.
    """

    first: int
    last: int
    previous: int
    writer: bytes
    client: str
    at: float
    rows: list[Row]

    def __str__(self) -> str:
        rows = ", ".join(f"{row.kind} {row.sequence}" for row in self.rows)
        return (
            f"{self.at:9.3f} s  message {self.first}-{self.last} after {self.previous} by "
            f"{self.client} ({self.writer.hex()}): {rows or 'nothing'}"
        )


@dataclass
class Log:
    """All commits of a model, in the order of the stream."""

    number: int
    commits: list[Commit] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def around(self, commit: Commit) -> str:
        """Return the commits around one, one on each line."""
        at = self.commits.index(commit)
        shown = self.commits[max(at - 4, 0) : at + 3]
        return "\n".join(f"  {'>' if each is commit else ' '} {each}" for each in shown)


class CatalogueChange(NamedTuple):
    """A model that was made, or deleted where the number is None."""

    at: float
    name: str
    number: int | None
    follows: int | None
    epoch: str


def logs(archive: Sequence[Archived]) -> dict[int, Log]:
    """Return the logs of all models that there have ever been, by their numbers."""
    recorded: dict[int, Log] = {}
    parts: dict[tuple[int, bytes], list[tuple[Archived, list[Any]]]] = defaultdict(list)
    for archived in archive:
        if not archived.message.subject.startswith(_LOG):
            continue
        _, number, previous, commit, part, n_parts, sealed = msgpack.unpackb(archived.message.body)
        log = recorded.setdefault(number, Log(number))
        pending = parts[number, commit]
        if part != len(pending):
            log.faults.append(f"model {number}: part {part} of a commit is out of order")
        pending.append((archived, [sealed[_SEAL_BYTES:]]))
        if len(pending) == n_parts:
            content = b"".join(piece for _, (piece,) in pending)
            rows = [Row(*row) for row in msgpack.unpackb(content)]
            (first, _), (last, _) = pending[0], pending[-1]
            log.commits.append(
                Commit(
                    first.message.sequence,
                    last.message.sequence,
                    previous,
                    commit[:_WRITER_BYTES],
                    last.writer,
                    last.at,
                    rows,
                )
            )
    return recorded


def catalogue(archive: Iterable[Archived]) -> list[CatalogueChange]:
    """Return the changes of the catalogue."""
    changes = list[CatalogueChange]()
    for archived in archive:
        if archived.message.subject.startswith(CATALOGUE):
            name = archived.message.subject.removeprefix(CATALOGUE)
            entry = json.loads(archived.message.body) if archived.message.body else {}
            number, follows = entry.get("number"), entry.get("follows")
            change = CatalogueChange(archived.at, name, number, follows, entry.get("epoch", ""))
            changes.append(change)
    return changes


def has_samples(row: Row) -> bool:
    """Return whether a row teaches samples."""
    return row.kind in _WITH_SAMPLES


def first_numbers(row: Row) -> list[float]:
    """Return the first number of each sample of a row."""
    (n, width), numbers, *_ = _arrays(msgpack.unpackb(row.record))
    return [_FLOAT.unpack_from(numbers, 8 * width * at)[0] for at in range(n)]


def _arrays(record: Any) -> Any:
    """Return the samples' part of a record; that of labels has ids beside it."""
    if isinstance(record[0], bytes):
        return _arrays(msgpack.unpackb(record[0]))
    return record


def key_of(row: Row) -> bytes | None:
    """Return the idempotency key in a row, if it has archived."""
    return row.record[1 : 1 + row.record[0]] if row.kind == "key" else None
