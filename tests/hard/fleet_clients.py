"""Clients of a fleet, which keep their requests and answers."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import httpx

PROBE = [[0.5, float(i), float(i % 3)] for i in range(8)]
_PATIENCE_SECONDS, _ANSWER_SECONDS = 120.0, 30.0
# The part of the requests with a key that are sent again after their answers.
_REPEATED = 0.2


class Sent(NamedTuple):
    """A request of samples, and its final answer: 200, or that the outcome is unknown.

    sequence and epoch are None without an answer of 200.
    """

    model: str
    key: str | None
    samples: tuple[float, ...]
    sequence: int | None
    epoch: str | None


class Read(NamedTuple):
    """An answered prediction of the probe."""

    model: str
    sequence: int
    epoch: str
    decision: Any


class Promoted(NamedTuple):
    """An answered promotion: the champion, and where and as what it goes on."""

    model: str
    sequence: int
    epoch: str


class Longest(NamedTuple):
    """The request that took the longest: when it began, and what was answered before the last."""

    seconds: float
    began: float
    refused: list[str]


class Clients:
    """Threads that learn, predict and promote through any replica, and keep the answers.

    challengers: the models that follow others, with these.
    """

    def __init__(
        self, urls: Sequence[str], models: Sequence[str], challengers: Mapping[str, str], seed: int
    ) -> None:
        self.sent, self.read, self.promoted = list[Sent](), list[Read](), list[Promoted]()
        self._champions = challengers
        self.statuses = Counter[int]()
        self.longest = Longest(0.0, 0.0, [])
        self.failures = list[str]()
        self.repeated = 0
        self._urls, self._seed = urls, seed
        self._numbers = itertools.count(1)
        self._ended = threading.Event()
        jobs = [(self._learn, model, n) for model in models for n in range(2)]
        jobs += [(self._predict, model, 9) for model in (*models, *challengers)]
        jobs += [(self._promote, model, 8) for model in challengers]
        self._threads = [threading.Thread(target=self._guarded, args=job) for job in jobs]

    def begin(self) -> None:
        """Start all."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let each finish its request, and wait for them."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, job: Callable[[str, Random], None], model: str, number: int) -> None:
        try:
            job(model, Random(f"{self._seed} {model} {number}"))
        except Exception as error:
            self.failures.append(f"{model}: {error!r}")

    def _learn(self, model: str, random: Random) -> None:
        while not self._ended.is_set():
            n = random.choice([1, 5, 40])
            samples = tuple(next(self._numbers) / 1024 for _ in range(n))
            key = f"key-{samples[0]}" if random.random() < 0.5 else None
            rows = [[x, random.randrange(8), random.randrange(3)] for x in samples]
            body = {"x": rows, "y": [int(row[1] + row[2]) % 2 for row in rows]}
            began, refused = time.monotonic(), list[str]()
            answer = self._send(model, "samples", body, key, random, refused)
            self.longest = max(self.longest, Longest(time.monotonic() - began, began, refused[-5:]))
            told = answer.json() if answer is not None else {}
            self.sent.append(Sent(model, key, samples, told.get("sequence"), told.get("epoch")))
            if key is not None and random.random() < _REPEATED:
                self._repeat(model, body, key, random, told)

    def _repeat(
        self, model: str, body: object, key: str, random: Random, told: dict[str, Any]
    ) -> None:
        """Send an answered request once more; its first answer is the answer again."""
        again = self._send(model, "samples", body, key, random, [])
        assert again is not None
        self.repeated += 1
        found = again.json()
        other = {
            name: (told.get(name), found.get(name))
            for name in {*told, *found}
            if told.get(name) != found.get(name)
        }
        if other:
            self.failures.append(f"{model}: {key} was answered otherwise later: {other}")

    def _send(
        self,
        model: str,
        call: str,
        body: object,
        key: str | None,
        random: Random,
        told: list[str],
    ) -> httpx.Response | None:
        """Return the answer of 200; with a key it is asked for until it comes.

        told: takes all that was answered before.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        headers = {} if key is None else {"Idempotency-Key": key}
        while time.monotonic() < deadline:
            url = f"{random.choice(self._urls)}/v1/models/{model}/{call}"
            try:
                answer = httpx.post(url, json=body, headers=headers, timeout=_ANSWER_SECONDS)
            except httpx.TransportError as error:
                self.statuses[0] += 1
                told.append(f"{url}: {error!r}")
                if key is None and not isinstance(error, httpx.ConnectError):
                    return None
            else:
                self.statuses[answer.status_code] += 1
                if answer.status_code == 200:
                    return answer
                told.append(f"{url}: {answer.text}")
                if _may_be_learned(answer) and key is None:
                    return None
            time.sleep(0.05)
        raise TimeoutError(f"no answer within {_PATIENCE_SECONDS} s: {told[-5:]}")

    def _promote(self, model: str, random: Random) -> None:
        """Exchange a challenger and its champion now and then."""
        champion = self._champions[model]
        while not self._ended.wait(random.uniform(0.5, 5.0)):
            url = f"{random.choice(self._urls)}/v1/models/{champion}/promote"
            try:
                answer = httpx.post(url, json={"model": model}, timeout=_ANSWER_SECONDS)
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
                told = answer.json()
                self.promoted.append(Promoted(champion, told["sequence"], told["epoch"]))
            elif answer.status_code not in (502, 503, 504):
                self.failures.append(f"{url}: {answer.text}")

    def _predict(self, model: str, random: Random) -> None:
        while not self._ended.is_set():
            try:
                url = f"{random.choice(self._urls)}/v1/models/{model}/predict"
                answer = httpx.post(url, json={"x": PROBE}, timeout=_ANSWER_SECONDS)
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
                told = answer.json()
                self.read.append(Read(model, told["sequence"], told["epoch"], told["decision"]))
            time.sleep(0.02)


def _may_be_learned(answer: httpx.Response) -> bool:
    """Return whether an answer, which is not 200, leaves open what became of its request.

    The balancer's own answers have no JSON: 503 where it has sent nothing to anybody.
    """
    if answer.headers["content-type"] != "application/problem+json":
        assert answer.status_code in (502, 503, 504), answer.text
        return answer.status_code != 503
    assert answer.status_code == 503, answer.text
    return bool(answer.json()["type"] == "urn:wolfstream:in-doubt")
