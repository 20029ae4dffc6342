"""A directory in the state that a disk may have after a loss of power.

The layer under libc (`calls.c`) tells what a process did below a directory, call by call. What it
synced is there afterwards; of what it did not sync, a disk may have anything: each write whole,
not at all, half of it, or some of its sectors; each name as it was before a rename or after it. A
sector is written as a whole or not at all. A file that was synced under a name that was not is gone
with it.
"""

import os
import shutil
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

SECTOR = 512
KINDS = (
    *("", "create", "truncate", "write", "sync", "sync directory", "rename", "unlink", "mkdir"),
    *("rmdir", "unknown"),
)
LOSSES = ("drop", "keep", "prefix", "tear", "any")
_RECORD = struct.Struct("<4I2Q")


class Record(NamedTuple):
    """A call that took effect. path, to: below the root. offset: of a truncation, the length."""

    kind: str
    inode: int
    offset: int
    path: str
    to: str
    data: bytes


@dataclass
class File:
    """durable: its content on the disk. pending: offsets and data, None where it was cut there."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, *change)
        self.pending.clear()


@dataclass(eq=False)
class Folder:
    """names: as the process sees them. durable: those on the disk."""

    names: dict[str, "File | Folder"] = field(default_factory=dict)
    durable: dict[str, "File | Folder"] = field(default_factory=dict)


# What a change of names makes of some of them; None removes a name.
Change = list[tuple[Folder, str, "File | Folder | None"]]


def read_records(path: Path) -> Iterator[Record]:
    """The records of a log, whose last one may have been cut short by the end of the process."""
    content = path.read_bytes() if path.exists() else b""
    at = 0
    while at + _RECORD.size <= len(content):
        kind, *lengths, inode, offset = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        parts = []
        for length in lengths:
            parts.append(content[at : at + length])
            at += length
        if at <= len(content):
            name, to, data = parts
            yield Record(KINDS[kind], inode, offset, os.fsdecode(name), os.fsdecode(to), data)


class Disk:
    """The files below a directory: first as they are, all of them durable."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._inodes: dict[int, File | Folder] = {}
        self._renamed: list[Change] = []
        self._top = self._scan(root)
        self.unsynced_writes = self.unsynced_names = 0

    def follow(self, records: Iterable[Record]) -> None:
        """Do what a process did."""
        for record in records:
            self._do(record)

    def lose_power(self, random: Random, loss: str, to: Path | None = None) -> None:
        """Make of the directory what is left, or write that to another one.

        loss: of what was not synced, all is dropped or kept; or what came first is kept, up to a
        write that is cut in half; or all names are kept, and writes torn; or each by itself.
        """
        files = {id(node): node for node in self._inodes.values() if isinstance(node, File)}
        self.unsynced_writes = sum(len(file.pending) for file in files.values())
        self.unsynced_names = len(self._renamed)
        for change in _kept_changes(self._renamed, random, loss):
            _rename(change)
        if to is None:
            shutil.rmtree(self._root)
        _write(self._top, to or self._root, random, loss)

    def _scan(self, path: Path) -> Folder:
        found = Folder()
        self._inodes[path.stat().st_ino] = found
        for child in path.iterdir():
            node = self._scan(child) if child.is_dir() else File(bytearray(child.read_bytes()))
            found.names[child.name] = found.durable[child.name] = node
            self._inodes[child.stat().st_ino] = node
        return found

    def _do(self, record: Record) -> None:
        node = self._inodes.get(record.inode)
        match record.kind:
            case "create" | "mkdir":
                made: File | Folder = File() if record.kind == "create" else Folder()
                self._inodes[record.inode] = made
                self._change([(*self._place(record.path), made)])
            case "write":
                assert isinstance(node, File)
                node.pending.append((record.offset, record.data))
            case "truncate":
                assert isinstance(node, File)
                node.pending.append((record.offset, None))
            case "sync":
                assert isinstance(node, File)
                node.sync()
            case "sync directory":
                assert isinstance(node, Folder)
                self._sync_names(node)
            case "rename":
                folder, name = self._place(record.path)
                moved = folder.names[name]
                self._change([(folder, name, None), (*self._place(record.to), moved)])
            case "unlink" | "rmdir":
                self._change([(*self._place(record.path), None)])
            case _:
                raise AssertionError(f"the recorder does not know what {record.path} does")

    def _place(self, path: str) -> tuple[Folder, str]:
        *above, name = path.split("/")
        folder = self._top
        for part in above:
            below = folder.names[part]
            assert isinstance(below, Folder)
            folder = below
        return folder, name

    def _change(self, change: Change) -> None:
        for folder, name, node in change:
            if node is None:
                del folder.names[name]
            else:
                folder.names[name] = node
        self._renamed.append(change)

    def _sync_names(self, folder: Folder) -> None:
        waiting = []
        for change in self._renamed:
            if any(changed is folder for changed, *_ in change):
                _rename(change)
            else:
                waiting.append(change)
        self._renamed = waiting


def _rename(change: Change) -> None:
    """Change names on the disk."""
    for folder, name, node in change:
        if node is None:
            folder.durable.pop(name, None)
        else:
            folder.durable[name] = node


def _kept_changes(changes: list[Change], random: Random, loss: str) -> list[Change]:
    match loss:
        case "drop":
            return []
        case "keep" | "tear":
            return changes
        case "prefix":
            return changes[: random.randint(0, len(changes))]
    return [change for change in changes if random.random() < 0.5]


def _write(folder: Folder, path: Path, random: Random, loss: str) -> None:
    """Write what is left of a folder; names of files that were open without one are not there."""
    path.mkdir(0o700)
    for name, node in folder.durable.items():
        if isinstance(node, Folder):
            _write(node, path / name, random, loss)
            continue
        content = bytearray(node.durable)
        for offset, data in _left_of(node.pending, random, loss):
            _apply(content, offset, data)
        (path / name).touch(0o600)
        (path / name).write_bytes(content)


def _left_of(
    pending: list[tuple[int, bytes | None]], random: Random, loss: str
) -> Iterator[tuple[int, bytes | None]]:
    """Yield what a disk has of writes that were not synced."""
    if loss == "prefix":
        whole = random.randint(0, len(pending))
        yield from pending[:whole]
        for offset, data in pending[whole : whole + 1]:
            if data is not None:
                yield offset, _half(offset, data)
    elif loss != "drop":
        for offset, data in pending:
            fate = "keep" if loss == "keep" else random.choice(("drop", "keep", "half", "sectors"))
            if fate == "drop":
                continue
            if fate == "keep" or data is None:
                yield offset, data
            elif fate == "half":
                yield offset, _half(offset, data)
            else:
                yield from _sectors(offset, data, random)


def _half(offset: int, data: bytes) -> bytes:
    """Return what comes before the sector in which the middle of a write is."""
    middle = offset + len(data) // 2
    return data[: max(0, middle - middle % SECTOR - offset)]


def _sectors(offset: int, data: bytes, random: Random) -> Iterator[tuple[int, bytes]]:
    """Yield some of the sectors that a write touches."""
    at = 0
    while at < len(data):
        end = min(len(data), at + SECTOR - (offset + at) % SECTOR)
        if random.random() < 0.5:
            yield offset + at, data[at:end]
        at = end


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
    content.extend(bytes(max(0, offset - len(content))))
    if data is not None:
        content[offset : offset + len(data)] = data
