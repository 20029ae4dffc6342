"""A model's log as a fleet's streams have it, and what clients were answered of its samples.

It reads what `tests.hard.fleet_recorder` has recorded, and shares no code with the product. A
sample is known by its first number, which no other has.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.hard.fleet_clients import Sent
from tests.simulation.log_reader import (
    CATALOGUE,
    Commit,
    Row,
    first_numbers,
    has_samples,
    key_of,
    logs,
)
from tests.simulation.log_reader import Log as Recorded
from tests.simulation.stream_link import Archived

# Rows with which the term of another writer begins.
BEGIN_A_TERM = frozenset({"created", "epoch"})
# Commits before and after a fault that are printed, and acknowledgements.
_SHOWN = 5


class RecordedModel(NamedTuple):
    """A model in the catalogue, and all messages of its log.

    spec: as it was stored. epoch: its first one. follows: the number of its champion, if any.
    """

    number: int
    name: str
    spec: dict[str, Any]
    epoch: str
    follows: int | None
    log: Recorded

    @property
    def rows(self) -> list[Row]:
        """The rows of its log, in their order."""
        return [row for commit in self.log.commits for row in commit.rows]


def recorded_models(archive: Sequence[Archived]) -> list[RecordedModel]:
    """Return the models that exist at the end of what was recorded, oldest first."""
    bodies = {
        entry.message.subject: entry.message.body
        for entry in archive
        if entry.message.subject.startswith(CATALOGUE)
    }
    there, recorded = [json.loads(body) for body in bodies.values() if body], logs(archive)
    models = [
        RecordedModel(
            model["number"],
            model["name"],
            model["spec"],
            model["epoch"],
            model["follows"],
            recorded.get(model["number"], Recorded(model["number"])),
        )
        for model in there
    ]
    return sorted(models, key=lambda model: model.number)


class Log:
    """What a model's log says, from its first message on.

    samples: the first numbers, in their order. terms: the sequence and the epoch of each.
    rollbacks: their records. reached: the sequence at its end. lines: what is printed of each
    commit, and the sequence that it reached.
    """

    def __init__(self, model: RecordedModel) -> None:
        self.samples = list[float]()
        self.terms = [(0, model.epoch)]
        self.rollbacks = list[dict[str, Any]]()
        self.faults = list(model.log.faults)
        self.reached = 0
        self.lines = list[tuple[int, str]]()
        self._writer, self._last = b"", 0
        # Key -> the sequence at which it was committed.
        self._keys = dict[bytes | None, int]()
        wrong = list[tuple[int, str]]()
        for commit in model.log.commits:
            wrong += [(len(self.lines), fault) for fault in self._take(model.name, commit)]
            rows = ", ".join(f"{row.kind} {row.sequence}" for row in commit.rows)
            line = f"message {commit.first} after {commit.previous} by {commit.writer.hex()} in "
            self.lines.append((self.reached, f"{line}{self.terms[-1][1]}: {rows}"))
        self.faults += [f"{fault}\n{self._around(place)}" for place, fault in wrong]

    def around(self, sequence: int) -> str:
        """Return the commits around the one that reached a sequence, each with its writer."""
        places = (place for place, (reached, _) in enumerate(self.lines) if reached >= sequence)
        return self._around(next(places, len(self.lines) - 1))

    def _around(self, place: int) -> str:
        first = max(place - _SHOWN, 0)
        shown = enumerate(self.lines[first : place + _SHOWN + 1], first)
        return "\n".join(f"  {'>' if at == place else ' '} {line}" for at, (_, line) in shown)

    def _take(self, name: str, commit: Commit) -> Iterator[str]:
        """Take a commit, and yield what is wrong with it."""
        begins = bool(commit.rows) and commit.rows[0].kind in BEGIN_A_TERM
        if self._writer not in (b"", commit.writer) and not begins:
            yield f"{name}: message {commit.first} is of another leader than its term"
        if commit.previous != self._last:
            yield f"{name}: message {commit.first} follows {commit.previous}, not {self._last}"
        self._writer, self._last = commit.writer, commit.last
        for row in commit.rows:
            yield from self._take_row(name, row)

    def _take_row(self, name: str, row: Row) -> Iterator[str]:
        if has_samples(row):
            if row.sequence - row.samples != len(self.samples):
                yield f"{name}: entry {row.sequence} follows {len(self.samples)}"
            self.samples += first_numbers(row)
            self.reached = row.sequence
        elif row.kind == "rollback":
            self.rollbacks.append(json.loads(row.record))
            learned = self.rollbacks[-1]["learned"]  # what comes after it is not, nor its keys
            self._keys = {key: at for key, at in self._keys.items() if at <= learned}
            self.terms.append((row.sequence, self.rollbacks[-1]["epoch"]))
            self.reached = row.sequence
        elif row.kind == "epoch":
            if row.sequence != self.reached:
                yield f"{name}: a term at {row.sequence} of {self.reached}"
            self.terms.append((row.sequence, str(json.loads(row.record)["epoch"])))
        elif row.kind == "key":
            before = self._keys.setdefault(key_of(row), row.sequence)
            if before != row.sequence:
                yield f"{name}: a key is at {row.sequence}, and at {before} before"

    def epochs_at(self, sequence: int) -> set[str]:
        """The epochs in which a sequence may have been answered: its own, and those begun there."""
        before = [epoch for at, epoch in self.terms if at < sequence]
        return {epoch for at, epoch in self.terms if at == sequence} | set(before[-1:])


def lost_or_twice(name: str, log: Log, sent: Sequence[Sent]) -> list[str]:
    """Compare a log with the requests of its samples, and their answers.

    With each fault comes what is stored around it, and what was acknowledged.
    """
    faults = list[tuple[int, str]]()
    places = defaultdict[float, list[int]](list)
    for place, sample in enumerate(log.samples):
        places[sample].append(place)
    for request in sent:
        at = [places.get(sample, []) for sample in request.samples]
        if any(len(stored) > 1 for stored in at):
            fault = f"{name}: {request.key or 'a request'} was learned twice: {at}"
            faults.append((max(place for stored in at for place in stored) + 1, fault))
        elif request.sequence is not None:
            begin = request.sequence - len(request.samples)
            if at != [[place] for place in range(begin, request.sequence)]:
                fault = f"{name}: what was acknowledged at {request.sequence} is at {at}"
                faults.append((request.sequence, fault))
            elif request.epoch not in log.epochs_at(request.sequence):
                fault = (
                    f"{name}: sequence {request.sequence} was answered in epoch {request.epoch}, "
                    f"and stands in {log.epochs_at(request.sequence)}"
                )
                faults.append((request.sequence, fault))
        elif len({len(stored) for stored in at}) > 1:
            fault = f"{name}: a part of {request.key or 'a request'} was learned: {at}"
            faults.append((next(stored[0] + 1 for stored in at if stored), fault))
    known = {sample for request in sent for sample in request.samples}
    if strangers := set(log.samples) - known:
        fault = f"{name}: nobody has sent {sorted(strangers)[:5]}"
        faults.append((places[min(strangers)][0] + 1, fault))
    return [f"{fault}\n{log.around(at)}\n{_answered(at, sent)}" for at, fault in faults]


def _answered(sequence: int, sent: Sequence[Sent]) -> str:
    """Return what was acknowledged around a sequence, a line for each request."""
    known = sorted(
        (request.sequence, request.epoch, len(request.samples), request.key)
        for request in sent
        if request.sequence is not None
    )
    at = sum(last < sequence for last, *_ in known)
    return "\n".join(
        f"    acknowledged: {n} samples up to {last} in {epoch}, {key or 'without a key'}"
        for last, epoch, n, key in known[max(at - _SHOWN, 0) : at + _SHOWN]
    )
