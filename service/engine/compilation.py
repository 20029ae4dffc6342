"""The process that compiles everything into the cache: `python -m service.engine.compilation`.

It leaves a file in the cache when all is compiled, so that the next start needs no such process.
Images are built with it.
"""

import fcntl
import os
from pathlib import Path

from service.native.compile_cache import is_complete, mark_complete, use_compile_cache

_LOCK = "lock"
# Added to the process's niceness, so that requests come first.
_NICENESS = 10


def main() -> None:
    """Compile everything, unless another process is at it or has done so."""
    directory: Path = use_compile_cache()
    directory.mkdir(parents=True, exist_ok=True)
    os.nice(_NICENESS)
    with (directory / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_complete():
            # numba reads the cache's place when it is imported.
            from service.engine.warm_up import warm_up

            warm_up()
            mark_complete()


if __name__ == "__main__":
    main()
