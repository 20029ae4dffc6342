"""Where compiled code is kept: one directory for one state of the sources.

numba's disk cache notices an edit of the file that a function stands in, but not of the other
files that it calls. A directory named after a hash of all solver sources leaves nothing stale.
"""

import hashlib
import os
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

_VARIABLE = "NUMBA_CACHE_DIR"
_COMPLETE = "complete"


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
    try:
        directory = (Path(base) if base else Path.home() / ".cache") / "wolfstream"
        directory.mkdir(parents=True, exist_ok=True)
        if os.access(directory, os.W_OK):
            return directory
    except (OSError, RuntimeError):
        pass
    return Path(tempfile.gettempdir()) / f"wolfstream-{os.getuid()}"


def _sources_hash() -> str:
    digest = hashlib.sha256(f"{sys.version}{metadata.version('numba')}".encode())
    spec = find_spec("solver")
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted(Path(folder).rglob("*.py")):
            digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return digest.hexdigest()[:16]
