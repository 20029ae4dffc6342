"""The directory of numba's disk cache: one for each version of the sources and each processor.

numba notices an edit of the file that defines a function, but not of the files whose functions it
calls. So the directory is named after a hash of all solver sources and of the processor: no code in
it is stale, and marks in it record which parts of the code are compiled.

numba executes whatever is in the directory, so it must belong to this user, and nobody else may
write to it. In the system's directory for temporary files, anybody may have created it first. Then
a directory with a random name is used, and everything is compiled again.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import stat
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from wolfstream.solver.sources import add_sources

_VARIABLE = "NUMBA_CACHE_DIR"
_COMPLETE = "complete"
_MODE = 0o700
# Fields of /proc/cpuinfo that determine which code the processor can run, on x86 and on ARM.
_PROCESSOR_FIELDS = frozenset(
    {
        *("vendor_id", "cpu family", "model", "model name", "flags"),
        *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
    }
)
_PROCESSORS = Path("/proc/cpuinfo")


def use_compile_cache() -> Path:
    """Set numba's cache directory, unless the environment does; return the directory.

    Call it before numba is imported.
    """
    directory = compile_cache()
    os.environ[_VARIABLE] = str(directory)
    return directory


def compile_cache() -> Path:
    """Return numba's cache directory: the one that the environment names, or this user's."""
    return Path(os.environ.get(_VARIABLE) or _user_cache() / f"compiled-{_sources_hash()}")


def is_complete() -> bool:
    """Return whether the directory has all compiled code."""
    return (_marks_directory() / _COMPLETE).exists()


def mark_complete() -> None:
    """Record for later starts that the directory has all compiled code."""
    directory = _marks_directory()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _COMPLETE).touch()


def compile_once(unit: str, compile_it: Callable[[], None], wait: bool) -> bool:
    """Compile a part of the code unless a process has done so; return whether it is compiled now.

    If the process that compiles the part is killed, the next caller compiles it.

    Args:
        unit: a name of the part.
        compile_it: compiles the part.
        wait: whether to wait for another process that is compiling the part; otherwise return
            False.
    """
    with contextlib.ExitStack() as stack:
        try:
            mark = stack.enter_context(_mark_path(unit).open("ab"))
            fcntl.flock(mark, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # marks cannot be written or locked: compile without one
            compile_it()
            return True
        if not os.fstat(mark.fileno()).st_size:
            compile_it()
            mark.write(f"{unit}\n".encode())
    return True


def _mark_path(unit: str) -> Path:
    directory = _marks_directory()
    directory.mkdir(parents=True, exist_ok=True)
    return directory / hashlib.sha256(unit.encode()).hexdigest()[:16]


def _marks_directory() -> Path:
    """Return the directory of the marks for these sources.

    A cache directory that the environment names may also have code of other sources.
    """
    return use_compile_cache() / f"parts-{_sources_hash()}"


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(OSError, RuntimeError):
        directory = (Path(base) if base else Path.home() / ".cache") / "wolfstream"
        directory.mkdir(_MODE, parents=True, exist_ok=True)
        if os.access(directory, os.W_OK) and _is_ours(directory):
            return directory
    with contextlib.suppress(OSError):
        directory = Path(tempfile.gettempdir()) / f"wolfstream-{os.getuid()}"
        directory.mkdir(_MODE, parents=True, exist_ok=True)
        if _is_ours(directory):
            return directory
    return Path(tempfile.mkdtemp(prefix="wolfstream-"))


def _is_ours(directory: Path) -> bool:
    """Return whether a path is a directory, not a link, to which only this user may write."""
    status = directory.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _sources_hash() -> str:
    """Return a hash of everything that compiled code depends on."""
    digest = hashlib.sha256(f"{sys.version}{metadata.version('numba')}{_target()}".encode())
    spec = find_spec("wolfstream.solver")
    for folder in spec.submodule_search_locations or () if spec else ():
        # numba identifies a function by the path of its file.
        digest.update(folder.encode())
        add_sources(digest, folder)
    return digest.hexdigest()[:16]


def _target() -> str:
    """Return the processor that numba compiles for: as the environment says, or this machine's."""
    named = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    own = "" if all(part is not None for part in named) else _this_processor()
    return f"{platform.machine()} {named} {own}"


def _this_processor() -> str:
    """Return the name and features of this machine's first processor.

    numba asks LLVM for them, but must not be imported yet.
    """
    try:
        first = _PROCESSORS.read_text().partition("\n\n")[0]
    except OSError:
        return platform.processor()
    fields = (line.partition(":") for line in first.splitlines())
    return repr([value.strip() for name, _, value in fields if name.strip() in _PROCESSOR_FIELDS])
