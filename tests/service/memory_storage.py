"""Storage in memory whose journal fails where a test says so, for one model and not for another."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast

from wolfstream.service.errors import InDoubt, NotLeader, StorageFailed
from wolfstream.service.storage.entries import CatalogueEntry, Entry, KeyedRequest, Rollback
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import (
    LogDeleted,
    LogFull,
    SnapshotDescription,
    SnapshotFault,
    Snapshots,
    Storage,
    Unfinished,
)
from wolfstream.service.storage.log import LoggedKey
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State
from wolfstream.service.storage.term import Part, Term, UnownedLog, split_blocks

Fate: TypeAlias = Literal["refused", "full", "lost", "written", "late"]


class MemoryStorage:
    """The journal, catalogue and snapshots of one server.

    A term that is not the last one of its model is refused, and is over then.

    fate: what becomes of the next commits, by model: "refused" fails; "full" fails for want of
    room; "lost" and "written" are in doubt until they are settled, which shows the one or the
    other; "late" is unfinished until `finishing` says what became of it, if whoever appends is not
    that patient. unsettled: models whose doubt cannot be settled yet.
    """

    def __init__(self) -> None:
        self.fate: dict[int, Fate] = {}
        self.unsettled: set[int] = set()
        self.finishing: dict[int, StorageFailed | None] = {}
        self.late: dict[int, tuple[_Term, Part]] = {}
        self.entries: dict[int, list[Entry]] = {}
        self.keys: dict[tuple[int, int], KeyedRequest] = {}
        self.specs: list[CatalogueEntry] = []
        self.saved: dict[int, dict[int, State]] = {}
        self.epochs: dict[int, str] = {}
        # The last term of each model that exists.
        self.terms: dict[int, _Term] = {}
        self.numbers, self.places = itertools.count(1), itertools.count(1)

    @property
    def storage(self) -> Storage:
        """What the writer takes."""
        return Storage(_Journal(self), _Catalogue(self), _Snapshots(self))

    def write(self, model: int, part: Part) -> None:
        """Store what a commit has."""
        self.entries[model] += part.entries
        for row in part.keys:
            known = self.keys.get(row[:2])
            if known is None or known.answer is None:
                self.keys[row[:2]] = row


class _Part:
    def __init__(self, memory: MemoryStorage) -> None:
        self.memory = memory


class _Log(UnownedLog):
    def __init__(self, memory: MemoryStorage, model: int) -> None:
        self.memory, self.model = memory, model
        self.name = f"log of model {model}"

    @property
    def _entries(self) -> list[Entry]:
        return self.memory.entries.get(self.model, [])

    @property
    def _keys(self) -> list[KeyedRequest]:
        return [row for at, row in sorted(self.memory.keys.items()) if at[0] == self.model]

    def blocks(self, after: int) -> Iterator[list[Entry]]:
        return split_blocks(
            [
                e
                for e in self._entries
                if e.sequence > after or (e.sequence == after and not e.samples)
            ]
        )

    def begin(self) -> int | None:
        return self._entries[0].sequence - self._entries[0].samples if self._entries else None

    def end(self) -> int:
        return max((entry.sequence for entry in self._entries if entry.samples), default=0)

    def last_event(self) -> int:
        return max((entry.sequence for entry in self._entries if not entry.samples), default=0)

    def epochs(self) -> list[tuple[int, str]]:
        epoch = self.memory.epochs.get(self.model)
        return [] if epoch is None else [(self.end(), epoch)]

    def rollbacks(self) -> list[Rollback]:
        return []

    def keys(self, after: int = -1) -> Iterator[LoggedKey]:
        for row in self._keys:
            if row.sequence > after:
                n_bytes = None if row.answer is None else len(row.answer)
                yield LoggedKey(row.sequence, row.key, n_bytes)

    def find(self, sequence: int) -> KeyedRequest | None:
        return self.memory.keys.get((self.model, sequence))

    def begin_term(self, sequence: int, epoch: str | None = None) -> Term:
        if self.model not in self.memory.terms:
            raise LogDeleted(f"the {self.name} says that its model was deleted")
        if sequence < self.end():
            raise NotLeader(f"the {self.name} goes on after sequence {sequence}")
        if epoch is not None:
            self.memory.epochs[self.model] = epoch
        return _Term(self)


class _NoMarks:
    def sequence(self, _model: int) -> int:
        return 0

    def mark(self, model: int, sequence: int) -> None:
        pass


class _Term(Term):
    log: _Log

    def __init__(self, log: _Log) -> None:
        super().__init__(log, next(log.memory.places), cast(HighWater, _NoMarks()))
        self.memory = log.memory
        self.memory.terms[log.model] = self
        # Whether a commit in doubt was stored.
        self._stored = False

    def begin(self) -> None:
        self.check()
        self.confirm()
        super().begin()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.begin()
        yield
        self.finish()

    def commit(self, part: Part, timeout: float | None) -> StorageFailed | None:
        """Write a part as the model's fate has it; why it was not written, if it was not."""
        try:
            self.begin()
        except StorageFailed as error:
            return error
        fate = self.memory.fate.pop(self.model, None)
        if fate == "late":
            assert timeout is not None
            self.memory.late[self.model] = self, part
            return Unfinished("no answer from the journal yet")
        errors: dict[Fate, StorageFailed] = {
            "refused": StorageFailed("the journal could not be written"),
            "full": LogFull("the journal is full"),
        }
        in_doubt = InDoubt("no answer from the journal")
        return self.finish_with(part, fate and errors.get(fate, in_doubt), fate == "written")

    def finish_with(
        self, part: Part, error: StorageFailed | None, stored: bool = False
    ) -> StorageFailed | None:
        """End a commit; stored: whether one in doubt was written. The error that was given."""
        if error is None or stored:
            self.memory.write(self.model, part)
        if isinstance(error, NotLeader) or (isinstance(error, InDoubt) and not part.entries):
            self.end()
        elif isinstance(error, InDoubt):
            self._stored = stored
            self.doubt(part)
        else:
            self.finish()
        return error

    def _is_stored(self, _part: Part) -> bool:
        if self.model in self.memory.unsettled:
            raise StorageFailed("no answer from the journal")
        return self._stored

    def confirm(self) -> None:
        if self.over or self.memory.terms.get(self.model) is not self:
            self.end()
            raise self.not_leader()

    def roll_back(
        self, rollback: Rollback, learned: int, pinned: Collection[str], kept: int
    ) -> list[str]:
        raise NotImplementedError

    def write_answers(self, answered: Sequence[KeyedRequest]) -> None:
        with self._writing():
            self.memory.write(self.model, Part(keys=answered))

    def shorten_answers(self, shorter: Sequence[KeyedRequest]) -> None:
        with self._writing():
            self.memory.keys |= {row[:2]: row for row in shorter}

    def forget_keys(self, up_to: int) -> None:
        with self._writing():
            keys = self.memory.keys
            for at in [at for at in keys if at[0] == self.model and at[1] <= up_to]:
                del keys[at]

    def drop(self, up_to: int) -> None:
        with self._writing():
            entries = self.memory.entries
            entries[self.model] = [
                entry
                for entry in entries[self.model]
                if entry.sequence > up_to or (entry.sequence == up_to and not entry.samples)
            ]

    def drop_predictions(self, up_to: int) -> None:
        raise NotImplementedError

    def delete(self) -> None:
        """Delete the log, and all keys."""
        with self._writing():
            del self.memory.terms[self.model], self.memory.entries[self.model]
        for row in self.log._keys:
            del self.memory.keys[row[:2]]
        self.end()


