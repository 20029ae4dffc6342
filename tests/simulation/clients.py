"""Clients of a simulated fleet: coroutines that learn, read and change models, and take notes."""

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from tests.simulation.kernel import Kernel
from tests.simulation.network import Broken, Network, NotConnected
from tests.simulation.records import Deleted, Learned, Predicted, Record, Reply
from tests.simulation.specs import FOLLOWER, LEADER

# Models: one for plain learning, one whose rows wait for labels, one that is rolled back, one that
# is deleted and made again, and one with a challenger.
PLAIN, LABELLED, ROLLED_BACK, REMADE, CHAMPION, CHALLENGER = (
    "plain",
    "labelled",
    "rolled-back",
    "remade",
    "champion",
    "challenger",
)
SPECS: dict[str, dict[str, Any]] = {
    **dict.fromkeys((PLAIN, LABELLED, ROLLED_BACK, REMADE, CHAMPION), LEADER),
    CHALLENGER: FOLLOWER | {"follows": CHAMPION},
}
# The longest time until a call is answered once nothing fails any more.
PATIENCE_SECONDS = 120.0
_ANSWER_SECONDS, _PAUSE_SECONDS = 30.0, 0.3
_LARGE, _MANY = 0.01, 1500
# A seed has so many of the models at most, besides the challenger: what they do meets more often.
_MOST_MODELS = 3


