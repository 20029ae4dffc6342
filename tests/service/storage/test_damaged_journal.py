"""Damage to the journal is refused or changes nothing; a commit that failed stays undone."""

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.storage.writing import append, create, keys_of, log_of
from wolfstream.service.errors import StartupError
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.entries import Entry, KeyedRequest
from wolfstream.service.storage.wal_check import check_write_ahead

SPEC = {"seed": 7, "kernel": {"gamma": 0.25}}
FRAME = 24 + 4096


def entries(model: int, first: int, n: int, size: int = 300) -> list[Entry]:
    content = random.Random(first)
    return [
        Entry(model, k, 1, first + n - 1, "asset", 1, b"\x93" + content.randbytes(size))
        for k in range(first, first + n)
    ]


def contents(path: Path) -> list[object]:
    """The models and all of their entries."""
    storage = open_storage(path.parent)
    try:
        models = storage.catalogue.models()
        for model in models:
            keys_of(log_of(storage, model.number))
        return [(model, list(log_of(storage, model.number).blocks(0))) for model in models]
    finally:
        storage.close()


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A log in one file: two models, several pages of entries, a fit."""
    path = tmp_path / "closed" / "log.sqlite"
    path.parent.mkdir()
    storage = open_storage(path.parent)
    for name in ("a", "b"):
        model = create(storage, name, SPEC)
        append(storage, entries(model, 1, 40), [KeyedRequest(model, 3, b"key", b"digest", None, 1)])
        append(storage, [Entry(model, 40, 0, 40, "semiparametric", 1, b"fit", "fit")])
    create(storage, "empty", SPEC)
    storage.close()
    return path


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A log whose commits stand in the write-ahead file."""
    folder, path = tmp_path / "killed", tmp_path / "living" / "log.sqlite"
    path.parent.mkdir()
    storage = open_storage(path.parent)
    model = create(storage, "a", SPEC)
    for n in range(1, 11):
        append(storage, entries(model, n, 1))
    shutil.copytree(path.parent, folder)  # as kill -9 leaves them
    storage.close()
    return folder / path.name


def change(path: Path, at: int, by: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= by
    path.write_bytes(content)


@pytest.mark.parametrize("seed", [0, 1, 2, 23])
def test_a_changed_byte_is_refused_or_changes_nothing(closed: Path, seed: int) -> None:
    whole, before = closed.read_bytes(), contents(closed)
    places = random.Random(seed)
    refused = 0
    for _ in range(40):
        at, by = places.randrange(len(whole)), places.randrange(1, 256)
        change(closed, at, by)
        try:
            assert contents(closed) == before, (at, by)
        except StartupError:
            refused += 1
        closed.write_bytes(whole)
    assert refused > 10


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET record = CAST(replace(CAST(record AS TEXT), '0.25', '0.35') AS BLOB) "
        "WHERE kind = 'created'",
        "UPDATE log SET sequence = 9 WHERE kind = 'created' AND sequence = 3",
        "DELETE FROM log WHERE kind = 'created' AND sequence = 1",
        "UPDATE log SET head = 'working_set' WHERE sequence = 7",
        "UPDATE log SET block = 39 WHERE kind = 'samples'",
        "UPDATE log SET threads = 2 WHERE sequence = 1 AND model = 1",
        "UPDATE log SET time = 5 WHERE sequence = 1 AND model = 1",
        "UPDATE log SET record = 5 WHERE sequence = 3",
        "UPDATE log SET record = CAST(record AS TEXT) WHERE sequence = 3 AND kind = 'samples'",
        "UPDATE log SET sequence = 30 WHERE kind = 'fit'",
        "UPDATE log SET kind = 'answer' WHERE kind = 'samples'",
        "UPDATE log SET kind = 'another' WHERE kind = 'fit'",
        "UPDATE log SET record = x'c16162636465666768' WHERE kind = 'key'",
        "UPDATE log SET record = x'c1' WHERE kind = 'fit'",
    ],
)
def test_rows_are_what_was_written(closed: Path, statement: str) -> None:
    database = sqlite3.connect(closed)
    database.execute(statement)
    database.commit()
    database.close()
    with pytest.raises(StartupError, match="backup"):
        contents(closed)


@pytest.mark.parametrize("name", [b"log", b"place", b"kind", b"sequence"])
@pytest.mark.parametrize("first", [b"x", b"\xf4"], ids=["another", "no text"])
def test_names_of_the_schema_are_what_was_written(closed: Path, name: bytes, first: bytes) -> None:
    closed.write_bytes(closed.read_bytes().replace(name, first + name[1:]))
    with pytest.raises(StartupError, match="backup"):
        contents(closed)


