"""Clients of a fleet that keep every attempt: some run all the time, bursts are at one replica."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import httpx

from tests.hard.fleet_clients import PROBE
from tests.hard.fleet_ledger import Attempt, Ledger, Request

_PATIENCE_SECONDS, _ANSWER_SECONDS, _LATE_SECONDS = 120.0, 4.0, 90.0
_REPEATED, _LARGE = 0.15, 0.01


class Caller:
    """One client with connections of its own. Used by one thread."""

    def __init__(self, ledger: Ledger, random: Random, counts: Counter[str]) -> None:
        self.ledger, self.random, self.counts = ledger, random, counts
        self._http = httpx.Client(trust_env=False, verify=False, timeout=_ANSWER_SECONDS)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(
        self, method: str, url: str, seconds: float, body: object = None, key: str | None = None
    ) -> Attempt:
        """Return the answer to a call; status 0 or -1 where there is none."""
        began = time.time()
        headers = {} if key is None else {"Idempotency-Key": key}
        status, told = 0, dict[str, Any]()
        try:
            answer = self._http.request(method, url, json=body, headers=headers, timeout=seconds)
            status, told = answer.status_code, answer.json()
        except (httpx.ConnectError, httpx.ConnectTimeout):
            status = -1
        except (httpx.TransportError, ValueError) as error:
            told = {"detail": repr(error)}
        return Attempt(url.partition("/v1")[0], began, time.time(), status, told)

    def request(self, model: str, n: int, *, keyed: bool) -> Request:
        """Return new samples for a model, which are in the ledger from now on."""
        samples = self.ledger.new_samples(n)
        rows = [[x, self.random.randrange(8), self.random.randrange(3)] for x in samples]
        body = {"x": rows, "y": [int(row[1] + row[2]) % 2 for row in rows]}
        key = f"key-{samples[0]}" if keyed else None
        made = Request(model, key, samples, body)
        self.ledger.requests.append(made)
        return made

    def attempt(self, url: str, request: Request, seconds: float = _ANSWER_SECONDS) -> Attempt:
        """Send a request once."""
        self.counts["attempts"] += 1
        to = f"{url}/v1/models/{request.model}/samples"
        made = self.call("POST", to, seconds, request.body, request.key)
        request.attempts.append(made)
        return made

    def learn(self, urls: Sequence[str], request: Request) -> bool:
        """Send a request until its outcome is known, with a key until it is acknowledged."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            made = self.attempt(self.random.choice(urls), request)
            if made.status == 200:
                return True
            if request.key is None and made.outcome != "not-learned":
                return False
            self.counts["retries"] += 1
            time.sleep(0.05)
        return False


