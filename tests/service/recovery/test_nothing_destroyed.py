"""Nothing is destroyed in doubt: lost journals, unreadable files, foreign snapshots."""

import asyncio
import errno
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.specs import read_papers_spec
from tests.service.streams import part, two_classes
from tests.service.writer_bench import work_off
from wolfstream.service.engine.queue_items import LearnRequest
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import StartupError
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.directory_models import import_model
from wolfstream.service.recovery.salvage import recover_directory, salvage
from wolfstream.service.settings import Settings
from wolfstream.service.storage import crash_marks
from wolfstream.service.storage.data_directory import JournalMissing, open_storage, owned
from wolfstream.service.storage.snapshot_format import read_state, write_state

SPEC = read_papers_spec({"working_set": {"max_size": 20}, "asset": None})
SAMPLES = two_classes(100)


@contextmanager
def writing(data: Path, **settings: Any) -> Iterator[Writer]:
    """A writer over a directory, which saves snapshots in the end."""
    given = Settings(data=data, snapshot_samples=10, **settings)
    with owned(data):
        writer = Writer(open_storage(data, given.snapshots), given, lambda *_: None)
        try:
            writer.recover(lambda _: None)
            yield writer
            writer.close()
        finally:
            writer.snapshots.finish(wait=True)
            writer._storage.close()


def learn(writer: Writer, name: str, start: int, stop: int) -> None:
    model, _ = writer.new_models.create(name, SPEC)
    loop = asyncio.new_event_loop()
    for i in range(start, stop):
        one = part(SAMPLES, i, i + 1)
        work_off(writer, [LearnRequest(model, "working_set", one, loop.create_future(), 0.0)])
        writer.snapshots.finish(wait=True)  # a slow disk would put the next one off
    loop.close()


def sequence_of(writer: Writer, name: str) -> int:
    model = writer.models.get(name)
    assert model is not None
    return model.published.sequence


def contents(data: Path) -> set[bytes]:
    """The contents of all snapshots, whatever they are called."""
    return {path.read_bytes() for path in data.rglob("*.snapshot")}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with two models, prices of 35 samples and mail of 12."""
    with writing(tmp_path / "data") as writer:
        learn(writer, "prices", 0, 35)
        learn(writer, "mail", 0, 12)
    return tmp_path / "data"


@pytest.fixture
def killed_early(tmp_path: Path) -> Path:
    """A directory like that, of which all that was written to the journal is in its -wal."""
    with writing(tmp_path / "whole") as writer:
        learn(writer, "prices", 0, 35)
        writer.snapshots.finish(wait=True)
        shutil.copytree(tmp_path / "whole", tmp_path / "killed")
        learn(writer, "mail", 0, 12)
        shutil.copy(tmp_path / "whole" / "high-water", tmp_path / "high-water-with-mail")
    return tmp_path / "killed"


class TestLostWriteAhead:
    def test_with_all_of_the_journal_it_is_said_and_nothing_changes(self, killed_early: Path):
        (killed_early / "log.sqlite-wal").unlink()
        before = contents(killed_early)
        assert before
        with pytest.raises(JournalMissing, match="serve --recover"), writing(killed_early):
            pass
        assert contents(killed_early) == before
        recover_directory(killed_early)
        with writing(killed_early) as writer:
            assert sequence_of(writer, "prices") == 30

    def test_with_the_creation_of_a_model(self, killed_early: Path, tmp_path: Path):
        """What was written before it is there."""
        shutil.copy(tmp_path / "high-water-with-mail", killed_early / "high-water")
        open_storage(killed_early, read_only=True).close()  # a server may be writing it
        with pytest.raises(StartupError, match="lost its end"), writing(killed_early):
            pass
        recover_directory(killed_early)
        with writing(killed_early) as writer:
            assert sequence_of(writer, "prices") == 35


class TestLostJournal:
    @pytest.mark.parametrize("how", ["missing", "empty"])
    def test_it_is_said_and_nothing_changes(self, data: Path, how: str):
        before = contents(data)
        (data / "log.sqlite").unlink()
        if how == "empty":
            (data / "log.sqlite").touch()
        with pytest.raises(JournalMissing, match="serve --recover"), writing(data):
            pass
        assert contents(data) == before

    def test_models_are_made_of_the_newest_whole_snapshots(
        self, data: Path, caplog: pytest.LogCaptureFixture
    ):
        before = contents(data)
        (data / "log.sqlite").unlink()
        newest = max((data / "snapshots" / "1").glob("*.snapshot"))
        newest.write_bytes(newest.read_bytes()[:-1])
        with caplog.at_level(logging.WARNING):
            salvage(data)
        assert "checksum" in caplog.text
        assert "model salvaged, later samples lost: model=prices" in caplog.text
        assert "model salvaged, later samples lost: model=mail" in caplog.text
        with writing(data) as writer:
            assert sequence_of(writer, "mail") == 12
            assert sequence_of(writer, "prices") == 30
        assert len(before - contents(data)) == 1  # the one that was damaged here


def test_snapshots_that_no_catalogue_knows_are_set_aside(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Another directory's journal, say; a new model under the number does not find them."""
    with writing(tmp_path / "other") as writer:
        learn(writer, "fresh", 0, 3)
    (data / "log.sqlite").unlink()
    (data / "high-water").unlink()
    (tmp_path / "other" / "log.sqlite").rename(data / "log.sqlite")
    for path in (data / "snapshots" / "1").iterdir():
        path.unlink()
    (tmp_path / "other" / "snapshots" / "1" / f"{3:020d}.snapshot").rename(
        data / "snapshots" / "1" / f"{3:020d}.snapshot"
    )
    before = contents(data)
    with caplog.at_level(logging.WARNING), writing(data) as writer:
        learn(writer, "second", 0, 2)
        assert sequence_of(writer, "second") == 2
    assert "that the journal does not have" in caplog.text
    assert before <= contents(data)


