"""The faults of a fleet's campaign: parts are killed, stopped, cut off, filled, and return."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx

from tests.service import balancer
from tests.service.balancer import Balancer
from tests.service.cable import Cable
from tests.service.fleet.conftest import Replica
from tests.service.nats import NatsServers
from tests.service.process import ServerProcess
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.streams import log_location

_PATIENCE_SECONDS = 60.0
# What the logs may grow by where their bound is set to what they have.
_ROOM_BYTES = 1 << 16
_STOPPED_SECONDS = 20.0
_LOGS = sorted({log_location(number)[0] for number in range(8)})


class Parts:
    """Three NATS servers, three replicas, and a balancer where HAProxy is there.

    The last replica is reached, and reaches NATS, through a cable. urls: those at which clients
    reach the fleet.
    """

    # Whether NATS servers can be cut off from each other.
    cabled_servers = False

    def __init__(self, folder: Path, n_servers: int, **settings: object) -> None:
        cabled = self.cabled_servers
        self.nats = NatsServers(folder / "nats", n_servers, sync=True, cabled=cabled)
        self.replicas = [
            Replica(folder / f"replica-{number}", self.nats, **settings) for number in range(3)
        ]
        self.wire()
        self.addresses = [str(one.settings["advertise"]) for one in self.replicas]
        self.balancer = None if balancer.MISSING else Balancer(folder, self.addresses)
        balanced = [] if self.balancer is None else [self.balancer.url]
        self.urls = [*self.addresses, *balanced]

    def wire(self) -> None:
        """Lay the cables, before anything runs."""
        behind = self.replicas[-1]
        self.cable = Cable([*self.nats.ports, behind.port])
        *ports, own = self.cable.ports
        behind.settings["fleet"] = ",".join(f"nats://127.0.0.1:{port}" for port in ports)
        behind.settings["advertise"] = f"http://127.0.0.1:{own}"

    def cables(self) -> list[Cable]:
        """Return all cables."""
        return [self.cable]

    def start(self) -> "Parts":
        """Start all, and wait until all replicas are ready."""
        self.nats.start()
        for one in self.replicas:
            one.launch()
        for one in self.replicas:
            one.wait()
        if self.balancer is not None:
            self.balancer.start()
        return self

    def keep_logs(self) -> None:
        """Let no log be purged: the checker reads all of them in the end."""
        nats = NatsConnection(self.nats.addresses, "faults")
        try:
            for name in _LOGS:
                config = _called(nats, f"STREAM.INFO.{name}", {})["config"]
                _called(nats, f"STREAM.UPDATE.{name}", {**config, "deny_purge": True})
        finally:
            nats.close()

    def leader(self, model: str) -> ServerProcess | None:
        """The replica that leads a model, as the first says that answers; None if nobody does."""
        lead = [one["url"] for one in self._told() if model in one["leads"]]
        return self.replicas[self.addresses.index(lead[0])] if lead else None

    def standby(self, model: str, sequence: int) -> ServerProcess | None:
        """The replica that follows a model and has reached a sequence; None if nobody has."""
        follow = [one["url"] for one in self._told() if one["follows"].get(model) == sequence]
        return self.replicas[self.addresses.index(follow[0])] if follow else None

    def _told(self) -> list[dict[str, Any]]:
        """Return what the replicas tell of themselves, as the first says that answers."""
        for url in self.addresses:
            try:
                told: list[dict[str, Any]]
                told = httpx.get(f"{url}/v1/fleet", timeout=1).json()["replicas"]
            except httpx.TransportError:
                continue
            return told
        return []

    def close(self) -> None:
        """End everything."""
        if self.balancer is not None:
            self.balancer.close()
        for one in self.replicas:
            one.close()
        self.nats.close()
        for cable in self.cables():
            cable.close()


class Faults:
    """Faults of a fleet in a random order, each kind at least once if there are so many.

    models: those whose leaders fail. hurry: how much shorter all takes that nobody waits for.
    counts: how often each kind came. kills: how many processes were killed. happened: when each
    began, and its kind.
    """

    def __init__(self, parts: Parts, models: list[str], random: Random, hurry: float = 1.0) -> None:
        self._parts, self._models, self._random = parts, models, random
        self._hurry = hurry
        self.counts, self.kills = Counter[str](), 0
        self.happened = list[tuple[float, str]]()
        self._kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "replica killed": (6, self._kill_replica),
            "leader killed": (4, self._kill_leader),
            "leader stopped, replaced, continued": (3, self._stop_leader),
            "replica stopped": (2, self._stop_replica),
            "replica ended": (2, self._end_replica),
            "replica cut off": (2, self._cut_off),
            "NATS server killed": (5, self._kill_server),
            "NATS server stopped": (2, self._stop_server),
            "all of NATS killed": (1, self._kill_all_servers),
            "log full": (2, self._fill_log),
        }
        if parts.balancer is not None:
            self._kinds["balancer killed"] = 2, self._kill_balancer

    def happen(self, n: int) -> None:
        """Let so many things fail, one after another."""
        weights = [weight for weight, _ in self._kinds.values()]
        kinds = [*self._kinds, *self._random.choices(list(self._kinds), weights, k=n)][:n]
        self._random.shuffle(kinds)
        for kind in kinds:
            self.let(kind)

    def between(self, began: float, ended: float) -> list[str]:
        """Return the kinds of what began to fail between two moments, and of what came before."""
        before = [kind for at, kind in self.happened if at < began]
        return before[-1:] + [kind for at, kind in self.happened if began <= at < ended]

    def let(self, kind: str) -> None:
        """Let a thing of one kind fail, and come back."""
        self.happened.append((time.monotonic(), kind))
        self._kinds[kind][1]()
        self.counts[kind] += 1
        self._pause()

    def _pause(self) -> None:
        time.sleep(self._random.uniform(0.5, 4.0) / self._hurry)

    def _kill_replica(self) -> None:
        self._kill(self._random.choice(self._parts.replicas))

    def _kill_leader(self) -> None:
        self._kill(self._some_leader())

    def _kill(self, one: ServerProcess) -> None:
        one.kill()
        self.kills += 1
        self._pause()
        one.launch()
        one.wait()

    def _some_leader(self) -> ServerProcess:
        model = self._random.choice(self._models)
        return found(lambda: self._parts.leader(model))

    def _stop_leader(self) -> None:
        model = self._random.choice(self._models)
        leader = found(lambda: self._parts.leader(model))
        with stopped(leader):
            # Stopped replicas do not answer; the others know the leader.
            found(lambda: self._parts.leader(model) not in (leader, None))
            self._pause()

    def _stop_replica(self) -> None:
        with stopped(self._random.choice(self._parts.replicas)):
            time.sleep(2)
            self._pause()

    def _end_replica(self) -> None:
        one = self._random.choice(self._parts.replicas)
        assert one.terminate() == 0
        one.launch()
        one.wait()

    def _cut_off(self) -> None:
        cut = self._parts.replicas[-1]
        self._parts.cable.cut()
        try:
            for model in self._models:
                found(lambda of=model: self._parts.leader(of) not in (cut, None))  # type: ignore[misc]
            self._pause()
        finally:
            self._parts.cable.mend()

    def _kill_server(self) -> None:
        self._kill_servers([self._random.randrange(len(self._parts.nats.ports))])

    def _stop_server(self) -> None:
        """Let one neither answer nor close its connections."""
        number = self._random.randrange(len(self._parts.nats.ports))
        self._parts.nats.kill(number, by=signal.SIGSTOP)
        try:
            time.sleep(_STOPPED_SECONDS / self._hurry)
        finally:
            self._parts.nats.kill(number, by=signal.SIGCONT)

    def _kill_all_servers(self) -> None:
        self._kill_servers(range(len(self._parts.nats.ports)))

    def _kill_servers(self, numbers: "range | list[int]") -> None:
        for number in numbers:
            self._parts.nats.kill(number)
            self.kills += 1
        self._pause()
        for number in numbers:
            self._parts.nats.start_one(number)

    def _kill_balancer(self) -> None:
        assert self._parts.balancer is not None
        self._parts.balancer.kill()
        self.kills += 1
        self._pause()
        self._parts.balancer.start()

    def _fill_log(self) -> None:
        """Let all logs have no more room for a while."""
        with ExitStack() as stack:
            nats = NatsConnection(self._parts.nats.addresses, "faults")
            stack.callback(nats.close)
            for name in _LOGS:
                stack.enter_context(_without_room(nats, name))
            self._pause()


@contextmanager
def stopped(one: ServerProcess) -> Iterator[None]:
    one.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        one.send_signal(signal.SIGCONT)


@contextmanager
def _without_room(nats: NatsConnection, stream: str) -> Iterator[None]:
    """Within, a stream takes little more than it has."""
    found = _called(nats, f"STREAM.INFO.{stream}", {})
    bound = found["state"]["bytes"] + _ROOM_BYTES
    _called(nats, f"STREAM.UPDATE.{stream}", {**found["config"], "max_bytes": bound})
    try:
        yield
    finally:
        _called(nats, f"STREAM.UPDATE.{stream}", found["config"])


def _called(nats: NatsConnection, name: str, request: dict[str, Any]) -> dict[str, Any]:
    def answer() -> dict[str, Any] | None:
        try:
            return nats.run(nats.call(name, request), 30)
        except (NatsRefusal, NatsTimeout):
            return None

    return found(answer)


def found(look: Callable[[], Any]) -> Any:
    """Return the first result that is something."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found