class Callers:
    """Threads that learn, predict, save, roll back and promote at all replicas until `end`.

    models: that are learned. challengers: with the models that they follow. undone: the model
    that is rolled back. counts: what was sent and done.
    """

    def __init__(
        self,
        ledger: Ledger,
        urls: Sequence[str],
        models: Sequence[str],
        challengers: Mapping[str, str],
        undone: str,
        seed: int,
    ) -> None:
        self.counts = Counter[str]()
        self._ledger, self._urls, self._seed = ledger, list(urls), seed
        self._models, self._challengers, self._undone = list(models), challengers, undone
        self._ended = threading.Event()
        jobs: list[tuple[str, Callable[[Caller, str], None], str]] = [
            *((f"learns {model} {n}", self._learn, model) for model in models for n in range(2)),
            *((f"reads {n}", self._read, "") for n in range(2)),
            ("saves", self._save, ""),
            ("rolls back", self._roll_back, undone),
            *((f"promotes {one}", self._promote, one) for one in challengers),
        ]
        self._threads = [
            threading.Thread(target=self._guarded, args=job, name=job[0]) for job in jobs
        ]

    def begin(self) -> None:
        """Start all."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let each finish what it has begun."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def caller(self, name: str) -> Caller:
        """Return another client, which notes what it sends in the same place."""
        return Caller(self._ledger, Random(f"{self._seed} {name}"), self.counts)

    def _guarded(self, name: str, job: Callable[[Caller, str], None], model: str) -> None:
        caller = self.caller(name)
        try:
            while not self._ended.wait(caller.random.expovariate(8.0)):
                job(caller, model)
        except Exception as error:
            self._ledger.contradictions.append(f"{name}: {error!r}")
        finally:
            caller.close()

    def _learn(self, caller: Caller, model: str) -> None:
        random = caller.random
        n = 1200 if random.random() < _LARGE else random.choice([1, 1, 5, 40])
        request = caller.request(model, n, keyed=random.random() < 0.7)
        if caller.learn(self._urls, request) and request.key and random.random() < _REPEATED:
            caller.counts["repeated"] += 1
            caller.learn(self._urls, request)

    def _read(self, caller: Caller, _: str) -> None:
        model = caller.random.choice([*self._models, *self._challengers])
        url = caller.random.choice(self._urls)
        path = f"{url}/v1/models/{model}/predict"
        answer = caller.call("POST", path, _ANSWER_SECONDS, {"x": PROBE})
        if answer.status == 200:
            self._ledger.read(model, url, answer.told, answer.began, answer.ended)

    def _save(self, caller: Caller, _: str) -> None:
        if caller.random.random() < 0.7:
            return
        model = caller.random.choice(self._models)
        self._note(caller, "snapshots", save(caller, caller.random.choice(self._urls), model))

    def _roll_back(self, caller: Caller, model: str) -> None:
        if caller.random.random() < 0.8:
            return
        self._note(caller, "rollbacks", roll_back(caller, caller.random.choice(self._urls), model))

    def _promote(self, caller: Caller, model: str) -> None:
        if caller.random.random() < 0.9:
            return
        url = caller.random.choice(self._urls)
        self._note(caller, "promotions", promote(caller, url, self._challengers[model], model))

    def _note(self, caller: Caller, what: str, answer: Attempt) -> None:
        if answer.status in (200, 201):
            caller.counts[what] += 1
        elif answer.status not in (-1, 0, 404, 409, 502, 503, 504):
            self._ledger.contradictions.append(f"{what}: {answer}")


def save(caller: Caller, url: str, model: str, seconds: float = _ANSWER_SECONDS) -> Attempt:
    """Let a model save a snapshot now; what it replaces of the log is purged."""
    return caller.call("POST", f"{url}/v1/models/{model}/snapshot", seconds)


def roll_back(caller: Caller, url: str, model: str, seconds: float = _ANSWER_SECONDS) -> Attempt:
    """Let a model go back to one of its snapshots."""
    told = caller.call("GET", f"{url}/v1/models/{model}/history", seconds)
    snapshots = told.told.get("snapshots") if isinstance(told.told, dict) else told.told
    if told.status != 200 or not snapshots:
        return told
    return _roll_back_to(caller, url, model, caller.random.choice(snapshots)["sequence"], seconds)


def _roll_back_to(caller: Caller, url: str, model: str, sequence: int, seconds: float) -> Attempt:
    return caller.call("POST", f"{url}/v1/models/{model}/rollback", seconds, {"sequence": sequence})


def promote(
    caller: Caller, url: str, champion: str, model: str, seconds: float = _ANSWER_SECONDS
) -> Attempt:
    """Exchange a champion and its challenger."""
    return caller.call("POST", f"{url}/v1/models/{champion}/promote", seconds, {"model": model})


class Burst:
    """Requests with keys at one replica at the same moment, and again at the others.

    The first attempts wait for that replica, however long it is stopped; `again` sends the same
    keys to the others meanwhile, and `end` to all of them once the first attempts are answered.
    """

    def __init__(self, callers: Callers, name: str, model: str, n: int) -> None:
        self._callers, self._name, self._n = callers, name, n
        maker = callers.caller(name)
        sizes = [maker.random.choice([1, 5, 40]) for _ in range(n)]
        self.requests = [maker.request(model, size, keyed=True) for size in sizes]
        maker.close()
        self._threads = list[threading.Thread]()
        # Set with the first acknowledgement.
        self.acknowledged = threading.Event()

    def begin(self, url: str) -> "Burst":
        """Send all to a replica."""

        def first(caller: Caller, request: Request) -> None:
            if caller.attempt(url, request, _LATE_SECONDS).status == 200:
                self.acknowledged.set()

        self._start("first", first)
        return self

    def also(self, do: Callable[[Caller], object]) -> None:
        """Do something else at the same time."""

        def run() -> None:
            caller = self._callers.caller(f"{self._name} also {len(self._threads)}")
            try:
                do(caller)
            finally:
                caller.close()

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def again(self, urls: Sequence[str]) -> "list[threading.Thread]":
        """Send all again to these replicas, until they are acknowledged; return the threads."""

        def retry(caller: Caller, request: Request) -> None:
            caller.counts["retries"] += 1
            caller.learn(urls, request)

        return self._start("again", retry)

    def end(self, urls: Sequence[str]) -> None:
        """Wait for all answers, and ask once more, for the same ones."""
        for thread in list(self._threads):
            thread.join()
        for thread in self.again(urls):
            thread.join()

    def _start(
        self, what: str, do: Callable[[Caller, Request], object]
    ) -> "list[threading.Thread]":
        def run(number: int, request: Request) -> None:
            caller = self._callers.caller(f"{self._name} {what} {number}")
            try:
                do(caller, request)
            finally:
                caller.close()

        started = [
            threading.Thread(target=run, args=(number, request))
            for number, request in enumerate(self.requests)
        ]
        for thread in started:
            thread.start()
        self._threads += started
        return started