def test_a_deletion_that_was_interrupted_is_finished(data: Path):
    (data / "snapshots" / "9.deleted").mkdir()
    with writing(data):
        pass
    assert not (data / "snapshots" / "9.deleted").exists()


class TestUnreadable:
    @pytest.fixture
    def failing(self, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        """The names of snapshots whose reading fails."""
        names = set[str]()
        read = Path.read_bytes

        def read_bytes(path: Path) -> bytes:
            if path.name in names:
                raise OSError(5, "Input/output error")
            return read(path)

        monkeypatch.setattr(Path, "read_bytes", read_bytes)
        return names

    def test_files_keep_their_names_where_no_way_back_is_found(self, data: Path, failing: set[str]):
        files = sorted((data / "snapshots").rglob("*.snapshot"))
        failing |= {path.name for path in files}
        with writing(data) as writer:
            assert "Restore the snapshots" in of(writer, "prices").broken
        assert sorted((data / "snapshots").rglob("*.snapshot")) == files
        failing.clear()
        with writing(data) as writer:
            assert sequence_of(writer, "prices") == 35

    def test_damaged_files_keep_theirs_as_well(self, data: Path):
        files = sorted((data / "snapshots").rglob("*.snapshot"))
        for path in files:
            path.write_bytes(path.read_bytes()[:-1])
        with writing(data) as writer:
            assert "Restore the snapshots" in of(writer, "prices").broken
        assert sorted((data / "snapshots").rglob("*.snapshot")) == files

    def test_one_that_cannot_be_read_is_not_counted_on(self, data: Path, failing: set[str]):
        """The journal still reaches back to the one before it."""
        newest = max((data / "snapshots" / "1").glob("*.snapshot"))
        failing.add(newest.name)
        with writing(data) as writer:
            assert sequence_of(writer, "prices") == 35
            learn(writer, "prices", 35, 45)
        assert newest.exists()
        failing.add(max((data / "snapshots" / "1").glob("*.snapshot")).name)
        with writing(data) as writer:
            assert sequence_of(writer, "prices") == 45


def test_only_the_owner_reads_what_is_kept(data: Path):
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (data, *data.rglob("*"))}
    with writing(data):
        modes |= {p: stat.S_IMODE(p.stat().st_mode) for p in data.glob("log.sqlite*")}
        assert (data / "log.sqlite-wal") in modes
    assert modes[data] == 0o700
    assert modes[data / "snapshots"] == 0o700
    assert {modes[path] for path in modes if path.parent == data and path.is_file()} == {0o600}


