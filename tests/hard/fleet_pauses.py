"""Replicas that are stopped, and cut off, at chosen moments of their work, and go on later.

What is chosen: requests with keys are on their way, or acknowledged with their answers unwritten,
while another model's snapshot, a rollback and a promotion are due. The same keys are sent to the
other replicas meanwhile.
"""

import itertools
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import httpx

from tests.hard.fleet_callers import Burst, Callers, promote, roll_back, save
from tests.hard.fleet_faults import Parts, found, stopped
from tests.hard.fleet_ledger import clock
from tests.hard.fleet_recorder import Recorder
from tests.service.cable import Cable

_BURST = 6
_FIRST_SECONDS, _LATE_SECONDS = 10.0, 90.0


class Detours:
    """A prelude of a replica: it reaches some ports of this machine through others."""

    def __init__(self, ports: dict[int, int]) -> None:
        self._ports = ports

    def __call__(self) -> None:
        """Let all connections of this process take their detours."""
        directly, ports = socket.socket.connect, self._ports

        def connect(this: socket.socket, address: Any) -> None:
            if isinstance(address, tuple) and address[1] in ports:
                address = (address[0], ports[address[1]], *address[2:])
            directly(this, address)

        socket.socket.connect = connect  # type: ignore[method-assign]


class CabledParts(Parts):
    """Three replicas, each with cables of its own to NATS and to each of the others.

    to_nats: the cables to NATS, by the numbers of replicas. to_others: those between replicas, by
    the numbers of the one that connects and of the other one.
    """

    cabled_servers = True

    def wire(self) -> None:
        """Lay the cables, before anything runs."""
        self.to_nats = [Cable(self.nats.ports) for _ in self.replicas]
        numbers = range(len(self.replicas))
        self.to_others = {
            (one, other): Cable([self.replicas[other].port])
            for one, other in itertools.permutations(numbers, 2)
        }
        for one, replica in enumerate(self.replicas):
            ports = self.to_nats[one].ports
            replica.settings["fleet"] = ",".join(f"nats://127.0.0.1:{port}" for port in ports)
            replica.prelude = Detours(
                {
                    self.replicas[other].port: self.to_others[one, other].ports[0]
                    for other in numbers
                    if other != one
                }
            )

    def cables(self) -> list[Cable]:
        """Return all cables."""
        return [*self.to_nats, *self.to_others.values()]

    def between(self, number: int) -> list[Cable]:
        """Return the cables between a replica and the others, in both directions."""
        return [cable for pair, cable in self.to_others.items() if number in pair]

    def leads(self, asked: Sequence[int]) -> dict[str, int]:
        """Return the replica that leads each model, as one of some replicas says."""
        for number in asked:
            try:
                answer = httpx.get(f"{self.addresses[number]}/v1/fleet", timeout=1)
                told = answer.json()["replicas"]
            except (httpx.TransportError, KeyError):
                continue
            latest = dict[str, tuple[int, int, int]]()
            for one in told:
                for model, led in one["leads"].items():
                    term = led["number"], led["term"], self.addresses.index(one["url"])
                    latest[model] = max(term, latest.get(model, term))
            return {model: number for model, (*_, number) in latest.items()}
        return {}