class Clients:
    """All clients, on one loop, until `end`. pace: the mean time between two calls of a client."""

    def __init__(
        self, kernel: Kernel, network: Network, urls: Sequence[str], seed: object, pace: float
    ) -> None:
        self.record = Record()
        self.busy: dict[str, float] = {}  # client -> when its present call began
        self._kernel, self._network, self._urls = kernel, network, urls
        self._seed, self._pace, self._ended = seed, pace, False
        self._numbers = itertools.count(1)
        self.running = 1  # clients that have not ended
        self.models = _some_models(Random(f"{seed} models"))

    def run(self) -> None:
        """Run all clients until they end; on a thread of theirs."""
        asyncio.run(self._run())

    def end(self) -> None:
        """Let each client finish what it has begun."""
        self._ended = True

    async def _run(self) -> None:
        learning = [name for name in self.models if name != CHALLENGER]
        jobs: list[tuple[str, Callable[[Client], Coroutine[Any, Any, None]]]] = [
            *[(f"learns {name} {n}", _learning(name)) for name in learning for n in range(2)],
            *[(f"reads {name}", _reading(name)) for name in self.models],
            ("snapshots", _saving),
            *[(job.__name__.strip("_"), job) for name, job in _JOBS.items() if name in self.models],
        ]
        self.running = len(jobs)
        await Client(self, "makes all", Random(f"{self._seed} makes")).make_models()
        await asyncio.gather(*(self._guarded(name, job) for name, job in jobs))

    async def _guarded(
        self, name: str, job: "Callable[[Client], Coroutine[Any, Any, None]]"
    ) -> None:
        client = Client(self, name, Random(f"{self._seed} {name}"))
        try:
            while not self._ended:
                await client.pause(self._pace)
                await job(client)
        finally:
            self.running -= 1

    def new_samples(self, n: int) -> list[float]:
        """Return first numbers that no row has had."""
        return [next(self._numbers) / 1024 for _ in range(n)]

    async def ask(
        self,
        client: str,
        url: str,
        method: str,
        path: str,
        body: object = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Reply:
        """Return the answer to a call at one replica."""
        content = b"" if body is None else json.dumps(body).encode()
        given = [*headers, ("content-type", "application/json")] if content else headers
        self.busy.setdefault(client, self._kernel.now)
        try:
            answer = await self._network.call(
                method, f"{url}{path}", given, content, _ANSWER_SECONDS
            )
        except NotConnected:
            reply = Reply(-1, {})
        except (Broken, TimeoutError):
            reply = Reply(0, {})
        else:
            told = json.loads(answer.body) if answer.body else {}
            reply = Reply(answer.status, told)
        call = path.rpartition("/")[2] if path.count("/") > 3 else "model"
        self.record.count(f"{method} {call} {reply.status}")
        self._kernel.note("reply", client, method, path, reply.status)
        if reply.status in (421, 500):
            self.record.contradictions.append(f"{client}: {method} {path}: {reply}")
        return reply

    @property
    def now(self) -> float:
        """Return the time."""
        return self._kernel.now

    @property
    def urls(self) -> Sequence[str]:
        """Return the addresses of all replicas."""
        return self._urls

    @property
    def ended(self) -> bool:
        """Return whether clients begin nothing more."""
        return self._ended


class Client:
    """One client, which has one call at a time. model: whose answers it compares."""

    def __init__(self, of: Clients, name: str, random: Random) -> None:
        self.of, self.name, self.random = of, name, random
        # The replica that is asked next, and the one that was asked last.
        self._url = self._asked = random.choice(of.urls)
        # (replica, model) -> (life, sequence) of its last prediction.
        self._predicted: dict[tuple[str, str], tuple[str, int]] = {}
        # model -> (epoch, sequence) of the last acknowledgement.
        self.acknowledged: dict[str, tuple[str, int]] = {}
        # Whether it has made a model anew, with no call since that might delete that one.
        self.has_made = False

    async def pause(self, seconds: float) -> None:
        """Wait for some time around a mean."""
        await asyncio.sleep(self.random.expovariate(1 / seconds))

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Ask one of the replicas, mostly the same one."""
        if self.random.random() < 0.3:
            self._url = self.random.choice(self.of.urls)
        self._asked = self._url
        given = [(name.replace("_", "-"), value) for name, value in headers.items()]
        reply = await self.of.ask(self.name, self._url, method, path, body, given)
        self.of.busy.pop(self.name, None)
        if reply.status <= 0:
            self._url = self.random.choice(self.of.urls)
        return reply

    async def ask_until_done(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> Reply:
        """Ask again and again, until the answer is final."""
        began = self.of.now
        while True:
            reply = await self.ask(method, path, body, **headers)
            if reply.status > 0 and reply.status != 503:
                break
            self.of.busy[self.name] = began
            await self.pause(_PAUSE_SECONDS)
        self.of.busy.pop(self.name, None)
        self.of.record.slowest = max(self.of.record.slowest, self.of.now - began)
        return reply

    async def make_models(self) -> None:
        """Make all models, one after another."""
        for name in self.of.models:
            await self.ask_until_done("PUT", f"/v1/models/{name}", SPECS[name])

    async def make(self, model: str) -> None:
        """Make a model if it is not there."""
        reply = await self.ask_until_done("PUT", f"/v1/models/{model}", SPECS[model])
        self.has_made = reply.status == 201

    def contradict(self, what: str) -> None:
        """Note an answer that contradicts another one."""
        self.of.record.contradictions.append(f"{self.name} at {self.of.now:.3f}: {what}")

    def body(self, samples: Sequence[float]) -> dict[str, Any]:
        """Return samples with these first numbers."""
        rows = [[x, self.random.randrange(8), self.random.randrange(3)] for x in samples]
        return {"x": rows, "y": [int(row[1] + row[2]) % 2 for row in rows]}

    async def learn(self, model: str) -> None:
        """Learn new samples, with a key or without."""
        n = _MANY if self.random.random() < _LARGE else self.random.choice([1, 1, 2, 5])
        samples = self.of.new_samples(n)
        key = f"key-{samples[0]}" if self.random.random() < 0.6 else None
        body = self.body(samples)
        learned = Learned(self.name, model, key, samples, self.of.now)
        self.of.record.learned.append(learned)
        headers = {} if key is None else {"idempotency_key": key}
        while True:
            reply = await self.ask("POST", f"/v1/models/{model}/asset", body, **headers)
            learned.outcomes.append(reply.outcome)
            again = reply.outcome == "not-learned" or (key is not None and reply.status in (0, 503))
            if reply.is_success or not again or reply.status in (404, 410, 412):
                break
            if key is None and self.random.random() < 0.7:
                break
            self.of.busy[self.name] = learned.began
            await self.pause(_PAUSE_SECONDS)
        self.of.busy.pop(self.name, None)
        learned.ended = self.of.now
        if reply.is_success:
            learned.sequence, learned.epoch = reply.told["sequence"], reply.told["epoch"]
            self.acknowledged[model] = learned.epoch, reply.told["sequence"]
            if key is not None and self.random.random() < 0.2:
                await self._repeat(model, body, key, reply)
        elif reply.status not in (0, -1, 404, 503):
            self.contradict(f"learning {model}: {reply}")

    async def _repeat(self, model: str, body: object, key: str, first: Reply) -> None:
        await self.pause(2.0)
        path = f"/v1/models/{model}/asset"
        again = await self.ask_until_done("POST", path, body, idempotency_key=key)
        names = ("sequence", "epoch", "learned", "results")
        if model == REMADE and not again.is_success:
            return
        told = {name: (first.told.get(name), again.told.get(name)) for name in names}
        other = {name: both for name, both in told.items() if both[0] != both[1]}
        if other and not (model == REMADE and _life(first.told) != _life(again.told)):
            self.contradict(f"{model}: {key} was answered otherwise later: {other}, {again.status}")

    async def read(self, model: str) -> None:
        """Describe a model, or predict; no answer tells less than what was acknowledged."""
        if self.random.random() < 0.5:
            asked, rows = self.of.now, {"x": [[0.5, 1.0, 2.0]]}
            reply = await self.ask("POST", f"/v1/models/{model}/predict", rows)
            if reply.is_success:
                state = reply.told["epoch"], reply.told["sequence"]
                self.of.record.predicted.append(Predicted(self.name, model, *state, asked))
                self.check_goes_on(model, reply)
            return
        reply = await self.ask("GET", f"/v1/models/{model}")
        if not reply.is_success:
            return
        if reply.told["status"] != "ok":
            self.contradict(f"{model} is {reply.told['status']}: {reply.told.get('notice')}")
        self.check_told(model, reply)

    def check_goes_on(self, model: str, reply: Reply) -> None:
        """Compare a prediction with the one before by the same replica."""
        told, life = reply.told, _life(reply.told)
        before_life, before = self._predicted.get((self._asked, model), ("", 0))
        if life == before_life and told["sequence"] < before:
            self.contradict(
                f"{self._asked} predicts with {model} at {told['epoch']}:{told['sequence']} after "
                f"{before}"
            )
        self._predicted[self._asked, model] = life, told["sequence"]

    def check_told(self, model: str, reply: Reply) -> None:
        """Compare a description with what this client was told before."""
        epoch, sequence = self.acknowledged.get(model, ("", 0))
        if _life(reply.told) == epoch.partition(".")[0] and reply.told["sequence"] < sequence:
            self.contradict(
                f"{model} is at {reply.told['sequence']} in {reply.told['epoch']}, after "
                f"{sequence} in {epoch} was acknowledged to this client"
            )


def _life(told: dict[str, Any]) -> str:
    return str(told.get("epoch", "")).partition(".")[0]


def _learning(model: str) -> Callable[[Client], Coroutine[Any, Any, None]]:
    async def work(client: Client) -> None:
        await client.learn(model)
        if client.random.random() < 0.2:
            reply = await client.ask("GET", f"/v1/models/{model}")
            if reply.is_success:
                client.check_told(model, reply)

    return work


def _reading(model: str) -> Callable[[Client], Coroutine[Any, Any, None]]:
    return lambda client: client.read(model)


async def _labelling(client: Client) -> None:
    """Predict rows that wait for labels, send these later, and again."""
    samples = client.of.new_samples(2)
    rows, ids = client.body(samples), [f"id-{x}" for x in samples]
    path = f"/v1/models/{LABELLED}"
    reply = await client.ask("POST", f"{path}/predict", {"x": rows["x"], "ids": ids})
    if not reply.is_success:
        return
    await client.pause(2.0)
    learned = Learned(client.name, LABELLED, None, samples, client.of.now)
    client.of.record.learned.append(learned)
    for again in range(2):
        reply = await client.ask_until_done("POST", f"{path}/labels", {"ids": ids, "y": rows["y"]})
        if not reply.is_success:
            client.contradict(f"labels: {reply}")
            return
        statuses = set(reply.told["results"]["status"])
        expected = {"replayed"} if again else {"learned", "replayed"}
        if not statuses <= expected:
            client.contradict(f"labels of {ids}, whose rows wait, are {statuses}: {reply.told}")
            return
        learned.outcomes.append("learned")
        if client.random.random() < 0.7:
            return


async def _saving(client: Client) -> None:
    await client.pause(3.0)
    model = client.random.choice(client.of.models)
    await client.ask("POST", f"/v1/models/{model}/snapshot")


async def _rolling_back(client: Client) -> None:
    await client.pause(6.0)
    history = await client.ask("GET", f"/v1/models/{ROLLED_BACK}/history")
    if history.is_success and (known := history.told["snapshots"]):
        sequence = client.random.choice(known)["sequence"]
        await client.ask("POST", f"/v1/models/{ROLLED_BACK}/rollback", {"sequence": sequence})


async def _remaking(client: Client) -> None:
    """Delete a model in a state that was just read, and make it again."""
    await client.pause(4.0)
    reply = await client.ask("GET", f"/v1/models/{REMADE}")
    if reply.status == 404 and client.has_made:
        client.contradict(
            f"{REMADE} is gone, which was made anew and which nobody has deleted since"
        )
    if not reply.is_success:
        await client.make(REMADE)
        return
    epoch, sequence, began = reply.told["epoch"], reply.told["sequence"], client.of.now
    path = f"/v1/models/{REMADE}"
    deleted = await client.ask("DELETE", path, if_match=f'"{epoch}:{sequence}"')
    if deleted.status == 204:
        record = Deleted(REMADE, epoch, sequence, began, client.of.now)
        client.of.record.deleted.append(record)
    client.has_made = False
    await client.make(REMADE)


async def _promoting(client: Client) -> None:
    await client.pause(5.0)
    path = f"/v1/models/{CHAMPION}/promote"
    await client.ask("POST", path, {"model": CHALLENGER})


# What is done to one model alone.
_JOBS: dict[str, Callable[[Client], Coroutine[Any, Any, None]]] = {
    LABELLED: _labelling,
    ROLLED_BACK: _rolling_back,
    REMADE: _remaking,
    CHALLENGER: _promoting,
}


def _some_models(random: Random) -> list[str]:
    """Return the models of a seed; a challenger comes with its champion."""
    independent = [name for name in SPECS if name != CHALLENGER]
    chosen = random.sample(independent, random.randint(1, _MOST_MODELS))
    return [*chosen, CHALLENGER] if CHAMPION in chosen else chosen