def test_a_readable_journal_becomes_private(data: Path):
    (data / "log.sqlite").chmod(0o644)
    with writing(data):
        pass
    assert stat.S_IMODE((data / "log.sqlite").stat().st_mode) == 0o600


class TestLostEnd:
    """Commits that are gone, though they were acknowledged."""

    @pytest.fixture
    def killed(self, data: Path, tmp_path: Path) -> Path:
        """The directory of a process that ended with 5 samples in the write-ahead file only."""
        with writing(data) as writer:
            learn(writer, "prices", 35, 40)
            shutil.copytree(data, tmp_path / "killed")
        return tmp_path / "killed"

    def test_all_is_found(self, killed: Path):
        with writing(killed) as writer:
            assert sequence_of(writer, "prices") == 40

    @pytest.mark.parametrize("frames", [0, 3])
    def test_it_is_noticed(self, killed: Path, frames: int):
        ahead = killed / "log.sqlite-wal"
        whole = ahead.read_bytes()
        page = int.from_bytes(whole[8:12], "big")
        ahead.write_bytes(whole[: (32 + frames * (24 + page)) * (frames > 0)])
        for path in (killed / "snapshots").rglob("*40.snapshot"):
            path.unlink()
        before = {path: path.read_bytes() for path in killed.rglob("*.snapshot")}
        with pytest.raises(StartupError, match="40 samples were acknowledged"), writing(killed):
            pass
        assert {path: path.read_bytes() for path in killed.rglob("*.snapshot")} == before

    def test_it_can_be_given_up(self, killed: Path):
        (killed / "log.sqlite-wal").unlink()
        recover_directory(killed)
        with writing(killed) as writer:
            assert sequence_of(writer, "prices") == 35

    def test_a_torn_mark_is_none(self, killed: Path):
        (killed / "log.sqlite-wal").unlink()
        marks = bytearray((killed / "high-water").read_bytes())
        marks[16 + 3] ^= 1
        (killed / "high-water").write_bytes(marks)
        with writing(killed) as writer:
            assert sequence_of(writer, "prices") == 35

    def test_a_directory_without_marks_opens(self, killed: Path):
        (killed / "high-water").unlink()
        with writing(killed) as writer:
            assert sequence_of(writer, "prices") == 40

    def test_a_model_whose_only_snapshot_is_lost_does_not_begin_anew(
        self, data: Path, tmp_path: Path
    ):
        file = max((data / "snapshots" / "2").glob("*.snapshot"))
        import_model(tmp_path / "new", file, "copy")
        for path in (tmp_path / "new").rglob("*.snapshot"):
            path.unlink()
        refused = pytest.raises(StartupError, match="12 samples were acknowledged")
        with refused, writing(tmp_path / "new"):
            pass

    def test_a_journal_without_snapshots_is_missed_too(self, tmp_path: Path):
        with writing(tmp_path / "data") as writer:
            learn(writer, "young", 0, 3)
            shutil.copytree(tmp_path / "data", tmp_path / "killed")
        for path in (tmp_path / "killed").glob("log.sqlite*"):
            path.unlink()
        with pytest.raises(JournalMissing), writing(tmp_path / "killed"):
            pass

    def test_a_rollback_goes_on_from_where_it_was(self, data: Path):
        with writing(data) as writer:
            model = writer.models.get("prices")
            assert model is not None
            writer.history.roll_back(model, 30)
        with writing(data) as writer:
            assert sequence_of(writer, "prices") == 35


class Killed(BaseException):
    """The process ends here, as for want of memory."""


