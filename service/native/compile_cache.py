"""Where compiled code is kept: one directory for one state of the sources, and one processor.

numba's disk cache notices an edit of the file that holds a function, but not of the other
files that it calls, and passes over code for another processor. A directory named after a hash of
all solver sources and of the processor leaves nothing stale, and says what is complete.

numba runs what it finds there, so a directory is used only if it is this user's and no other may
write to it. Among temporary files anybody may have made it first; then one with a random name is
used, and everything is compiled again.
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

_VARIABLE = "NUMBA_CACHE_DIR"
_COMPLETE = "complete"
_MODE = 0o700
# What of the description of a processor decides which code it runs, on x86 and on ARM.
_OF_PROCESSOR = frozenset(
    {
        *("vendor_id", "cpu family", "model", "model name", "flags"),
        *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
    }
)
_PROCESSORS = Path("/proc/cpuinfo")


def use_compile_cache() -> Path:
    """Point numba at this directory, unless the environment names one. Before it is imported."""
    if not os.environ.get(_VARIABLE):
        os.environ[_VARIABLE] = str(_user_cache() / f"compiled-{_sources_hash()}")
    return Path(os.environ[_VARIABLE])


def is_complete() -> bool:
    """Return whether everything was compiled into the directory."""
    return (_marks() / _COMPLETE).exists()


def mark_complete() -> None:
    """Note that everything is compiled, for the next start."""
    directory = _marks()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _COMPLETE).touch()


def compile_once(unit: str, compile_it: Callable[[], None], wait: bool) -> bool:
    """Compile a part of the code, unless another process has; whether it is compiled now.

    wait: for another process that is at it. One that is killed leaves the part to the next.
    """
    with contextlib.ExitStack() as stack:
        try:
            mark = stack.enter_context(_mark_of(unit).open("ab"))
            fcntl.flock(mark, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a directory that cannot be written, or locked, keeps no marks
            compile_it()
            return True
        if not os.fstat(mark.fileno()).st_size:
            compile_it()
            mark.write(f"{unit}\n".encode())
    return True


def _mark_of(unit: str) -> Path:
    directory = _marks()
    directory.mkdir(parents=True, exist_ok=True)
    return directory / hashlib.sha256(unit.encode()).hexdigest()[:16]


def _marks() -> Path:
    """Return where it is noted what is compiled, for these sources and no others.

    A directory that the environment names may have seen others.
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
    """Return whether only this user may write to a directory, which is not a link."""
    found = directory.lstat()
    others = stat.S_IWGRP | stat.S_IWOTH
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return own and not found.st_mode & others


def _sources_hash() -> str:
    """Return a hash of all that decides whether numba would use the code in a directory."""
    digest = hashlib.sha256(f"{sys.version}{metadata.version('numba')}{_target()}".encode())
    spec = find_spec("wolfstream.solver")
    for folder in spec.submodule_search_locations or () if spec else ():
        # numba knows a function by the path of its file.
        digest.update(folder.encode())
        for file in sorted(Path(folder).rglob("*.py")):
            digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _target() -> str:
    """Return the processor that numba compiles for: the one that is named, or this machine's."""
    named = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    own = "" if all(part is not None for part in named) else _this_processor()
    return f"{platform.machine()} {named} {own}"


def _this_processor() -> str:
    """Return the name and features of the first processor; numba asks LLVM, which is imported."""
    try:
        first = _PROCESSORS.read_text().partition("\n\n")[0]
    except OSError:
        return platform.processor()
    fields = (line.partition(":") for line in first.splitlines())
    return repr([value.strip() for name, _, value in fields if name.strip() in _OF_PROCESSOR])
