"""The process that compiles everything into the cache, and how a server starts and ends it.

`python -m wolfstream.service.compilation.compiler_process` is started before the server's modules
are imported. It prints a line with the key of each part that is compiled; parts whose keys come on
its standard input are compiled before the others. When all is compiled, it leaves a mark in the
cache, so that the next start needs no such process. Images are built with it.

It has the usual priority, because requests wait for what it compiles.
"""

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Iterator

from wolfstream.solver.compile_cache import (
    is_complete,
    mark_complete,
    use_compile_cache,
)

_STDIN = 0

Process = subprocess.Popen[str]


@contextlib.contextmanager
def compiling() -> Iterator[Process | None]:
    """Run the process within the block; yield None if everything is compiled already."""
    use_compile_cache()
    if is_complete():
        yield None
        return
    command = [sys.executable, "-m", "wolfstream.service.compilation.compiler_process"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            end(process)


def end(process: Process) -> None:
    """End the process, on any thread; what it has compiled stays in the cache."""
    if process.poll() is None:
        process.terminate()


def main() -> None:
    """Compile what no other process has compiled, the default model's code first."""
    use_compile_cache()
    if is_complete():
        return
    # numba reads the path of the cache when it is imported.
    from wolfstream.service.compilation.compiled_parts import (
        collecting_seldom,
        compile_all,
        parts,
        wanted_first,
    )

    with collecting_seldom():
        compile_all(wanted_first(parts(), _Input()), lambda part: report(part.key))
    mark_complete()


def report(key: str) -> None:
    """Print a part that is compiled; end silently if the server that would read it is gone."""
    try:
        print(key, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushed again at exit
        raise SystemExit from None


class _Input:
    """Each call returns the lines that have come on standard input since the last one."""

    def __init__(self) -> None:
        self._begun = b""  # of a line whose end has not come yet
        self._ended = False

    def __call__(self) -> list[str]:
        *lines, self._begun = (self._begun + self._read()).split(b"\n")
        return [line.decode() for line in lines]

    def _read(self) -> bytes:
        data = b""
        while not self._ended and select.select([_STDIN], [], [], 0)[0]:
            more = os.read(_STDIN, 1 << 16)
            self._ended = not more
            data += more
        return data


if __name__ == "__main__":
    main()
