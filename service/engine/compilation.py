"""The process that compiles everything into the cache: `python -m service.engine.compilation`.

It is started before the server's modules are imported, and names each part that is compiled on a
line of its standard output. It leaves a file in the cache when all is compiled, so that the next
start needs no such process. Images are built with it.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from service.native.compile_cache import is_complete, mark_complete, use_compile_cache

# Added to the process's niceness once the server is ready, so that requests come first.
_NICENESS = 10

Process = subprocess.Popen[str]


@contextlib.contextmanager
def compiling() -> Iterator[Process | None]:
    """The running process, which ends with the context; None where all is compiled already."""
    use_compile_cache()
    if is_complete():
        yield None
        return
    command = [sys.executable, "-m", "service.engine.compilation"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            end(process)


def end(process: Process) -> None:
    """End the process on any thread; what it has compiled stays in the cache."""
    if process.poll() is None:
        process.terminate()


def main() -> None:
    """Compile what no other process has compiled, what the default model needs first."""
    use_compile_cache()
    if is_complete():
        return
    # numba reads the cache's place when it is imported.
    from service.engine.compiled_parts import (
        Part,
        collecting_seldom,
        compile_all,
        needed_first,
        parts,
    )

    def report(part: Part) -> None:
        print(part.key, flush=True)

    with collecting_seldom():
        first = needed_first()
        compile_all(first, report)
        os.nice(_NICENESS)
        compile_all([part for part in parts() if part not in first], report)
    mark_complete()


if __name__ == "__main__":
    main()