class _Replays:
    max_crashes = 2

    def begin(self, _model: int, _after: int) -> int:
        return 0

    def leave_out(self, model: int, after: int, crashes: int) -> None:
        raise NotImplementedError

    def crashes(self, _model: int) -> int:
        return 0

    def end(self, _model: int) -> None:
        pass

    def check(self) -> None:
        pass

    def stop(self) -> None:
        pass


class _Journal(_Part):
    name = "memory"
    replays = _Replays()

    def reader(self, model: int) -> _Log:
        return _Log(self.memory, model)

    def append(
        self, parts: Mapping[Term, Part], timeout: float | None = None
    ) -> dict[Term, StorageFailed]:
        of_terms = cast(Mapping[_Term, Part], parts)
        results = {term: term.commit(part, timeout) for term, part in of_terms.items()}
        return {term: error for term, error in results.items() if error is not None}

    def finished(self, _seconds: float) -> dict[Term, StorageFailed | None]:
        told, self.memory.finishing = self.memory.finishing, {}
        results = dict[Term, StorageFailed | None]()
        for model, error in told.items():
            term, part = self.memory.late.pop(model)
            results[term] = term.finish_with(part, error)
        return results

    def exchange(self, rollbacks: Mapping[Term, Rollback]) -> None:
        raise NotImplementedError

    def damage(self) -> list[str]:
        return []

    def obstacle(self) -> str:
        return ""

    def close(self) -> None:
        pass


