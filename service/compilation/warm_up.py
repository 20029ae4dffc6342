"""Compiles the default model's code before the server is ready, and the rest while it serves.

Another process (`compiler_process`) compiles half of the former and all of the rest, into a cache
that the server loads from. A thread would hold the interpreter lock, and so block the event loop,
most of the time.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable

from wolfstream.service.compilation.compiled_parts import (
    CompiledPart,
    collect_garbage,
    collecting_seldom,
    compile_all,
    load_later_parts,
    needed_first,
    parts,
    parts_for,
)
from wolfstream.service.compilation.compiler_process import Process, end
from wolfstream.service.spec.model import ModelSpec

logger = logging.getLogger(__name__)


class WarmUp:
    """What a server compiles, and how far its compiling process is.

    Create it on the event loop.

    Args:
        process: that compiles; None if everything is compiled already.
    """

    def __init__(self, process: Process | None) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()  # set, and replaced, whenever another part is compiled
        self._began = time.monotonic()
        self._compiled: set[str] = set()  # keys of parts in the cache
        self._wanted: set[str] = set()  # keys of parts that the process was asked to compile first
        self._ended = process is None
        if process is not None:
            threading.Thread(target=self._watch, args=(process,), daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether nothing more will be compiled: everything is, or the process has ended."""
        return self._ended

    @property
    def progress(self) -> str:
        """How much of the code is compiled, in words; "" once everything is."""
        if self._ended:
            return ""
        return f"{len(self._compiled)} of {len(parts())} parts of the code are compiled"

    def before_ready(
        self, models: Iterable[tuple[ModelSpec, bool]], report: Callable[[str], None]
    ) -> None:
        """Compile what the default model and these models need, on any thread.

        Args:
            models: specs, and whether rows of the model may be sparse.
            report: called with a line of progress.
        """
        needed = needed_first()
        for spec, sparse in models:
            needed += [part for part in parts_for(spec, sparse) if part not in needed]
        left = list(needed)

        def compiled(part: CompiledPart) -> None:
            left.remove(part)
            self._compiled.add(part.key)
            report(f"compiling: {len(left)} of {len(needed)} parts are left")

        report(f"compiling: {len(needed)} of {len(needed)} parts are left")
        compiles = not self._ended
        if compiles:
            logger.info("compiling for this machine, once: a minute or two; /readyz says how far")
        with collecting_seldom():
            if compiles:
                # The compiling process begins at the other end of the list.
                compile_all(reversed(needed), compiled, before_waiting=collect_garbage)
            for part in needed:
                part.compile()
            if compiles:
                collect_garbage()
        threading.Thread(target=load_later_parts, name="later parts", daemon=True).start()

    def is_compiled(self, spec: ModelSpec, sparse: bool) -> bool:
        """Return whether the cache has all the code that a model of this spec runs on such rows.

        sparse: see `parts_for`.
        """
        return self._ended or all(part.key in self._compiled for part in parts_for(spec, sparse))

    async def wait_for(self, spec: ModelSpec, sparse: bool) -> None:
        """Have such code compiled next; return once it `is_compiled`, or nothing more will be."""
        if not self.is_compiled(spec, sparse):
            self._want(parts_for(spec, sparse))
        while not self.is_compiled(spec, sparse):
            await self._changed.wait()

    def stop(self) -> None:
        """End the compiling process; what it has compiled stays in the cache."""
        if self._process is not None:
            end(self._process)
        self._ended = True
        self._wake()

    def _want(self, wanted: Iterable[CompiledPart]) -> None:
        """Ask the compiling process to compile these parts first."""
        new = {part.key for part in wanted} - self._compiled - self._wanted
        self._wanted |= new
        if self._process is not None:
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):  # it has ended
                self._process.stdin.writelines(f"{key}\n" for key in new)
                self._process.stdin.flush()

    def _watch(self, process: Process) -> None:
        """Read what the compiling process reports until it ends, on a thread of its own."""
        assert process.stdout is not None
        # A RuntimeError says that the loop is closed: the server has ended.
        with process.stdout, contextlib.suppress(RuntimeError):
            for line in process.stdout:
                self._loop.call_soon_threadsafe(self._record, line.rstrip("\n"))
            self._loop.call_soon_threadsafe(self._end, process.wait())

    def _record(self, key: str) -> None:
        self._compiled.add(key)
        self._wake()

    def _end(self, code: int) -> None:
        if self._ended:
            return  # it was stopped
        self._ended = True
        if code == 0:
            logger.info("compilation finished: seconds=%.0f", time.monotonic() - self._began)
        else:
            logger.warning(
                "compilation failed, the rest is compiled when it is first needed: exit_code=%d",
                code,
            )
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
