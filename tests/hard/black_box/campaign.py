"""A campaign: a server that is ended at random moments again and again, and its users."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

from tests.hard.black_box.calls import call
from tests.hard.black_box.learners import KeyedStream, KeylessStream, Poster
from tests.hard.black_box.owner import Owner
from tests.hard.black_box.parties import FitReader, Historian, Labels, Party, Reader, Refitter
from tests.hard.black_box.record import Record
from tests.service.process import ServerProcess

SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "declared": {
        "classes": ["no", True, 7],
        "prepare": None,
        "adaptive": None,
        "working_set": {"max_size": 40},
        "asset": {"dimension": 16},
    },
    "numbers": {
        "task": "regression",
        "prepare": None,
        "adaptive": None,
        "working_set": None,
        "asset": {"dimension": 16},
        "semiparametric": {"window": 60},
    },
}
_READY_SECONDS = 300


def _sign(value: float) -> Any:
    return int(value > 0)


def _declared(value: float) -> Any:
    return "no" if value < -0.5 else 7 if value > 0.5 else True


def _number(value: float) -> Any:
    return value


def _parties(seed: str) -> dict[str, Callable[[Record], list[Party]]]:
    """Who uses each of the models."""

    def of_both(record: Record, labels: Labels) -> list[Party]:
        return [
            Poster(record, seed, labels, ("samples", "asset")),
            KeyedStream(record, seed, labels, packed=record.name == "plain"),
            KeylessStream(record, seed, labels, packed=record.name != "plain"),
            Reader(record, seed),
            Historian(record, seed),
        ]

    return {
        "plain": lambda record: of_both(record, _sign),
        "declared": lambda record: of_both(record, _declared),
        "numbers": lambda record: [
            Poster(record, seed, _number, ("asset",)),
            Reader(record, seed),
            Refitter(record, seed),
            FitReader(record, seed),
        ],
    }


class Campaign:
    """The models of one server and their users.

    owners: models that are deleted and created again, each by its only user.
    """

    def __init__(self, server: ServerProcess, seed: str, owners: int = 2) -> None:
        self._server, self._random = server, Random(seed)
        self._seed = seed
        self.owners = [Owner(f"m{k}", f"{seed}:{k}") for k in range(owners)]
        self.records: list[Record] = []
        self._parties: list[Party] = []

    def begin(self) -> None:
        """Start the server and create the models."""
        self._server.start()
        parties = _parties(self._seed)
        for name, spec in SPECS.items():
            made = call(self._server.url, "PUT", f"/v1/models/{name}", spec)
            labels = None if name == "numbers" else spec.get("classes", [0, 1])
            self.records.append(Record(name, made["epoch"], labels))
            self._parties += parties[name](self.records[-1])

    def live(self, end: Callable[[], None]) -> None:
        """Let all parties work until `end` ends the server at a random moment."""
        running = Together(self._server.url, [*self.owners, *self._parties])
        time.sleep(self._random.uniform(0.05, 1.5))
        end()
        running.join()

    def start_again(self) -> None:
        """Start the server, which must know at least what it acknowledged before."""
        self._server.start()
        for record in self.records:
            record.begin_life(call(self._server.url, "GET", record.path)["sequence"])

    def settle(self) -> None:
        """Send again what has no answer, and check everything."""
        everybody = [*self.owners, *self._parties]
        for one in everybody:
            one.calm = True
        Together(self._server.url, everybody).join()
        for record in self.records:
            state = call(self._server.url, "GET", record.path)
            assert state["status"] == "ok"
            record.check(state["sequence"], state["epoch"])
        for owner in self.owners:
            if owner.lives:
                owner.check(self._server.url)

    def figures(self) -> dict[str, int]:
        """Return what there was, for the report."""
        total: dict[str, int] = defaultdict(int)
        for one in (*self.records, *self.owners):
            for name, count in one.counts.items():
                total[name.replace(" ", "_")] += count
        return dict(sorted(total.items()))


class Together:
    """Parties that work on threads; the first failure is raised at the end."""

    def __init__(self, url: str, parties: list[Any]) -> None:
        self._failures: list[BaseException] = []
        self._running = [threading.Thread(target=self._run, args=[one, url]) for one in parties]
        for thread in self._running:
            thread.start()

    def _run(self, party: Any, url: str) -> None:
        try:
            party.run(url)
        except BaseException as error:
            self._failures.append(error)

    def join(self) -> None:
        """Wait for all."""
        for thread in self._running:
            thread.join(_READY_SECONDS)
            assert not thread.is_alive(), "somebody waits for an answer for ever"
        if self._failures:
            raise self._failures[0]