class TestPoison:
    """A block whose replay ends the process is left out, and with it its model alone."""

    @pytest.fixture
    def killed(self, data: Path, tmp_path: Path) -> Path:
        """A directory with blocks after the snapshots."""
        with writing(data) as writer:
            learn(writer, "prices", 35, 40)
            learn(writer, "mail", 12, 15)
            shutil.copytree(data, tmp_path / "killed")
        return tmp_path / "killed"

    @pytest.fixture
    def poisoned(self, killed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Learning more than 37 samples of a model ends the process, which it has done twice."""
        end_at(monkeypatch, 37)
        for _ in range(2):
            with pytest.raises(Killed), writing(killed):
                pass
        return killed

    def test_without_room_for_marks_all_are_replayed(
        self, killed: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ):
        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            writer = Writer(open_storage(killed), Settings(data=killed), lambda *_: None)
            writer.recover(lambda _: None)
        assert [sequence_of(writer, name) for name in ("prices", "mail")] == [40, 15]
        assert "replay marks not written" in caplog.text
        writer.close()

    def test_marks_of_before_a_loss_of_power_do_not_count(
        self, poisoned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "boot").write_text("another")
        monkeypatch.setattr(crash_marks, "_BOOT", tmp_path / "boot")
        with pytest.raises(Killed), writing(poisoned):
            pass

    def test_the_others_are_ready(self, poisoned: Path):
        for _ in range(2):
            with writing(poisoned) as writer:
                model = of(writer, "prices")
                assert "has ended the server" in model.broken
                assert (model.published.sequence, model.describe()["status"]) == (37, "broken")
                assert sequence_of(writer, "mail") == 15

    def test_it_can_be_deleted(self, poisoned: Path):
        with writing(poisoned) as writer:
            writer.models.delete(of(writer, "prices"))
        with writing(poisoned) as writer:
            assert [model.name for model in writer.models.all()] == ["mail"]

    def test_it_can_be_rolled_back(self, poisoned: Path):
        with writing(poisoned) as writer:
            writer.history.roll_back(of(writer, "prices"), 30)
        with writing(poisoned) as writer:
            assert sequence_of(writer, "prices") == 40

    def test_its_journal_is_kept_and_tried_again_on_request(
        self, poisoned: Path, monkeypatch: pytest.MonkeyPatch
    ):
        with writing(poisoned):
            pass
        monkeypatch.undo()
        with writing(poisoned) as writer:
            assert sequence_of(writer, "prices") == 37
        recover_directory(poisoned)
        with writing(poisoned) as writer:
            assert sequence_of(writer, "prices") == 40

    def test_processes_that_end_elsewhere_do_not_count(
        self, killed: Path, monkeypatch: pytest.MonkeyPatch
    ):
        for sequence in (36, 37, 36, 38):
            with monkeypatch.context() as patch:
                end_at(patch, sequence)
                with pytest.raises(Killed), writing(killed):
                    pass
        with writing(killed) as writer:
            assert sequence_of(writer, "prices") == 40

    def test_a_snapshot_that_cannot_be_loaded(self, killed: Path, monkeypatch: pytest.MonkeyPatch):
        restore = Learner.restore

        def end(learner: Learner, *given: Any) -> None:
            if learner.model.name == "prices":
                raise Killed
            restore(learner, *given)

        with monkeypatch.context() as patch:
            patch.setattr(Learner, "restore", end)
            for _ in range(2):
                with pytest.raises(Killed), writing(killed):
                    pass
            with writing(killed) as writer:
                assert "loading its snapshot" in of(writer, "prices").broken
                assert sequence_of(writer, "mail") == 15
        recover_directory(killed)
        with writing(killed) as writer:
            assert sequence_of(writer, "prices") == 40


def end_at(patch: pytest.MonkeyPatch, sequence: int) -> None:
    """Let the process end where a model that has learned so much learns more."""
    absorb = Learner.absorb

    def end(learner: Learner, *given: Any) -> Any:
        if learner.sequence == sequence:
            raise Killed
        return absorb(learner, *given)

    patch.setattr(Learner, "absorb", end)


def of(writer: Writer, name: str) -> Model:
    model = writer.models.get(name)
    assert model is not None
    return model


def test_a_snapshot_that_lacks_an_array_breaks_its_model_alone(data: Path) -> None:
    """As one of another version of the program, which gives its arrays other names."""
    for path in (data / "snapshots" / "1").glob("*.snapshot"):
        state = read_state(path)
        name = min(state.arrays)
        arrays = {key: array for key, array in state.arrays.items() if key != name}
        write_state(path, state._replace(arrays=arrays))
    before = contents(data)
    with writing(data) as writer:
        prices = writer.models.get("prices")
        assert prices is not None
        assert prices.broken
        assert f"its array {name.partition('.')[2]} is missing" in prices.broken
        assert "version that wrote it" in prices.broken
        assert sequence_of(writer, "mail") == 12
    assert before <= contents(data)