class Pauses:
    """Pauses, partitions and kills, in a random order, each kind at least once.

    models: whose leaders fail. undone: the one that is rolled back. challengers: with the models
    that they follow. counts: how often each kind came. happened: a line for each, with its time.
    """

    def __init__(
        self,
        parts: CabledParts,
        callers: Callers,
        recorder: Recorder,
        models: Sequence[str],
        undone: str,
        challengers: dict[str, str],
        random: Random,
    ) -> None:
        self.counts, self.happened = Counter[str](), list[str]()
        self._parts, self._callers, self._recorder = parts, callers, recorder
        self._models, self._undone, self._challengers = list(models), undone, challengers
        self._random = random
        self._bursts, self._waiting = itertools.count(), list[threading.Thread]()
        stop, cut, server = self._stop_leader, self._cut_off, self._disturb_server
        self._kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "leader stopped with writes on their way": (3, lambda: stop(self._writes_on_their_way)),
            "leader stopped with writes held": (2, lambda: stop(self._writes_held)),
            "leader stopped with writes held for longer": (
                2,
                lambda: stop(self._writes_held_longer),
            ),
            "leader stopped with answers of NATS held": (3, lambda: stop(self._answers_held)),
            "leader stopped with answers unwritten": (4, lambda: stop(self._answers_unwritten)),
            "leader stopped with a challenger": (2, lambda: stop(self._with_challenger)),
            "replica cut off from NATS": (2, lambda: cut(nats=True)),
            "replica that does not hear NATS": (2, lambda: cut(nats=True, there=False)),
            "replica that NATS does not hear": (1, lambda: cut(nats=True, back=False)),
            "replica cut off from its neighbours": (2, lambda: cut(others=True)),
            "replica cut off from both": (2, lambda: cut(nats=True, others=True)),
            "leader killed": (2, self._kill_leader),
            "NATS leader of a log killed": (2, lambda: server(signal.SIGKILL, leader=True)),
            "NATS follower of a log killed": (1, lambda: server(signal.SIGKILL, leader=False)),
            "NATS leader of a log stopped": (1, lambda: server(signal.SIGSTOP, leader=True)),
            "NATS follower of a log stopped": (1, lambda: server(signal.SIGSTOP, leader=False)),
            "NATS servers divided": (2, self._divide_servers),
        }

    def happen(self, n: int) -> None:
        """Let so many things fail, one after another."""
        weights = [weight for weight, _ in self._kinds.values()]
        kinds = [*self._kinds, *self._random.choices(list(self._kinds), weights, k=n)][:n]
        self._random.shuffle(kinds)
        for kind in kinds:
            self.happened.append(f"{clock(time.time())} {kind}")
            self._kinds[kind][1]()
            self.counts[kind] += 1
            time.sleep(self._random.uniform(0.2, 1.5))

    @property
    def totals(self) -> dict[str, int]:
        """Return how many of all were stops, kills and partitions."""
        kinds = {
            "stops": ("leader stopped", "NATS leader of a log stopped", "NATS follower of a log s"),
            "kills": ("leader killed", "NATS leader of a log killed", "NATS follower of a log k"),
            "partitions": ("replica ", "NATS servers divided"),
        }
        return {
            total: sum(n for kind, n in self.counts.items() if kind.startswith(begin))
            for total, begin in kinds.items()
        }

    # -------------------------------------------------------------------------------- replicas

    def _stop_leader(self, prepare: Callable[[str, int, Burst], None]) -> None:
        """Stop a leader at a moment, until another replica has its models and for some time."""
        is_with_challenger = prepare == self._with_challenger
        model = "first" if is_with_challenger else self._random.choice(self._models)
        leader = self._leader(model)
        burst = self._burst(model)
        replica, others = self._parts.replicas[leader], self._others(leader)
        urls = [self._parts.addresses[number] for number in others]
        cable = self._parts.to_nats[leader]
        try:
            prepare(model, leader, burst)
            with stopped(replica):
                if prepare != self._writes_held_longer:
                    cable.mend()
                again = burst.again(urls)
                self._until_replaced([model], leader)
                for thread in again:
                    thread.join()
                self._leave_work(leader, model)
                time.sleep(self._random.uniform(0.2, 2.0))
                cable.mend()
        finally:
            cable.mend()
        burst.end(self._parts.addresses)

    def _writes_on_their_way(self, _: str, leader: int, burst: Burst) -> None:
        burst.begin(self._parts.addresses[leader])
        time.sleep(self._random.uniform(0.0, 0.04))

    def _writes_held(self, _: str, leader: int, burst: Burst) -> None:
        """Let commits wait in the network; they arrive while their writer is stopped."""
        self._parts.to_nats[leader].cut()
        burst.begin(self._parts.addresses[leader])
        time.sleep(self._random.uniform(0.1, 0.5))

    def _writes_held_longer(self, model: str, leader: int, burst: Burst) -> None:
        """Let them wait until another replica has begun its term."""
        self._writes_held(model, leader, burst)

    def _answers_held(self, _: str, leader: int, burst: Burst) -> None:
        """Let commits be stored, and their writer not hear so before it is replaced."""
        self._parts.to_nats[leader].cut(there=False)
        burst.begin(self._parts.addresses[leader])
        time.sleep(self._random.uniform(0.1, 0.5))

    def _answers_unwritten(self, model: str, leader: int, burst: Burst) -> None:
        """Let commits be acknowledged, and another model's snapshot be due.

        The answers under the keys are written with the next commit, or with a snapshot.
        """
        url = self._parts.addresses[leader]
        self._leave_work(leader, model)
        burst.begin(url)
        burst.acknowledged.wait(_FIRST_SECONDS)

    def _with_challenger(self, model: str, leader: int, burst: Burst) -> None:
        url = self._parts.addresses[leader]
        for challenger in self._challengers:
            burst.also(
                partial(promote, url=url, champion=model, model=challenger, seconds=_LATE_SECONDS)
            )
        self._writes_on_their_way(model, leader, burst)

    def _leave_work(self, leader: int, model: str) -> None:
        """Send a replica what it does as soon as it goes on, and has heard of nothing yet.

        Snapshots, after which logs are purged, a rollback, which pins a state, and a promotion.
        """
        url = self._parts.addresses[leader]

        work = self._burst(model, 2)
        work.begin(url)
        late = {"url": url, "seconds": _LATE_SECONDS}
        for other in self._models:
            if other != model:
                work.also(partial(save, model=other, **late))
        work.also(partial(roll_back, model=self._undone, **late))
        for challenger, champion in self._challengers.items():
            work.also(partial(promote, champion=champion, model=challenger, **late))
        self._later(lambda: work.end(self._parts.addresses))

    def _cut_off(
        self, *, nats: bool = False, others: bool = False, there: bool = True, back: bool = True
    ) -> None:
        """Cut a leader off; it may go on answering its clients."""
        model = self._random.choice(self._models)
        leader = self._leader(model)
        cables = [*([self._parts.to_nats[leader]] if nats else [])]
        cables += self._parts.between(leader) if others else []
        burst = self._burst(model)
        urls = [self._parts.addresses[number] for number in self._others(leader)]
        burst.begin(self._parts.addresses[leader])
        time.sleep(self._random.uniform(0.0, 0.02))
        for cable in cables:
            cable.cut(there=there, back=back)
        try:
            # Requests that begin when it is cut off already.
            self._leave_work(leader, model)
            again = burst.again(urls)
            if nats and there:
                self._until_replaced([model], leader)
                for thread in again:
                    thread.join()
            time.sleep(self._random.uniform(3.0, 6.0))
        finally:
            for cable in cables:
                cable.mend()
        burst.end(self._parts.addresses)

    def _kill_leader(self) -> None:
        model = self._random.choice(self._models)
        leader = self._leader(model)
        burst = self._burst(model).begin(self._parts.addresses[leader])
        time.sleep(self._random.uniform(0.0, 0.04))
        replica = self._parts.replicas[leader]
        replica.kill()
        burst.again([self._parts.addresses[number] for number in self._others(leader)])
        self._until_replaced([model], leader)
        replica.launch()
        replica.wait()
        burst.end(self._parts.addresses)

    # ------------------------------------------------------------------------------------ NATS

    def _disturb_server(self, by: signal.Signals, *, leader: bool) -> None:
        """Kill or stop a server that keeps a model's log, under load."""
        model = self._random.choice(self._models)
        cluster = found(lambda: self._cluster(model))
        name = cluster.leader if leader else self._random.choice(cluster.followers)
        server = int(name.removeprefix("n"))
        burst = self._burst(model).begin(self._parts.addresses[self._leader(model)])
        time.sleep(self._random.uniform(0.0, 0.04))
        self._parts.nats.kill(server, by=by)
        try:
            burst.again(self._parts.addresses)
            time.sleep(self._random.uniform(3.0, 8.0))
        finally:
            if by == signal.SIGSTOP:
                self._parts.nats.kill(server, by=signal.SIGCONT)
            else:
                self._parts.nats.start_one(server)
        burst.end(self._parts.addresses)

    def _divide_servers(self) -> None:
        """Cut two of three servers off from each other.

        Replicas at the one do not hear those at the other, and may all reach the streams.
        """
        model = self._random.choice(self._models)
        one, other = self._random.sample(range(len(self._parts.nats.ports)), 2)
        burst = self._burst(model).begin(self._parts.addresses[self._leader(model)])
        self._parts.nats.divide(one, other)
        try:
            burst.again(self._parts.addresses)
            time.sleep(self._random.uniform(5.0, 20.0))
        finally:
            self._parts.nats.join()
        burst.end(self._parts.addresses)

    def _cluster(self, model: str) -> Any:
        cluster = self._recorder.cluster(self._recorder.numbers()[model])
        return cluster if cluster.leader and cluster.followers else None

    # ----------------------------------------------------------------------------------- helps

    def finish(self) -> None:
        """Wait for all that was left to replicas."""
        for thread in self._waiting:
            thread.join()

    def _later(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run)
        self._waiting.append(thread)
        thread.start()

    def _burst(self, model: str, n: int = _BURST) -> Burst:
        return Burst(self._callers, f"burst {next(self._bursts)}", model, n)

    def _others(self, number: int) -> list[int]:
        return [other for other in range(len(self._parts.replicas)) if other != number]

    def _leader(self, model: str) -> int:
        """Return the replica that leads a model, on which all agree.

        The model is asked for: one that lost its leader and its standby has no other until then.
        """
        everyone = range(len(self._parts.replicas))

        def agreed() -> list[int]:
            told = [self._parts.leads([number]).get(model) for number in everyone]
            if set(told) == {None}:
                with suppress(httpx.TransportError):
                    httpx.get(f"{self._parts.addresses[0]}/v1/models/{model}", timeout=5)
            return [told[0]] if told[0] is not None and len(set(told)) == 1 else []

        (leader,) = found(agreed)
        number: int = leader
        return number

    def _until_replaced(self, models: Sequence[str], leader: int) -> None:
        others = self._others(leader)

        def replaced() -> bool:
            leads = self._parts.leads(others)
            return all(leads.get(model) not in (None, leader) for model in models)

        found(replaced)
