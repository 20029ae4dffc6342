"""The process that compiles everything into the cache: `python -m wolfstream.service.engine.compilation`.

It is started before the server's modules are imported, and names each part that is compiled on a
line of its standard output; parts that are named on its standard input come before the others. It
leaves a file in the cache when all is compiled, so that the next start needs no such process.
Images are built with it.

It has the priority of other processes: requests wait for what it compiles.
"""

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Iterator

from wolfstream.service.native.compile_cache import is_complete, mark_complete, use_compile_cache

_STDIN = 0

Process = subprocess.Popen[str]


@contextlib.contextmanager
def compiling() -> Iterator[Process | None]:
    """The running process, which ends with the context; None if all is compiled already."""
    use_compile_cache()
    if is_complete():
        yield None
        return
    command = [sys.executable, "-m", "wolfstream.service.engine.compilation"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
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
    from wolfstream.service.engine.compiled_parts import (
        collecting_seldom,
        compile_all,
        parts,
        wanted_first,
    )

    with collecting_seldom():
        compile_all(wanted_first(parts(), _Wanted()), lambda part: report(part.key))
    mark_complete()


def report(key: str) -> None:
    """Name a part that is compiled; end without a word if the server that would read it is gone."""
    try:
        print(key, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushed again at exit
        raise SystemExit from None


class _Wanted:
    """A call returns the lines that have come on standard input since the last one."""

    def __init__(self) -> None:
        self._begun = b""
        self._ended = False

    def __call__(self) -> list[str]:
        *lines, self._begun = (self._begun + self._read()).split(b"\n")
        return [line.decode() for line in lines]

    def _read(self) -> bytes:
        found = b""
        while not self._ended and select.select([_STDIN], [], [], 0)[0]:
            more = os.read(_STDIN, 1 << 16)
            self._ended = not more
            found += more
        return found


if __name__ == "__main__":
    main()
