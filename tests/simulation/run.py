"""One simulation: three replicas, their clients, faults, and the check of everything in the end.

`tests.simulation.prepared` is imported before; a process runs one simulation.
"""

import gc
import logging
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation import kernel as kernels
from tests.simulation import loops, real, replica, standard_library, transport
from tests.simulation.checker import check, shortened
from tests.simulation.clients import PATIENCE_SECONDS, Clients
from tests.simulation.faults import FaultInjector
from tests.simulation.inspection import Inspection
from tests.simulation.kernel import Deadlock, Group, Kernel
from tests.simulation.log_reader import catalogue, logs
from tests.simulation.network import Network
from tests.simulation.replica import Replica, World
from tests.simulation.stream_link import SimulatedWire
from wolfstream.service.errors import Refusal

_REPLICAS = 3
_PACES = (0.3, 0.6, 1.5)
_SNAPSHOT_SAMPLES = (20, 100, 1000)
_PREEMPTIONS, _SWITCH_SECONDS = (0.005, 0.02, 0.1), (1e-5, 1e-5, 1e-4, 1e-3)
_COLLECT_SECONDS = 20.0
_LINES = 4000
_OF_REQUESTS = (
    "wolfstream.service.web.formats",
    "wolfstream.service.web.transport",
    "wolfstream.service.web.routes",
)


@dataclass
class Result:
    """What came of a simulation.

    faults: what contradicts a promise. trace: digest of the whole run. log: the last lines that
    the replicas have logged.
    """

    seed: str
    faults: list[str]
    trace: str
    steps: int
    simulated_seconds: float
    real_seconds: float
    processor_seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)


def run(seed: str, seconds: float, follow: Callable[[str], object] | None = None) -> Result:
    """Run the simulation of a seed with faults for some seconds of its time.

    follow: is handed each line of the trace.
    """
    began = real.monotonic()
    random = Random(f"{seed} run")
    kernel = standard_library.begin(
        seed, random.choice(_PREEMPTIONS), random.choice(_SWITCH_SECONDS)
    )
    if follow is not None:
        kernel.follow(follow)
    lines, errors = _keep_log(kernel)
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        os.chdir(folder)  # the paths in all runs are the same
        simulation = _Simulation(kernel, seed, random)
        try:
            simulation.run(seconds)
        except Deadlock as error:
            simulation.faults.append(str(error))
        faults = (
            simulation.faults
            + list(errors)
            + check(
                logs(simulation.wire.archive),
                catalogue(simulation.wire.archive),
                simulation.clients.record,
            )
        )
        os.chdir("/")
    return Result(
        seed,
        shortened(faults),
        kernel.trace,
        kernel.steps,
        kernel.now,
        real.monotonic() - began,
        time.process_time(),
        simulation.counts(),
        list(lines) if faults else [],
    )


class _Simulation:
    def __init__(self, kernel: Kernel, seed: str, random: Random) -> None:
        self.kernel, self.faults = kernel, list[str]()
        self.network = Network(kernel, seed)
        self.wire = SimulatedWire(kernel, self.network, seed)
        self.world = World(kernel, self.network, self.wire)
        transport.install(self.network)
        loops.Loop.network = self.network
        replica.install(self.world)
        samples = random.choice(_SNAPSHOT_SAMPLES)
        self.replicas = [
            Replica(self.world, number, Path(), snapshot_samples=samples, snapshots=2)
            for number in range(_REPLICAS)
        ]
        urls = [one.url for one in self.replicas]
        self.clients = Clients(kernel, self.network, urls, seed, random.choice(_PACES))
        self.injector = FaultInjector(self.world, self.replicas, seed)
        self._group = Group("clients")
        self._collect()

    def _collect(self) -> None:
        gc.collect()
        self.kernel.call_later(_COLLECT_SECONDS, self._collect)

    def run(self, seconds: float) -> None:
        for one in self.replicas:
            one.start()
        self.kernel.start(self.clients.run, "clients", self._group)
        self.injector.happen(seconds)
        self.injector.end()
        self.clients.end()
        if self._wait(lambda: not self.clients.running):
            self._inspect()
        else:
            stuck = {name: round(at, 3) for name, at in self.clients.busy.items()}
            self.faults.append(
                f"clients have no final answer {PATIENCE_SECONDS} s after the last fault: {stuck}"
            )
        self.faults += self.world.failures

    def _inspect(self) -> None:
        """Compare what the fleet serves with what it serves once its replicas begin anew."""
        before, after = (Inspection(self.clients, self.clients.models) for _ in range(2))
        for inspection in (before, after):
            self.kernel.start(inspection.run, "inspection", self._group)
            if not self._wait(lambda of=inspection: of.ended):  # type: ignore[misc]
                self.faults.append(f"the fleet does not answer: {inspection.missing}")
                return
            if inspection is before:
                for one in self.replicas:
                    one.kill()
                    one.start(keep_data=False)
        archive = self.wire.archive
        self.faults += before.contradictions(after, logs(archive), catalogue(archive))

    def _wait(self, until: Callable[[], bool]) -> bool:
        """Return whether something is so within the time that clients may have to wait."""
        deadline = self.kernel.now + PATIENCE_SECONDS
        while not until():
            if self.kernel.now > deadline:
                return False
            self.kernel.sleep(0.5)
        return True

    def counts(self) -> dict[str, int]:
        """Return how often things have happened."""
        learned = self.clients.record.learned
        return {
            **{f"fault {name}": n for name, n in sorted(self.injector.counts.items())},
            **{f"http {name}": n for name, n in sorted(self.network.counts.items())},
            **{f"stream {name}": n for name, n in sorted(self.wire.counts.items())},
            **{f"call {name}": n for name, n in sorted(self.clients.record.calls.items())},
            "requests acknowledged": sum(one.sequence is not None for one in learned),
            "messages stored": len(self.wire.archive),
            "threads": len(self.kernel.threads),
        }


def _keep_log(kernel: Kernel) -> tuple[deque[str], dict[str, None]]:
    """Return the last lines that anything has logged, and unexpected errors, as they come."""
    lines: deque[str] = deque(maxlen=_LINES)
    errors: dict[str, None] = {}

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            group = kernel.current.group
            name = "-" if group is None else group.name
            lines.append(f"{kernel.now:9.3f} {name} {record.levelname} {record.getMessage()}")
            if record.exc_info:
                # What a request has met unexpectedly is told where its application raises.
                error, known = record.exc_info[1], record.name.startswith(_OF_REQUESTS)
                if record.levelno >= logging.ERROR and not (known or isinstance(error, Refusal)):
                    errors[f"{name} logs: {record.getMessage()}: {error!r}"] = None
                lines.append(logging.Formatter().formatException(record.exc_info))

    logging.basicConfig(level=logging.INFO, handlers=[Keeping()], force=True)
    return lines, errors


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


assert kernels.running() is None
