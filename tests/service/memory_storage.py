"""Storage in memory whose journal fails where a test says so, for one model and not for another."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Literal

from service.errors import InDoubt, StorageFailed
from service.storage.entries import CatalogueEntry, Entry, KeyedRequest, Rollback
from service.storage.interfaces import Storage
from service.storage.journal import LogFull, Unfinished
from service.storage.snapshot_format import DamagedSnapshot, State
from service.storage.snapshots import SnapshotDescription


class MemoryStorage:
    """The journal, catalogue, answers and snapshots of one server.

    fate: what becomes of the next commits, by model: "refused" fails; "full" fails for want of
    room; "lost" and "written" are in doubt until they are settled, which shows the one or the
    other; "late" is unfinished until `finishing` says what became of it, if whoever appends is not
    that patient. unsettled: models whose doubt cannot be settled yet.
    """

    def __init__(self) -> None:
        self.fate: dict[int, Literal["refused", "full", "lost", "written", "late"]] = {}
        self.unsettled: set[int] = set()
        self.finishing: dict[int, StorageFailed | None] = {}
        self.late: dict[int, tuple[list[Entry], list[KeyedRequest]]] = {}
        self.entries: dict[int, list[Entry]] = {}
        self.keys: dict[tuple[int, int], KeyedRequest] = {}
        self.specs: list[CatalogueEntry] = []
        self.saved: dict[int, dict[int, State]] = {}
        self.in_doubt: set[int] = set()
        self.terms: dict[int, str] = {}

    @property
    def storage(self) -> Storage:
        """What the writer takes."""
        return Storage(_Journal(self), _Catalogue(self), _Answers(self), _Snapshots(self))


class _Part:
    def __init__(self, memory: MemoryStorage) -> None:
        self.memory = memory


class _Replays:
    most = 2

    def begin(self, _model: int, _after: int) -> int:
        return 0

    def leave_out(self, model: int, after: int, times: int) -> None:
        raise NotImplementedError

    def ended(self, _model: int) -> int:
        return 0

    def end(self, _model: int) -> None:
        pass

    def stop(self) -> None:
        pass


class _Journal(_Part):
    name = "memory"
    replays = _Replays()

    def append(
        self,
        entries: Sequence[Entry],
        keys: Sequence[KeyedRequest] = (),
        patience: float | None = None,
    ) -> dict[int, StorageFailed]:
        memory, failures = self.memory, dict[int, StorageFailed]()
        for model in dict.fromkeys(row.model for row in (*entries, *keys)):
            unusable = model in memory.in_doubt or model in memory.late
            fate = "refused" if unusable else memory.fate.pop(model, None)
            rows = [one for one in entries if one.model == model]
            of_rows = [row for row in keys if row.model == model]
            if fate in (None, "written"):
                self._write(model, rows, of_rows)
            if fate == "late":
                assert patience is not None
                memory.late[model] = rows, of_rows
                failures[model] = Unfinished("no answer from the journal yet")
            elif fate == "refused":
                failures[model] = StorageFailed("the journal could not be written")
            elif fate == "full":
                failures[model] = LogFull("the journal is full")
            elif fate is not None:
                failures[model] = InDoubt("no answer from the journal")
                memory.in_doubt.add(model)
        return failures

    def _write(self, model: int, entries: list[Entry], keys: list[KeyedRequest]) -> None:
        self.memory.entries[model] += entries
        self.memory.keys |= {row[:2]: row for row in keys}

    def finished(self, _seconds: float) -> dict[int, StorageFailed | None]:
        told, self.memory.finishing = self.memory.finishing, {}
        for model, error in told.items():
            written = self.memory.late.pop(model)
            if error is None:
                self._write(model, *written)
            elif isinstance(error, InDoubt):
                self.memory.in_doubt.add(model)
        return told

    def reread(self, model: int, /) -> None:
        pass

    def settle(self, model: int, /) -> None:
        if model in self.memory.unsettled:
            raise StorageFailed("no answer from the journal")
        self.memory.in_doubt.discard(model)

    def append_rollback(self, model: int, rollback: Rollback, learned: int) -> None:
        raise NotImplementedError

    def append_exchange(self, rollbacks: Mapping[int, Rollback]) -> None:
        raise NotImplementedError

    def blocks(self, model: int, after: int) -> Iterator[list[Entry]]:
        kept = self.memory.entries[model]
        later = [e for e in kept if e.sequence > after or (e.sequence == after and not e.samples)]
        for _, block in groupby(later, key=lambda entry: (entry.block, entry.kind)):
            yield list(block)

    def begin(self, model: int) -> int | None:
        entries = self.memory.entries[model]
        return entries[0].sequence - entries[0].samples if entries else None

    def end(self, model: int) -> int:
        return max((entry.sequence for entry in self.memory.entries[model]), default=0)

    def acknowledged(self, _model: int) -> int:
        return 0

    def begin_at(self, model: int, sequence: int) -> None:
        pass

    def rolled_back_at(self, _model: int) -> int | None:
        return None

    def rollbacks(self, _model: int) -> list[Rollback]:
        return []

    def append_epoch(self, model: int, _sequence: int, epoch: str) -> None:
        self.memory.terms[model] = epoch

    def epoch_since(self, model: int, _sequence: int) -> str | None:
        return self.memory.terms.get(model)

    def epoch_before(self, _model: int, _sequence: int) -> str | None:
        return None

    def drop(self, model: int, up_to: int) -> None:
        entries = self.memory.entries
        entries[model] = [
            entry
            for entry in entries[model]
            if entry.sequence > up_to or (entry.sequence == up_to and not entry.samples)
        ]

    def drop_predictions(self, model: int, up_to: int) -> None:
        raise NotImplementedError

    def damage(self) -> list[str]:
        return []

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
        self, name: str, spec: dict[str, Any], epoch: str, follows: int | None = None
    ) -> Iterator[int]:
        model = len(self.memory.specs) + 1
        self.memory.entries[model] = []
        yield model
        self.memory.specs.append(CatalogueEntry(model, name, spec, epoch, follows))

    def delete(self, model: int) -> None:
        self.memory.specs = [row for row in self.memory.specs if row[0] != model]


class _Answers(_Part):
    def keys(self, model: int) -> Iterator[tuple[int, bytes]]:
        return ((row[1], row[2]) for at, row in sorted(self.memory.keys.items()) if at[0] == model)

    def sizes(self, model: int, above: int) -> Iterator[tuple[int, int]]:
        for at, row in sorted(self.memory.keys.items()):
            if at[0] == model and row.answer is not None and len(row.answer) > above:
                yield at[1], len(row.answer)

    def find(self, model: int, sequence: int) -> KeyedRequest | None:
        return self.memory.keys.get((model, sequence))

    def unanswered(self, model: int, after: int) -> list[KeyedRequest]:
        rows = [row for row in self.memory.keys.values() if row.sequence > after]
        return [row for row in rows if row.model == model and row.answer is None]

    def write(self, answered: Sequence[KeyedRequest]) -> None:
        self.memory.keys |= {row[:2]: row for row in answered}

    def replace(self, shorter: Sequence[KeyedRequest]) -> None:
        self.write(shorter)

    def drop(self, model: int, up_to: int) -> None:
        for at in [at for at in self.memory.keys if at[0] == model and at[1] <= up_to]:
            del self.memory.keys[at]


class _Snapshots(_Part):
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

    def set_aside(self, model: int, sequence: int) -> None:
        del self.memory.saved[model][sequence]

    def pin(self, model: int, content: bytes) -> str:
        raise NotImplementedError

    def pinned(self, model: int, digest: str) -> State:
        raise NotImplementedError

    def unpin_others(self, model: int, digests: set[str]) -> None:
        raise NotImplementedError

    def delete(self, model: int) -> None:
        self.memory.saved.pop(model, None)

    def set_others_aside(self, models: set[int]) -> None:
        self.memory.saved = {at: kept for at, kept in self.memory.saved.items() if at in models}