class _Catalogue(_Part):
    def find(self, name: str) -> CatalogueEntry | None:
        return next((row for row in self.memory.specs if row.name == name), None)

    def models(self) -> list[CatalogueEntry]:
        return self.memory.specs

    def is_followed(self, model: int) -> bool:
        return any(row.follows == model for row in self.memory.specs)

    @contextmanager
    def creating(
        self,
        name: str,
        spec: dict[str, Any],
        epoch: str,
        follows: int | None = None,
        _sequence: int = 0,
    ) -> Iterator[Term]:
        model = next(self.memory.numbers)
        self.memory.entries[model] = []
        yield _Term(_Log(self.memory, model))
        self.memory.specs.append(CatalogueEntry(model, name, spec, epoch, follows))

    def delete(self, term: Term) -> None:
        cast(_Term, term).delete()
        self.memory.specs = [row for row in self.memory.specs if row.number != term.model]

    def finish_deletion(self, entry: CatalogueEntry) -> None:
        pass


class _Snapshots(_Part, Snapshots):
    def sequences(self, model: int) -> list[int]:
        return sorted(self.memory.saved.get(model, {}), reverse=True)

    def name(self, model: int, sequence: int) -> str:
        return f"snapshot {sequence} of model {model}"

    def save(self, model: int, state: State) -> None:
        self.memory.saved.setdefault(model, {})[state.plain["sequence"]] = state

    def load(self, model: int, sequence: int) -> State:
        return self.memory.saved[model][sequence]

    def content(self, model: int, sequence: int) -> bytes:
        raise DamagedSnapshot(self.name(model, sequence), "has no bytes")

    def written(self, model: int, sequence: int) -> datetime | None:
        return datetime.now(UTC) if sequence in self.memory.saved.get(model, {}) else None

    def describe(self, model: int, sequence: int) -> SnapshotDescription | None:
        plain = self.memory.saved[model][sequence].plain
        return SnapshotDescription(0, datetime.now(UTC), plain)

    def set_aside(self, model: int, sequence: int, _fault: SnapshotFault) -> None:
        del self.memory.saved[model][sequence]

    def pin(self, model: int, content: bytes, name: str | None = None) -> str:
        raise NotImplementedError

    def pinned_content(self, model: int, name: str) -> bytes:
        raise NotImplementedError

    def pinned_names(self, _model: int) -> list[str]:
        return []

    def unpin(self, model: int, names: Collection[str]) -> None:
        raise NotImplementedError

    def delete(self, model: int) -> None:
        self.memory.saved.pop(model, None)

    def set_others_aside(self, models: set[int]) -> None:
        self.memory.saved = {at: kept for at, kept in self.memory.saved.items() if at in models}
