"""The simulated disk itself: what a loss of power leaves of a process's writes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.service.streams import three_classes
from tests.service.syscalls.disk import LOSSES, Disk, read_records
from tests.service.syscalls.library import build_library
from tests.service.writer_bench import Bench

pytestmark = pytest.mark.hard

BEGIN = """
import os
os.chdir(os.environ["POWER_ROOT"])
def write(name, data, sync=True):
    with open(name, "wb") as file:
        file.write(data)
        file.flush()
        if sync:
            os.fsync(file.fileno())
def sync(name):
    folder = os.open(name, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
"""
Lose = Callable[[str, str], dict[str, bytes]]


@pytest.fixture
def lose(tmp_path: Path) -> Lose:
    """What is left, by path, of what a program wrote, after a loss of some kind."""
    recorder = build_library()
    if recorder is None:
        pytest.skip("there is no compiler of C here: install gcc")
    root, log = tmp_path / "root", tmp_path / "log"
    root.mkdir()
    (root / "old").write_bytes(b"old")

    def left(program: str, loss: str) -> dict[str, bytes]:
        disk = Disk(root)
        environment = {"POWER_ROOT": str(root), "POWER_LOG": str(log), "LD_PRELOAD": str(recorder)}
        environment = os.environ | environment | {"PYTHONPATH": str(Path.cwd())}
        subprocess.run([sys.executable, "-c", BEGIN + program], env=environment, check=True)
        disk.follow(read_records(log))
        log.unlink(missing_ok=True)
        disk.lose_power(Random(1), loss)
        files = (path for path in root.rglob("*") if path.is_file())
        return {str(path.relative_to(root)): path.read_bytes() for path in files}

    return left


@pytest.mark.parametrize("loss", LOSSES)
class TestEveryLoss:
    def test_what_was_synced_with_its_name_stays(self, lose: Lose, loss: str):
        made = 'os.mkdir("a"); sync("."); write("a/b", b"data"); sync("a")'
        assert lose(made, loss) == {"old": b"old", "a/b": b"data"}

    def test_a_name_is_that_of_before_or_of_after(self, lose: Lose, loss: str):
        left = lose('write("new", b"new"); sync("."); os.rename("new", "old")', loss)
        assert left in ({"old": b"old", "new": b"new"}, {"old": b"new"})

    def test_sectors_are_those_of_before_or_of_after(self, lose: Lose, loss: str):
        made = 'write("a", bytes(2000)); sync(".")'
        made += '; file = os.open("a", os.O_RDWR); os.pwrite(file, b"x" * 1000, 100)'
        (content,) = (data for name, data in lose(made, loss).items() if name == "a")
        assert len(content) == 2000
        for begin, end in ((100, 512), (512, 1024), (1024, 1100)):
            assert content[begin:end] in (bytes(end - begin), b"x" * (end - begin))
        assert content[:100] + content[1100:] == bytes(1000)


class TestAllThatWasNotSynced:
    def test_is_gone(self, lose: Lose):
        made = 'write("old", b"other", sync=False); write("unnamed", b"data"); os.mkdir("folder")'
        assert lose(made, "drop") == {"old": b"old"}

    def test_is_there(self, lose: Lose):
        made = 'write("a", b"12345", sync=False); open("a", "r+b").truncate(3); os.unlink("old")'
        assert lose(made, "keep") == {"a": b"123"}

    def test_a_folder_that_was_renamed_keeps_what_is_in_it(self, lose: Lose):
        made = 'os.mkdir("a"); write("a/b", b"data"); sync("a"); os.rename("a", "c"); sync(".")'
        assert lose(made, "drop") == {"old": b"old", "c/b": b"data"}


def test_backups_and_what_is_restored_are_there_when_the_command_has_ended(
    lose: Lose, tmp_path: Path
):
    bench = Bench(tmp_path / "data")
    model = bench.create({"working_set": {"max_size": 20}, "asset": None})
    bench.learn(model, three_classes(30))
    bench.snapshot(model)
    bench.learn(model, three_classes(10))
    bench.kill()
    command = "from wolfstream.service.cli.main import main; main({}, standalone_mode=False)".format
    lose(command(["backup", "--data", str(tmp_path / "data"), "copy"]), "drop")
    lose(command(["restore", "--data", "restored", "copy"]), "drop")
    assert (tmp_path / "root" / "copy" / "backup.json").exists()
    for folder in ("copy", "restored"):
        snapshots = (tmp_path / "root" / folder).glob("snapshots/1/*.snapshot")
        assert [path.name for path in snapshots] == [f"{30:020d}.snapshot"]
    bench = Bench(tmp_path / "root" / "restored")
    assert [model.published.sequence for model in bench.writer.models.all()] == [40]
    bench.close()


@pytest.mark.parametrize(
    "call",
    [
        'os.posix_fallocate(os.open("old", os.O_RDWR), 0, 10)',
        'os.writev(os.open("old", os.O_RDWR), [b"x"])',
        'os.truncate("old", 1)',
        'os.link("old", "new")',
    ],
)
def test_what_is_not_recorded_is_noticed(lose: Lose, call: str):
    with pytest.raises(AssertionError, match="does not know"):
        lose(call, "keep")
