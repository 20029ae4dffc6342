"""What clients were promised, and whether the files keep it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from tests.service.schedules.log_file import (
    LogRow,
    is_pinned,
    key_in,
    labelled_in,
    numbers_of,
    predicted_in,
    read_snapshots,
    waiting_in,
)


class Broken(AssertionError):
    """A promise is broken, or an invariant of the log."""


@dataclass
class Life:
    """A model from its creation to its deletion, as the log has had it so far.

    begin: the sequence that it began with. samples: sequence -> the sample's number.
    acknowledged: the part of it that a client was told. epochs: (sequence, epoch) as they came.
    told_epoch: the last one that a client was told of. keys: key -> sequence. answers: sequence ->
    the first answer. waiting: ids of predicted rows that must take their labels, oldest first.
    labelled: ids that were labelled since the last rollback. void: sequences of samples that broke
    it, before a rollback. told: clients know that it exists.
    """

    number: int
    name: str
    champion: int | None
    begin: int = 0
    samples: dict[int, int] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    epochs: list[tuple[int, str]] = field(default_factory=list)
    told_epoch: str = ""
    keys: dict[bytes, int] = field(default_factory=dict)
    answers: dict[int, Any] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    labelled: set[str] = field(default_factory=set)
    void: set[int] = field(default_factory=set)
    told: bool = False
    may_be_gone: bool = False

    @property
    def end(self) -> int:
        """The sequence of the last sample, or of a later rollback."""
        return max(self.begin, *self.samples or [0], *(at for at, _ in self.epochs))

    @property
    def epoch(self) -> str:
        """The present one."""
        return self.epochs[-1][1]

    def in_force(self, sequence: int) -> set[str]:
        """Return the epochs in which a state of a sequence may have been saved."""
        before = [epoch for at, epoch in self.epochs if at < sequence] or [self.epochs[0][1]]
        return {before[-1], *(epoch for at, epoch in self.epochs if at == sequence)}


class Promises:
    """All promises to clients, and what the files had when they were last read."""

    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        self.gone: set[int] = set()  # numbers of models that were deleted
        # number of a sample -> where it is: the model's number and the sequence.
        self.places: dict[int, tuple[int, int]] = {}
        self.not_learned: set[int] = set()
        # (model, epoch, sequence) -> what it predicted there.
        self.states: dict[tuple[int, str, int], str] = {}

    def of_name(self, name: str) -> Life | None:
        """Return the life of a model's name."""
        return next((one for one in self.lives.values() if one.name == name), None)

    def read(self, rows: Iterable[LogRow], folder: Path) -> None:
        """Compare the log and the states with what they were. Raises Broken."""
        by_model: dict[int, list[LogRow]] = {}
        for row in rows:
            by_model.setdefault(row.model, []).append(row)
        self._read_catalogue(by_model.pop(0, []))
        unknown = by_model.keys() - self.lives.keys()
        _check(not unknown, f"the log has rows of models {unknown}, which do not exist")
        for number, life in self.lives.items():
            self._read_life(life, by_model.get(number, []))
        self._read_states(by_model, folder)

    def _read_catalogue(self, rows: list[LogRow]) -> None:
        there = {row.sequence: row.plain for row in rows if row.kind == "created"}
        names = [plain["name"] for plain in there.values()]
        _check(len(names) == len(set(names)), f"two models have one name: {names}")
        for number, plain in there.items():
            _check(number not in self.gone, f"model {number} was deleted, and is there")
            if number not in self.lives:
                life = Life(number, plain["name"], plain.get("follows"))
                life.epochs.append((0, plain["epoch"]))
                self.lives[number] = life
        for number in self.lives.keys() - there.keys():
            life = self.lives.pop(number)
            self.gone.add(number)
            _check(life.may_be_gone or not life.told, f"model {life.name} is gone")

    def _read_life(self, life: Life, rows: list[LogRow]) -> None:
        end: int | None = None
        for row in rows:
            if row.kind in ("samples", "labels"):
                first = row.sequence - row.samples
                if end is not None:
                    back = [at for at, _ in life.epochs if end < at <= first]
                    _check(first == max(back, default=end), f"{life.name} has a gap at {end}")
                end = row.sequence
                self._read_samples(life, row)
            elif row.kind == "key":
                at = life.keys.setdefault(key_in(row), row.sequence)
                _check(at == row.sequence, f"{life.name} has a key at {at} and {row.sequence}")
            elif row.kind == "answer":
                answer = msgpack.unpackb(row.record)
                first_one = life.answers.setdefault(row.sequence, answer)
                _check(first_one == answer, f"{life.name} has another answer at {row.sequence}")
            elif row.kind == "rollback":
                found = row.sequence, row.plain["epoch"]
                if found not in life.epochs:
                    life.epochs.append(found)
                    life.labelled.clear()

    def _read_samples(self, life: Life, row: LogRow) -> None:
        numbers = numbers_of(row)
        known = life.samples.get(row.sequence)
        for sequence, number in enumerate(numbers, row.sequence - row.samples + 1):
            if sequence in life.void:
                continue
            place = life.number, sequence
            known_at = self.places.setdefault(number, place) if row.kind == "samples" else place
            _check(known_at == place, f"sample {number} is at {known_at} and at {place}")
            there = life.samples.setdefault(sequence, number)
            _check(there == number, f"{life.name} has {there} and {number} at {sequence}")
            _check(number not in self.not_learned, f"{number} was not learned, and is there")
        if known is None and row.kind == "labels":
            again = life.labelled.intersection(labelled_in(row))
            _check(not again, f"labels of {again} are learned twice")
            life.labelled.update(labelled_in(row))

    def _read_states(self, rows: dict[int, list[LogRow]], folder: Path) -> None:
        saved = read_snapshots(folder)
        for model, sequence, plain in saved:
            life = self.lives.get(model)
            if life is None:
                continue
            what = f"the snapshot of {life.name} at {sequence}"
            _check(plain["sequence"] == sequence, f"{what} is of {plain['sequence']}")
            _check(plain["epoch"] in life.in_force(sequence), f"{what} is not of this model's log")
            if life.champion in self.gone or (life.champion is None and life.end == 0):
                life.begin = max(life.begin, sequence)  # it goes on from there alone
            champion = self.lives.get(life.champion or 0)
            end = max(life.end, champion.end if champion else 0)
            _check(sequence <= end, f"{what} is ahead of {end}")
        for life in self.lives.values():
            if life.champion in self.gone:
                self._free(life)
        for number, of_model in rows.items():
            self._check_waiting(self.lives[number], of_model, folder)
            rollbacks = [row for row in of_model if row.kind == "rollback"]
            newest = max((one.sequence for one in saved if one.model == number), default=-1)
            if rollbacks and rollbacks[-1].sequence >= newest:
                digest = rollbacks[-1].plain["digest"]
                _check(is_pinned(folder, number, digest), f"model {number} lacks its pinned state")

    def _check_waiting(self, life: Life, rows: list[LogRow], folder: Path) -> None:
        """Check that rows which must take their labels are in the log, or in a state."""
        missing = set(life.waiting)
        missing.difference_update(
            row_id for row in rows if row.kind == "prediction" for row_id in predicted_in(row)
        )
        if missing and life.champion is None:
            missing -= waiting_in(folder, life.number)
        _check(not missing, f"rows {missing} of {life.name} wait, and are nowhere on disk")

    def _free(self, life: Life) -> None:
        """Have a model follow none from now on.

        What a challenger learned since its snapshot is learned again after a crash. One that is
        freed before it has done so reaches the same sequences of the same epoch in other states.
        """
        life.champion = None
        self.states = {
            at: said
            for at, said in self.states.items()
            if at[0] != life.number or at[2] <= life.begin
        }

    def lose_unacknowledged(self, rows: Iterable[LogRow]) -> None:
        """Forget what a crash may have taken back: what no client was told. Raises Broken."""
        there: dict[int, set[int]] = {}
        epochs: dict[int, set[str]] = {}
        for row in rows:
            if row.kind in ("samples", "labels"):
                sequences = range(row.sequence - row.samples + 1, row.sequence + 1)
                there.setdefault(row.model, set()).update(sequences)
            elif row.kind == "rollback":
                epochs.setdefault(row.model, set()).add(row.plain["epoch"])
        for number, life in self.lives.items():
            end = max(there.get(number, {0}))
            last = max(life.acknowledged, default=0)
            for sequence in [one for one in life.samples if one > max(end, last)]:
                self.places.pop(life.samples.pop(sequence), None)
            life.keys = {k: s for k, s in life.keys.items() if s <= max(end, last)}
            told = [epoch for _, epoch in life.epochs].index(life.told_epoch or life.epochs[0][1])
            kept = epochs.get(number, set())
            life.epochs = [one for k, one in enumerate(life.epochs) if k <= told or one[1] in kept]

    def learned(self, life: Life, numbers: list[int], sequence: int) -> None:
        """Note that a client was told so; the log has been read since. Raises Broken."""
        first = sequence - len(numbers) + 1
        for at, number in enumerate(numbers, first):
            life.acknowledged[at] = number
            there = life.samples.get(at)
            _check(there == number, f"{life.name} has {there}, not {number}, at {at}")

    def void(self, life: Life, learned: int) -> None:
        """Note that a rollback voids what a broken model had not learned, and nobody was told of.

        learned: the sequence up to which it had. Its requests may come again under their keys.
        """
        for sequence, number in life.samples.items():
            if sequence > learned and sequence not in life.acknowledged:
                life.void.add(sequence)
                self.places.pop(number, None)
        life.keys = {key: at for key, at in life.keys.items() if at not in life.void}

    def check_model(self, name: str, epoch: str, sequence: int, said: str, broken: str) -> None:
        """Compare a live model with its log. Raises Broken."""
        life = self.of_name(name)
        _check(life is not None, f"model {name} is served, and not in the log")
        assert life is not None
        if broken:
            return
        _check(epoch == life.epoch, f"{name} is in epoch {epoch}, its log in {life.epochs}")
        if life.champion is None:
            _check(sequence == life.end, f"{name} is at {sequence}, its log at {life.end}")
        known = self.states.setdefault((life.number, epoch, sequence), said)
        _check(known == said, f"{name} says something else than before at {sequence}")


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise Broken(message)