class TestWriteAheadFile:
    def test_a_whole_one_is_read(self, killed: Path):
        assert not check_write_ahead(killed.with_name("log.sqlite-wal"))
        ((_, blocks),) = contents(killed)
        assert len(blocks) == 10

    def test_there_may_be_none(self, closed: Path):
        assert not check_write_ahead(closed.with_name("log.sqlite-wal"))

    def test_frame_of_earlier_generation_is_no_damage(self, tmp_path: Path):
        path = tmp_path / "log.sqlite"
        storage = open_storage(path.parent)
        model = create(storage, "a", SPEC)
        append(storage, entries(model, 1, 40))
        storage.journal._file.db.execute("PRAGMA wal_checkpoint(RESTART)")
        append(storage, entries(model, 41, 1))
        assert not check_write_ahead(path.with_name("log.sqlite-wal"))
        storage.close()

    @pytest.mark.parametrize("seed", range(3))
    def test_damage_loses_no_commit_but_the_last_in_silence(self, killed: Path, seed: int):
        wal = killed.with_name("log.sqlite-wal")
        whole, main = wal.read_bytes(), killed.read_bytes()
        ((_, before),) = contents(killed)
        places = random.Random(seed)
        refused = 0
        for _ in range(40):
            killed.write_bytes(main)
            wal.write_bytes(whole)
            change(wal, places.randrange(len(whole)), places.randrange(1, 256))
            try:
                ((_, after),) = contents(killed)
            except StartupError:
                assert wal.stat().st_size == len(whole), "the next start would not see it"
                refused += 1
            else:
                assert after in (before, before[:-1])
        assert refused > 20

    @pytest.mark.parametrize("cut", [1, 100, FRAME - 1, FRAME])
    def test_a_commit_that_was_cut_short_is_passed_over(self, killed: Path, cut: int):
        wal = killed.with_name("log.sqlite-wal")
        ((_, before),) = contents_of_copy(killed)
        wal.write_bytes(wal.read_bytes()[:-cut])
        assert check_write_ahead(wal) == (cut < FRAME)
        ((_, after),) = contents(killed)
        assert after == before[:-1]

    def test_a_warning_names_an_incomplete_last_commit(
        self, killed: Path, caplog: pytest.LogCaptureFixture
    ):
        wal = killed.with_name("log.sqlite-wal")
        change(wal, wal.stat().st_size - 50, 1)
        contents(killed)
        assert "incomplete commit" in caplog.text


def contents_of_copy(path: Path) -> list[object]:
    shutil.copytree(path.parent, path.parent.with_name("copy"))
    return contents(path.parent.with_name("copy") / path.name)


APPEND_AND_DIE = """
import os, signal, sys
from pathlib import Path
from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.entries import Entry
from tests.service.storage.writing import append, create, term_of

storage = open_storage(Path(sys.argv[1]))
model = create(storage, "a", {})
os.kill(os.getpid(), signal.SIGSTOP)  # from here on the tracer lets fsync fail
for n in range(1, 1 + int(sys.argv[2])):
    try:
        term_of(storage, model).resolve()
        append(storage, [Entry(model, n, 1, n, "asset", 1, b"%d" % n)])
    except StorageFailed as error:
        print("failed", n, error.detail, flush=True)
    else:
        print("kept", n, flush=True)
        break
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def append_and_die(tmp_path: Path) -> Callable[[int, int], list[str]]:
    """Appends while the first so many fsyncs fail, until one succeeds or so many were tried, then
    dies; what it said.
    """
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")

    def run(failing: int, tries: int) -> list[str]:
        script = [sys.executable, "-c", APPEND_AND_DIE, str(tmp_path), str(tries)]
        with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
            wait_until_stopped(process.pid)
            inject = f"inject=fsync,fdatasync:error=EIO:when=1..{failing}"
            tracer = subprocess.Popen(
                ["strace", "-f", "-p", str(process.pid), "-e", inject],
                stderr=subprocess.PIPE,
                text=True,
            )
            assert tracer.stderr is not None
            if "attached" not in tracer.stderr.readline():
                process.kill()
                pytest.skip("processes may not be traced here")
            process.send_signal(signal.SIGCONT)
            said, _ = process.communicate(timeout=30)
            tracer.communicate(timeout=30)
        return said.splitlines()

    return run


def wait_until_stopped(pid: int) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        pass


def test_a_commit_whose_fsync_failed_does_not_come_back(
    append_and_die: Callable[[int, int], list[str]], tmp_path: Path
) -> None:
    said = append_and_die(1, 1)
    assert said == ["failed 1 the journal could not be written: disk I/O error"]
    ((_, blocks),) = contents(tmp_path / "log.sqlite")
    assert blocks == []


def test_failing_disk_tells_what_may_return(
    append_and_die: Callable[[int, int], list[str]], tmp_path: Path
) -> None:
    first, *more, last = append_and_die(4, 5)
    assert "after a restart it may turn out to have been written" in first
    assert all("nothing was learned" in said for said in more)
    assert last.startswith("kept")
    ((_, blocks),) = contents(tmp_path / "log.sqlite")
    assert [[entry.record.decode() for entry in block] for block in blocks] == [[last[-1]]]
