"""A schedule of the writers of three replicas: what they are asked, one step after another.

A seed decides all of it. Nothing fails here but what another replica has done meanwhile; the
schedules of `tests.service.fleet_schedules` let messages fail, and have no writers.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.service.fleet.test_log import Replica
from tests.service.fleet.writers import Server
from tests.service.nats import NatsServers
from tests.service.streams import two_classes
from wolfstream.service.engine.queue_items import LearnRequest
from wolfstream.service.errors import NotLeader, NotYetLearned, Refusal, StorageFailed

# Learned in parts.
LARGE = two_classes(3000)
# Each step is done by a method of `WriterSchedule`, so often in proportion.
PROFILES = {
    "all": {
        **{"create": 3, "lead": 8, "lead_at_once": 3, "follow": 3, "confirm": 6, "begin": 4},
        **{"learn": 14, "begin_large": 6, "go_on": 6, "snapshot": 6, "roll_back": 3},
    },
    # Leaders that are replaced in the middle of large requests, and notice it there.
    "large": {"create": 2, "lead": 6, "confirm": 10, "begin_large": 8, "go_on": 6},
    # The same, where something else is begun before their writers look again.
    "ended": {"create": 2, "lead": 6, "confirm": 10, "begin_large": 8, "begin": 6},
    # Rollbacks beside models that others lead by then, whose last answers are not written.
    "rollbacks": {"create": 2, "lead": 3, "learn": 16, "snapshot": 6, "roll_back": 8},
}
# Those of a replica that does not seem to lead the model; the rest is for one that does.
_OF_OTHERS = frozenset({"lead", "lead_at_once", "follow"})
_NAMES, _REPLICAS = (2, 3), (2, 3)
# Schedules share a server of NATS.
_names = itertools.count()


class Broken(Exception):
    """Something that must not be; the message says what."""


@dataclass
class Truth:
    """What is true of a model. leader: that has its last term. sequence: that is durable."""

    leader: Server
    sequence: int


class WriterSchedule:
    """A seed's schedule.

    trace: what was done.
    """

    def __init__(self, nats: NatsServers, folder: Path, seed: str, profile: str) -> None:
        """Begin with replicas and no models."""
        self._random, self._seed, self._weights = Random(seed), seed, PROFILES[profile]
        self._last, *self._servers = [
            Server(Replica(nats, folder / name), folder / name)
            for name in "dabc"[: 1 + self._random.choice(_REPLICAS)]
        ]
        self._names = [f"w{next(_names)}" for _ in range(self._random.choice(_NAMES))]
        self._models = dict[str, Truth]()
        # Large requests, and the sequences that they reach.
        self._large: list[tuple[Server, LearnRequest, int]] = []
        self._keys = 0
        self.trace = list[str]()

    def close(self) -> None:
        """End everything."""
        for server in (*self._servers, self._last):
            server.close()

    def run(self, steps: int) -> None:
        """Do so many steps, and see that all is well. Raises Broken."""
        try:
            for _ in range(steps):
                (step,) = self._random.choices([*self._weights], [*self._weights.values()])
                self._do(step)
            self._end()
        except Exception as error:
            last = "\n  ".join(self.trace[-20:])
            place = f"seed {self._seed}, step {len(self.trace)}"
            raise Broken(f"{place}: {type(error).__name__}: {error}\n  {last}") from error

    def _do(self, step: str) -> None:
        server, name = self._random.choice(self._able(step))
        self.trace.append(f"{'abc'[self._servers.index(server)]} {step} {name}")
        work: Callable[[Server, str], None] = getattr(self, f"_{step}")
        work(server, name)
        for each in self._servers:
            both = [model for model in each.leading.followed if each.leading.leads(model)]
            _must(not both, f"{both} are led and followed at once")

    def _able(self, step: str) -> list[tuple[Server, str]]:
        """Return the replicas that may do a step, with the models; all of them if there is none."""
        pairs = [(server, name) for server in self._servers for name in self._names]
        if step == "create":
            return pairs
        able = [
            (server, name)
            for server, name in pairs
            if name in self._models and server.leading.leads(name) == (step not in _OF_OTHERS)
        ]
        return able or pairs

    # ------------------------------------------------------------------------------- models, terms

    def _create(self, server: Server, name: str) -> None:
        if name in self._models:
            return
        catalogue, meanwhile = server.replica.catalogue, self._random.choice(["follow", "lead"])
        add = catalogue._add

        def added(entry: Any) -> None:
            add(entry)
            with suppress(Refusal):
                asyncio.run(getattr(server.leading, meanwhile)(name))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(catalogue, "_add", added)
            server.create(name)
        self._models[name] = Truth(server, 0)

    def _lead(self, server: Server, name: str) -> None:
        server.writer.begin([])
        if name in self._models and not server.leading.leads(name):
            server.lead(name)
            self._models[name].leader = server

    def _lead_at_once(self, server: Server, name: str) -> None:
        """Have several calls lead a model, the first of which fails."""
        server.writer.begin([])
        if name not in self._models or server.leading.leads(name):
            return
        before = server.leading.takeovers
        with _failing_once(server):
            asyncio.run(_rivals(server, name))
        _must(server.leading.takeovers == before + 1, "one takeover has ended another one")
        self._models[name].leader = server

    def _follow(self, server: Server, name: str) -> None:
        asyncio.run(server.leading.follow(name))

    def _confirm(self, server: Server, name: str) -> None:
        if server.leading.leads(name):
            with self._expected(server, name):
                asyncio.run(server.leading.confirm(name))

    @contextmanager
    def _expected(self, server: Server, name: str) -> Iterator[None]:
        """Expect NotLeader exactly where another replica leads the model."""
        leads = self._models[name].leader is server
        try:
            yield
        except NotLeader:
            _must(not leads, f"the leader of {name} was refused")
        else:
            _must(leads, f"{name} was answered, and another replica leads it")

    # ------------------------------------------------------------------------------------ learning

    def _learn(self, server: Server, name: str) -> None:
        if not self._is_led_and_idle(server, name):
            return
        self._keys += 1
        n, key = self._random.randint(1, 5), self._random.choice([None, b"%d" % self._keys])
        reply, truth = server.learn(name, n, key), self._models[name]
        if truth.leader is server:
            truth.sequence += n
            _must(_sequence(reply) == truth.sequence, f"{reply}, not {truth.sequence}")
        else:
            _must(isinstance(reply, NotLeader), f"{reply} of a replaced leader")

    def _begin_large(self, server: Server, name: str) -> None:
        if not server.leading.leads(name) or server.model(name) in server.writer.busy:
            return
        request, truth = server.asked(name, LARGE), self._models[name]
        server.writer.begin([request])
        if truth.leader is server:
            truth.sequence += len(LARGE.y)
            self._large.append((server, request, truth.sequence))
        else:
            _must(isinstance(server.reply_to(request), NotLeader), "a replaced leader has learned")

    def _go_on(self, server: Server, _: str) -> None:
        """Learn on; any term may have ended just after the writer has looked."""
        if server.writer.busy:
            part = self._random.choice([server.writer, server.writer._learning])
            part.go_on()

    def _begin(self, server: Server, _: str) -> None:
        server.writer.begin([])
        ended = [model.name for model in server.writer.busy if not model.led]
        _must(not ended, f"{ended} have ended, and are busy")

    # ----------------------------------------------------------------------------------- snapshots

    def _snapshot(self, server: Server, name: str) -> None:
        if not self._is_led_and_idle(server, name):
            return
        truth = self._models[name]
        if truth.leader is not server:
            with suppress(Refusal):
                server.snapshot(name)
            return
        _must(server.snapshot(name) == truth.sequence, "a snapshot is of another sequence")

    def _roll_back(self, server: Server, name: str) -> None:
        if not self._is_led_and_idle(server, name) or self._models[name].leader is not server:
            return
        model = server.model(name)
        kept = server.replica.snapshots.sequences(model.id)
        if kept:
            told = server.writer.roll_back(model, self._random.choice(kept))
            _must(
                told["rolled_back"]["at"] == self._models[name].sequence,
                "a rollback loses the sequence",
            )

    def _is_led_and_idle(self, server: Server, name: str) -> bool:
        """Work off what has begun for a model, as the queue does; return whether it is led then."""
        while any(model.name == name for model in server.writer.busy):
            server.writer.go_on()
        server.writer.begin([])
        return server.leading.leads(name)

    def _end(self) -> None:
        """Let a replica lead each model that has heard of none, and compare all that it has."""
        for server in self._servers:
            while server.writer.busy:
                server.writer.go_on()
            server.writer.begin([])
        for server, request, sequence in self._large:
            reply = server.reply_to(request)
            answered = isinstance(reply, NotYetLearned) or _sequence(reply) == sequence
            _must(answered, f"{reply}, not {sequence}")
        for name, truth in self._models.items():
            self.trace.append(f"d lead {name}")
            model = self._last.lead(name)
            _must(not model.broken, model.broken)
            _must(model.published.sequence == truth.sequence, f"{name} has lost samples")
            faults = self._last.replica.journal.reader(model.id).faults
            _must(not faults, f"{name}: {faults}")
            self._last.writer.delete(model)  # the logs of many schedules share few streams


def _must(true: bool, otherwise: str) -> None:
    if not true:
        raise Broken(otherwise)


def _sequence(reply: Any) -> int | None:
    return reply["sequence"] if isinstance(reply, dict) else None


@contextmanager
def _failing_once(server: Server) -> Iterator[None]:
    """Let the next look-up of a name fail, and all of them take a moment."""
    catalogue, failures = server.replica.catalogue, [StorageFailed("no answer")]
    find = catalogue.find

    def find_slowly(name: str) -> Any:
        time.sleep(0.01)
        if failures:
            raise failures.pop()
        return find(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "find", find_slowly)
        yield


async def _rivals(server: Server, name: str) -> None:
    first, second = (asyncio.ensure_future(server.leading.lead(name)) for _ in range(2))
    with suppress(StorageFailed):
        await first
    third = asyncio.ensure_future(server.leading.lead(name))
    _must(await asyncio.gather(second, third) == [True, True], f"{name} is not led")
