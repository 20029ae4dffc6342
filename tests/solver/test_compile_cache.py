"""The directory of compiled code: one for each state of the sources, or the one asked for."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from wolfstream import solver
from wolfstream.solver import compile_cache
from wolfstream.solver.compile_cache import use_compile_cache

VARIABLE = "NUMBA_CACHE_DIR"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the solver's sources, found in their place; caches go to a fresh home."""
    folder = tmp_path / "sources" / "solver"
    shutil.copytree(
        Path(solver.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    monkeypatch.setattr(
        compile_cache, "find_spec", lambda name: PathFinder.find_spec(name, [str(folder.parent)])
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def directory(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """The directory that a process started now would use."""
    assert sources.is_dir()

    def of_a_new_process() -> Path:
        monkeypatch.setenv(VARIABLE, "")
        monkeypatch.delenv(VARIABLE)
        chosen = use_compile_cache()
        assert os.environ[VARIABLE] == str(chosen)
        return chosen

    return of_a_new_process


Directory = Callable[[], Path]


class TestSources:
    def test_the_same_sources_share_a_directory(self, sources: Path, directory: Directory):
        before = directory()
        for file in sources.rglob("*.py"):
            os.utime(file, (0, 0))
        assert directory() == before

    def test_another_folder_with_the_same_sources_has_its_own(
        self, sources: Path, directory: Directory, monkeypatch: pytest.MonkeyPatch
    ):
        """numba knows a function by the path of its file, and would find nothing there."""
        before = directory()
        sources.parent.rename(sources.parent.with_name("elsewhere"))
        monkeypatch.syspath_prepend(sources.parent.with_name("elsewhere"))
        assert directory() != before

    def test_an_edit_of_any_file_changes_it(self, sources: Path, directory: Directory):
        seen = {directory()}
        files = sorted(sources.rglob("*.py"))
        assert len(files) > 50
        for file in files:
            file.write_bytes(file.read_bytes() + b"\n")
            seen.add(directory())
        assert len(seen) == len(files) + 1

    def test_undoing_an_edit_brings_it_back(self, sources: Path, directory: Directory):
        before = directory()
        file = sources / "kernels" / "functions.py"
        content = file.read_bytes()
        file.write_bytes(content + b"# edited\n")
        assert directory() != before
        file.write_bytes(content)
        assert directory() == before

    def test_new_missing_and_renamed_files_change_it(self, sources: Path, directory: Directory):
        seen = [directory()]
        (sources / "new.py").write_bytes(b"")
        seen.append(directory())
        (sources / "new.py").rename(sources / "newer.py")
        seen.append(directory())
        assert len(set(seen)) == 3
        (sources / "newer.py").unlink()
        assert directory() == seen[0]

    def test_other_files_do_not(self, sources: Path, directory: Directory):
        before = directory()
        (sources / "notes.txt").write_bytes(b"text")
        assert directory() == before

    def test_other_versions_of_python_and_numba_change_it(
        self, directory: Directory, monkeypatch: pytest.MonkeyPatch
    ):
        before = directory()
        with monkeypatch.context() as patch:
            patch.setattr(metadata, "version", lambda _: "0.0.1")
            of_numba = directory()
        monkeypatch.setattr(sys, "version", "4.0")
        assert len({before, of_numba, directory()}) == 3


class TestPlace:
    def test_another_processor_changes_it(
        self, directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """numba passes over code for another one, so what is complete for it is not for this."""
        monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
        monkeypatch.delenv("NUMBA_CPU_FEATURES", raising=False)
        known, found = tmp_path / "cpuinfo", set[Path]()
        monkeypatch.setattr(compile_cache, "_PROCESSORS", known)
        for flags in ("sse2", "sse2 avx2"):
            known.write_text(f"processor\t: 0\nmodel name\t: A\ncpu MHz\t: 1\nflags\t: {flags}\n\n")
            found.add(directory())
        known.write_text(known.read_text().replace("MHz\t: 1", "MHz\t: 2"))
        assert directory() in found  # its frequency does not matter
        monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
        monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
        found.add(directory())
        assert len(found) == 3
        known.write_text("processor\t: 0\nmodel name\t: B\n\n")
        assert directory() in found  # nor does this machine's, where one is named

    def test_what_the_environment_names_is_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv(VARIABLE, str(tmp_path / "own"))
        assert use_compile_cache() == tmp_path / "own"
        assert os.environ[VARIABLE] == str(tmp_path / "own")

    def test_below_the_users_caches(self, directory: Directory, tmp_path: Path):
        assert directory().parent == tmp_path / "cache" / "wolfstream"
        assert directory().parent.is_dir()

    def test_below_home_where_no_other_place_is_named(
        self, directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert directory().parent == tmp_path / "home" / ".cache" / "wolfstream"

    def test_among_temporary_files_where_the_user_has_no_caches(
        self, directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "cache").write_text("a file, not a directory")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        assert directory().parent == tmp_path / "temporary" / f"wolfstream-{os.getuid()}"

    def test_or_may_not_write_them(
        self, directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(os, "access", lambda *_: False)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        assert directory().parent == tmp_path / "temporary" / f"wolfstream-{os.getuid()}"

    def test_and_where_there_is_no_home(
        self, directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        def no_home() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", no_home)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        assert directory().parent == tmp_path / "temporary" / f"wolfstream-{os.getuid()}"


class TestOthersPlaces:
    """What others have made among the temporary files is not run."""

    @pytest.fixture
    def temporary(
        self, directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Path:
        """The place among temporary files, which is the only one."""
        assert directory
        (tmp_path / "cache").mkdir(exist_ok=True)
        shutil.rmtree(tmp_path / "cache")
        (tmp_path / "cache").write_text("a file, not a directory")
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        return tmp_path / "temporary" / f"wolfstream-{os.getuid()}"

    def test_a_directory_that_others_may_write_to(self, temporary: Path, directory: Directory):
        temporary.mkdir()
        temporary.chmod(0o777)
        assert temporary not in directory().parents

    def test_a_link(self, temporary: Path, directory: Directory, tmp_path: Path):
        (tmp_path / "theirs").mkdir()
        temporary.symlink_to(tmp_path / "theirs")
        assert temporary not in directory().parents

    def test_another_users_directory(
        self, temporary: Path, directory: Directory, monkeypatch: pytest.MonkeyPatch
    ):
        temporary.mkdir(0o700)
        monkeypatch.setattr(os, "geteuid", lambda: temporary.stat().st_uid + 1)
        assert temporary not in directory().parents

    def test_one_of_our_own_is_used_again(self, temporary: Path, directory: Directory):
        assert temporary in directory().parents
        assert temporary in directory().parents
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o700

    def test_not_below_a_users_caches_either(
        self, directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        directory().parent.chmod(0o777)
        assert tmp_path / "cache" not in directory().parents


def run(command: list[str], cache: Path) -> str:
    """What a Python process prints that has a cache of its own."""
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    environment |= {"XDG_CACHE_HOME": str(cache)}
    environment |= {"PYTHONPATH": str(Path(solver.__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_is_set_before_numba_comes_and_numba_takes_it(tmp_path: Path):
    script = (
        "import sys\n"
        "from wolfstream.solver.compile_cache import use_compile_cache\n"
        "directory = use_compile_cache()\n"
        "assert 'numba' not in sys.modules\n"
        "import numba\n"
        "assert numba.config.CACHE_DIR == str(directory)\n"
        "print(directory)\n"
    )
    assert Path(run(["-c", script], tmp_path)).parent == tmp_path / "wolfstream"


def test_importing_program_keeps_own_cache(
    tmp_path: Path,
):
    program = tmp_path / "program.py"
    program.write_text(
        "import numba\n"
        "from wolfstream.solver.compiled import compiled\n"
        "def doubled(x):\n"
        "    return 2.0 * x\n"
        "def halved(x):\n"
        "    return 0.5 * x\n"
        "print(compiled(doubled)(1.0), numba.njit(cache=True)(halved)(1.0))\n"
    )
    assert run([str(program)], tmp_path / "cache") == "2.0 0.5"
    (kept,) = (tmp_path / "cache" / "wolfstream").rglob("*.nbi")
    assert "doubled" in kept.name
    assert [file.name.split("-")[0] for file in tmp_path.rglob("__pycache__/*.nbi")] == [
        "program.halved"
    ]
