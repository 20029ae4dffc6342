"""Where compiled code is kept: one directory for one state of the sources.

numba's disk cache notices an edit of the file that a function stands in, but not of the other
files that it calls. A directory named after a hash of all solver sources leaves nothing stale.

numba runs what it finds there, so a directory is used only if it is this user's and nobody else may
write to it. Among temporary files anybody may have made it first; then one with a random name is
used, and everything is compiled anew.
"""

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

_VARIABLE = "NUMBA_CACHE_DIR"
_COMPLETE = "complete"
_MODE = 0o700


def use_compile_cache() -> Path:
    """Point numba at this directory, unless the environment names one. Before it is imported."""
    if not os.environ.get(_VARIABLE):
        os.environ[_VARIABLE] = str(_user_cache() / f"compiled-{_sources_hash()}")
    return Path(os.environ[_VARIABLE])


def is_complete() -> bool:
    """Whether everything was compiled into the directory."""
    return (use_compile_cache() / _COMPLETE).exists()


def mark_complete() -> None:
    """Note that everything is compiled, for the next start."""
    (use_compile_cache() / _COMPLETE).touch()


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(OSError, RuntimeError):
        directory = (Path(base) if base else Path.home() / ".cache") / "wolfstream"
        directory.mkdir(_MODE, parents=True, exist_ok=True)
        if os.access(directory, os.W_OK) and _is_ours(directory):
            return directory
    directory = Path(tempfile.gettempdir()) / f"wolfstream-{os.getuid()}"
    with contextlib.suppress(OSError):
        directory.mkdir(_MODE, parents=True, exist_ok=True)
        if _is_ours(directory):
            return directory
    return Path(tempfile.mkdtemp(prefix="wolfstream-"))


def _is_ours(directory: Path) -> bool:
    """Whether a directory is this user's own, no link to another, and nobody else's to write."""
    found = directory.lstat()
    others = stat.S_IWGRP | stat.S_IWOTH
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return own and not found.st_mode & others


def _sources_hash() -> str:
    digest = hashlib.sha256(f"{sys.version}{metadata.version('numba')}".encode())
    spec = find_spec("solver")
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted(Path(folder).rglob("*.py")):
            digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return digest.hexdigest()[:16]
