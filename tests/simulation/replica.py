"""A whole replica: what `wolfstream serve --fleet` runs, in threads of the simulation.

Everything is the product's, from `service.server.main_process.serve` on, except uvicorn's sockets,
the connection to NATS, and what is compiled at the start.
"""

import asyncio
import contextlib
import logging
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from tests.simulation.kernel import Group, Kernel
from tests.simulation.loops import Loop
from tests.simulation.network import Listener, Network
from tests.simulation.stream_link import Connections, SimulatedWire
from wolfstream.service.compilation.warm_up import WarmUp
from wolfstream.service.errors import StartupError
from wolfstream.service.fleet import opening
from wolfstream.service.server import main_process
from wolfstream.service.settings import Settings

logger = logging.getLogger("tests.simulation")

# How often uvicorn looks whether it should end, and how long it waits for responses then.
_LOOK_SECONDS, _PATIENCE_SECONDS = 0.1, 5.0


class World:
    """What the processes of a simulation share.

    failures: what must not happen anywhere, such as an application that raises.
    """

    def __init__(self, kernel: Kernel, network: Network, wire: SimulatedWire) -> None:
        self.kernel, self.network, self.wire = kernel, network, wire
        self.failures = list[str]()


class Replica:
    """A replica that is started, killed, paused and started again.

    data: below which each start has a directory of its own.
    """

    def __init__(self, world: World, number: int, data: Path, **settings: object) -> None:
        self.name, self.address = f"r{number}", f"10.0.0.{number + 1}:8000"
        self.url = f"http://{self.address}"
        self.group: Group | None = None
        self._world, self._data, self._given = world, data, settings
        self._starts = 0
        self._loop: Loop | None = None

    @property
    def runs(self) -> bool:
        """Return whether its process is there, perhaps paused."""
        return self.group is not None and not self.group.dead

    @property
    def paused(self) -> bool:
        """Return whether its process is stopped for a while."""
        return self.group is not None and self.group.paused

    def start(self, keep_data: bool = True, clock_skew: float = 0.0) -> None:
        """Start a process that has what the last one has written, or nothing."""
        assert not self.runs
        before, self._starts = self._directory, self._starts + 1
        if keep_data and before.exists():
            shutil.copytree(before, self._directory)
        self.group = Group(self.name, clock_skew=clock_skew)
        self._world.kernel.note("start", self.name, self._starts)
        self._world.kernel.start(self._run, f"{self.name} main", self.group)

    @property
    def _directory(self) -> Path:
        return self._data / f"{self.name}-{self._starts}"

    def kill(self) -> None:
        """End the process at once."""
        assert self.group is not None
        self._gone(self.group)

    def pause(self) -> None:
        """Stop all threads."""
        assert self.group is not None
        self._world.kernel.pause(self.group)

    def resume(self) -> None:
        """Let them go on."""
        assert self.group is not None
        self._world.kernel.resume(self.group)

    def terminate(self) -> None:
        """Ask the process to end, as SIGTERM does."""
        if self._loop is not None:
            self._world.kernel.note("terminate", self.name)
            self._loop.send_signal(signal.SIGTERM)

    def _gone(self, group: Group) -> None:
        world = self._world
        self._loop = None
        world.network.ended(group)
        world.wire.ended(group)
        world.kernel.kill(group)

    def _run(self) -> None:
        group = self.group
        assert group is not None
        settings = Settings(
            _env_file=None,
            data=self._directory,
            fleet=("nats://stream:4222",),
            advertise=self.url,
            **self._given,  # type: ignore[arg-type]
        )
        _of_group[group] = self
        try:
            main_process.serve(settings, {})
        except StartupError as error:
            logger.warning("%s does not start: %s", self.name, error)
        except Exception:
            logger.exception("%s ended", self.name)
            self._world.failures.append(f"{self.name} ended with an exception; see its log")
        self._world.kernel.note("exit", self.name)
        self._gone(group)

    async def answer_until_told(self, of: uvicorn.Server) -> None:
        """Do what uvicorn's server does, without sockets."""
        group, world = self.group, self._world
        assert group is not None
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        self._loop = loop

        def refused(what: str, error: Exception) -> None:
            # A response of another replica that is cut off is cut off for the client, too.
            if not isinstance(error, httpx.TransportError):
                world.failures.append(f"the application of {self.name} raises at {what}: {error!r}")

        listener = Listener(of.config.app, loop, group, refused)
        with of.capture_signals():
            of.servers = [_Closing(world.network, listener)]  # type: ignore[list-item]
            world.network.listen(self.address, listener)
            while not of.should_exit:  # noqa: ASYNC110 - as uvicorn does
                await asyncio.sleep(_LOOK_SECONDS)
            await of.shutdown([])

    @staticmethod
    async def end_calls(of: uvicorn.Server) -> None:
        """Wait for responses that are being made, then cancel them."""
        (closing,) = of.servers
        assert isinstance(closing, _Closing)
        closing.close()
        tasks = list(closing.listener.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE_SECONDS)
        for task in tasks:
            task.cancel()


class _Closing:
    """In the place of a server's socket."""

    def __init__(self, network: Network, listener: Listener) -> None:
        self._network, self.listener = network, listener

    def close(self) -> None:
        self._network.unlisten(self.listener)


_of_group: dict[Group, Replica] = {}


class _Compiled(WarmUp):
    """Everything that the models of the simulation run is compiled before it begins."""

    def before_ready(self, *_: Any) -> None:
        """Compile nothing."""


def install(world: World) -> None:
    """Replace what a replica would do to the real world."""
    _replace(
        main_process,
        set_up_logging=lambda _: None,
        bound_sockets=_no_sockets,
        WarmUp=_Compiled,
        begin_serving=lambda: None,  # the simulation collects garbage at times of its own
        _exit_now=lambda _: _own(world)._gone(_own_group(world)),
    )
    _replace(uvicorn.Config, get_loop_factory=lambda _: Loop)
    _replace(
        uvicorn.Server,
        serve=lambda of, sockets=None: _own(world).answer_until_told(of),  # noqa: ARG005
        shutdown=lambda of, sockets=None: Replica.end_calls(of),  # noqa: ARG005
    )
    _replace(opening, NatsConnection=Connections(world.wire, world.network, world.kernel))


def _replace(owner: Any, **attributes: Any) -> None:
    """Set attributes that there are: a name that was changed would leave the real one in place."""
    for name, value in attributes.items():
        assert hasattr(owner, name), f"{owner.__name__} has no {name}"
        setattr(owner, name, value)


def _own_group(world: World) -> Group:
    group = world.kernel.current.group
    assert group is not None
    return group


def _own(world: World) -> Replica:
    return _of_group[_own_group(world)]


@contextlib.contextmanager
def _no_sockets(*_: object) -> Iterator[list[Any]]:
    yield []
