"""The journal where its disk or its file fails: it refuses, and nothing is half done."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.storage.journals import entry, fill_disk, opened, pragma, sequences
from tests.service.storage.writing import append, create, delete, term_of
from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.sqlite_file import SqliteFile


class TestStorageFails:
    calls = pytest.mark.parametrize(
        "call",
        [
            lambda storage, model: append(storage, [entry(model, 10)]),
            lambda storage, model: append(storage, [entry(model, 10 + n) for n in range(1500)]),
            lambda storage, _: create(storage, "other", {}),
            lambda storage, model: delete(storage, model),
            lambda storage, model: term_of(storage, model).drop(10),
        ],
        ids=["append", "append many", "create", "delete", "drop"],
    )

    @calls
    def test_on_a_closed_database(
        self, storage: Storage, model: int, call: Callable[[Storage, int], None]
    ):
        storage.close()
        with pytest.raises(StorageFailed):
            call(storage, model)

    @calls
    def test_on_a_database_that_may_only_be_read(
        self, storage: Storage, model: int, call: Callable[[Storage, int], None]
    ):
        append(storage, [entry(model, 1)])
        pragma(storage, "query_only = 1")
        with pytest.raises(StorageFailed, match="readonly"):
            call(storage, model)
        pragma(storage, "query_only = 0")
        assert [item.name for item in storage.catalogue.models()] == ["m"]
        assert sequences(storage, model) == [[1]]

    @pytest.mark.parametrize("name", ["log.sqlite", "log.sqlite-wal", "."])
    @pytest.mark.parametrize("replaced", [False, True])
    @calls
    def test_on_files_that_are_gone(
        self,
        storage: Storage,
        model: int,
        path: Path,
        call: Callable[[Storage, int], None],
        name: str,
        replaced: bool,
    ):
        """SQLite would write on, into what no start finds again."""
        append(storage, [entry(model, 1)])
        file = path.parent if name == "." else path.with_name(name)
        moved = file.with_name(f"{file.name}-moved")
        file.rename(moved)
        if replaced and name == ".":
            shutil.copytree(moved, file)
        elif replaced:
            shutil.copy(moved, file)
        with pytest.raises(StorageFailed, match="deleted, moved or replaced"):
            call(storage, model)
        if replaced:
            file.rename(file.with_name(f"{file.name}-other"))
        moved.rename(file)
        assert [item.name for item in storage.catalogue.models()] == ["m"]
        assert sequences(storage, model) == [[1]]
        append(storage, [entry(model, 2)])
        storage.close()
        with opened(path) as again:
            assert sequences(again, model) == [[1], [2]]

    @calls
    def test_while_another_process_writes(
        self, storage: Storage, model: int, path: Path, call: Callable[[Storage, int], None]
    ):
        pragma(storage, "busy_timeout = 1")
        append(storage, [entry(model, 1)])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed, match="locked"):
            call(storage, model)
        other.execute("ROLLBACK")
        other.close()
        assert sequences(storage, model) == [[1]]
        call(storage, model)

    def test_on_a_full_disk(self, storage: Storage, model: int):
        append(storage, [entry(model, 1)])
        fill_disk(storage)
        with pytest.raises(StorageFailed, match="full"):
            append(storage, [entry(model, 2, record=bytes(100_000))])
        assert sequences(storage, model) == [[1]]

    def test_a_failed_append_leaves_nothing_of_its_group(self, storage: Storage, model: int):
        other = create(storage, "other", {})
        fill_disk(storage)
        group = [entry(model, 1), entry(other, 1), entry(model, 2, record=bytes(100_000))]
        with pytest.raises(StorageFailed):
            append(storage, group)
        assert sequences(storage, model) == sequences(storage, other) == []

    def test_a_sequence_is_given_once(self, storage: Storage, model: int):
        append(storage, [entry(model, 2)])
        with pytest.raises(StorageFailed):
            append(storage, [entry(model, 1), entry(model, 2, record=b"another")])
        assert sequences(storage, model) == [[2]]

    @pytest.mark.parametrize("again", [1, 1500, 2500])
    def test_a_large_group_is_written_whole_or_not_at_all(
        self, storage: Storage, model: int, again: int
    ):
        append(storage, [entry(model, again)])
        with pytest.raises(StorageFailed):
            append(storage, [entry(model, n) for n in range(1, 2501)])
        assert sequences(storage, model) == [[again]]
        append(storage, [entry(model, 2501)])
        assert sequences(storage, model) == [[again], [2501]]

    def test_the_log_goes_on_once_there_is_room(self, storage: Storage, model: int):
        fill_disk(storage)
        large = [entry(model, 1, record=bytes(100_000))]
        with pytest.raises(StorageFailed):
            append(storage, large)
        pragma(storage, "max_page_count = 1000000")
        append(storage, large)
        append(storage, [entry(model, 2)])
        assert sequences(storage, model) == [[1], [2]]

    def test_dropping_makes_room(self, storage: Storage, model: int):
        append(storage, [entry(model, 1, record=bytes(100_000))])
        fill_disk(storage)
        with pytest.raises(StorageFailed):
            append(storage, [entry(model, 2, record=bytes(100_000))])
        term_of(storage, model).drop(1)
        append(storage, [entry(model, 2, record=bytes(100_000))])
        assert sequences(storage, model) == [[2]]


class TestReadOnly:
    def test_it_shows_the_moment_at_which_it_was_opened(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
            append(storage, [entry(model, 1)])
            looking = open_storage(path.parent, read_only=True)
            assert [item.name for item in looking.catalogue.models()] == ["m"]
            append(storage, [entry(model, 2)])
            term_of(storage, model).drop(1)
            assert sequences(looking, model) == [[1]]
            assert sequences(storage, model) == [[2]]
            looking.close()

    def test_nothing_can_be_written(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
        looking = open_storage(path.parent, read_only=True)
        with pytest.raises(StorageFailed):
            delete(looking, model)
        looking.close()

    def test_an_empty_log_is_left_alone(self, path: Path):
        path.touch()
        with pytest.raises(StartupError, match="start `wolfstream serve` on the directory once"):
            open_storage(path.parent, read_only=True)
        assert path.read_bytes() == b""

    def test_a_missing_log_is_not_made(self, path: Path):
        with pytest.raises(StartupError):
            open_storage(path.parent, read_only=True)
        assert not path.exists()


class TestStartFails:
    def refused(self, path: Path) -> str:
        with pytest.raises(StartupError) as caught:
            SqliteFile(path)
        assert str(path) in str(caught.value)
        return str(caught.value)

    def test_on_a_file_that_is_no_database(self, path: Path):
        garbage = b"this is not a journal\n" * 1000
        path.write_bytes(garbage)
        assert "restore it from a backup" in self.refused(path)
        assert path.read_bytes() == garbage

    def test_on_a_database_whose_header_is_damaged(self, path: Path):
        with opened(path) as storage:
            create(storage, "m", {})
        content = path.read_bytes()
        path.write_bytes(b"\xff" * 16 + content[16:])
        self.refused(path)

    @pytest.mark.parametrize("version", [0, 2, 4, 99, -1])
    def test_on_a_log_of_another_format(self, path: Path, version: int):
        with opened(path) as storage:
            create(storage, "m", {})
            pragma(storage, f"user_version = {version}")
        content = path.read_bytes()
        said = self.refused(path)
        assert f"journal format {version}" in said
        assert "start the version that wrote it" in said
        assert path.read_bytes() == content

    def test_on_an_entry_of_an_unknown_kind(self, path: Path):
        with opened(path) as storage:
            model = create(storage, "m", {})
            append(storage, [entry(model, 1)])
            storage.journal._file.db.execute("UPDATE log SET kind = 'term' WHERE sequence = 1")
        assert "entries of the kind 'term'" in self.refused(path)

    def test_without_a_directory(self, tmp_path: Path):
        self.refused(tmp_path / "missing" / "log.sqlite")

    def test_on_a_directory(self, tmp_path: Path):
        self.refused(tmp_path)

    def test_an_empty_file_is_a_new_log(self, path: Path):
        path.touch()
        with opened(path) as storage:
            assert storage.catalogue.models() == []
