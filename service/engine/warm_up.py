"""Compilation: the default model's code before the server is ready, the rest beside it.

The rest is compiled by a process of its own (`engine.compilation`), at a low priority, into the
cache that the server loads from. A thread would hold the interpreter lock, and with it the event
loop, most of the time.
"""

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from service.heads.kinds import KINDS
from service.native.compile_cache import is_complete
from service.spec.heads import HeadName
from service.spec.model import ModelSpec

logger = logging.getLogger(__name__)


class Unit(NamedTuple):
    """What is compiled at a time: a kind of head, for a spec, on rows of one kind."""

    head: HeadName
    spec: ModelSpec
    sparse: bool

    def compile(self) -> None:
        """Learn, predict, save and restore a little."""
        KINDS[self.head].exercise(self.spec, self.sparse)


def code_of(spec: ModelSpec) -> set[tuple[HeadName, Hashable]]:
    """What decides which compiled code a model of this spec runs."""
    return {(name, KINDS[name].code(spec)) for name in spec.heads}


def units() -> Iterator[Unit]:
    """Everything that a request can reach."""
    for name, kind in KINDS.items():
        for spec in kind.specs():
            yield from (Unit(name, spec, sparse) for sparse in (False, True))


def needed_first(unit: Unit) -> bool:
    """Whether the default model on dense rows needs it."""
    code = unit.head, KINDS[unit.head].code(unit.spec)
    return code in code_of(ModelSpec()) and not unit.sparse


def warm_up() -> None:
    """Compile everything.

    A server that starts meanwhile compiles what is needed first from the front; coming from the
    back, this seldom compiles the same.
    """
    everything = list(units())
    first = [unit for unit in everything if needed_first(unit)]
    rest = [unit for unit in everything if not needed_first(unit)]
    for unit in [*first[:0:-1], *rest, first[0]]:
        unit.compile()


class WarmUp:
    """What a server compiles, and the process that compiles the rest."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        if is_complete():
            self._ended.set()
            return
        command = [sys.executable, "-m", "service.engine.compilation"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self._watching = asyncio.create_task(self._watch(self._process))

    def before_ready(self, specs: Iterable[ModelSpec], report: Callable[[str], None]) -> None:
        """Compile what the default model and the models of these specs need, on any thread."""
        of_models = set().union(*map(code_of, specs))
        needed = [
            unit
            for unit in units()
            if needed_first(unit) or (unit.head, KINDS[unit.head].code(unit.spec)) in of_models
        ]
        for i, unit in enumerate(needed, 1):
            report(f"compiling, part {i} of {len(needed)}")
            unit.compile()

    async def wait_for(self, spec: ModelSpec) -> None:
        """Return once what a model of this spec runs is in the cache."""
        if not code_of(spec) <= code_of(ModelSpec()):
            await self._ended.wait()

    def stop(self) -> None:
        """End the process; what it has compiled stays in the cache."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    async def _watch(self, process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        logger.info("other kinds of models are being compiled in the background")
        code = await asyncio.to_thread(process.wait)
        if code == 0:
            logger.info("everything is compiled, after %.0f s", time.monotonic() - began)
        elif code > 0:
            logger.warning(
                "compilation in the background failed with exit code %d; "
                "what is missing is compiled when a model first needs it",
                code,
            )
        self._ended.set()
