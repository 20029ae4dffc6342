"""The journal of a fleet: a commit for several models is one commit in the log of each."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from service.errors import NotLeader, StartupError, StorageFailed
from service.fleet.commit_messages import (
    LogRow,
    entry_row,
    event_row,
    key_row,
    read_entry,
    rollback_row,
)
from service.fleet.commits_under_way import CommitsUnderWay
from service.fleet.connection import Refused, Unanswered
from service.fleet.log_index import ENTRIES, WITH_SAMPLES
from service.fleet.model_log import ModelLogs
from service.storage.entries import Entry, KeyedRequest, Rollback, now
from service.storage.high_water import HighWater
from service.storage.journal import Unfinished
from service.storage.replay_marks import ReplayMarks

# Longer than the time limits of an append.
_SECONDS = 60.0
# How long an attempt to settle a doubt may take, during which other models wait.
_SETTLE_SECONDS = 0.05


class JetStreamJournal:
    """`storage.journal.Journal` in streams. One thread at a time uses the log of a model.

    high_water, replays: this replica's own marks of acknowledged sequences and of replays.
    """

    def __init__(self, logs: ModelLogs, high_water: HighWater, replays: ReplayMarks) -> None:
        self._logs, self._high_water, self.replays = logs, high_water, replays
        self._commits = CommitsUnderWay(logs)
        self.name = f"the streams at {logs.nats.servers}"
        # For each model, up to where no predicted rows wait.
        self._left: dict[int, int] = {}

    def close(self) -> None:
        """Disconnect from the servers."""
        self._logs.nats.close()
        self._high_water.close()
        self.replays.close()

    def damage(self) -> list[str]:
        """Return nothing: the servers check their files, and messages are checked when read."""
        return []

    def append(
        self,
        entries: Sequence[Entry],
        keys: Sequence[KeyedRequest] = (),
        patience: float | None = None,
    ) -> dict[int, StorageFailed]:
        """Write one commit for each model, all at the same time; return the models that failed."""
        time = now()
        rows = dict[int, list[LogRow]]()
        for entry in entries:
            rows.setdefault(entry.model, []).append(entry_row(entry, time))
        for keyed in keys:
            rows.setdefault(keyed.model, []).append(key_row(keyed, time))
        failures = dict[int, StorageFailed]()
        for model in list(rows):
            try:
                self._logs.of(model)  # read when it was first asked for
            except (StartupError, StorageFailed) as error:
                failures[model] = StorageFailed(f"{error}; nothing was learned")
                del rows[model]
        self._commits.begin(rows)
        self._commits.wait_for_all(rows, _SECONDS if patience is None else patience)
        ended = self._noted(self._commits.take(rows))
        unanswered = Unfinished(f"{self.name} have not answered yet")
        return (
            failures
            | {model: error for model, error in ended.items() if error is not None}
            | dict.fromkeys(rows.keys() - ended.keys(), unanswered)
        )

    def finished(self, seconds: float) -> dict[int, StorageFailed | None]:
        """Return the results of commits that had no answer before."""
        self._commits.wait_for_one(seconds)
        return self._noted(self._commits.take())

    def _noted(self, ended: dict[int, StorageFailed | None]) -> dict[int, StorageFailed | None]:
        for model, error in ended.items():
            if error is None:
                self._note(model, self._commits.rows(model))
        return ended

    def _note(self, model: int, rows: Sequence[LogRow]) -> None:
        ends = [row.sequence for row in rows if row.kind in ENTRIES]
        if ends:
            self._high_water.note(model, ends[-1])

    def reread(self, model: int, /) -> None:
        """Forget what is known about a model's log; it is read again when it is needed."""
        self._logs.forget(model)

    def settle(self, model: int, /) -> None:
        """Find out whether a model's commit in doubt was written."""
        log = self._logs.known(model)
        if log.writing is None:
            log.writing = self._logs.nats.begin(log.chain.resolve())
        try:
            log.writing.result(_SETTLE_SECONDS)
        except TimeoutError:
            raise StorageFailed(f"the {log.chain.name} has not answered yet") from None
        finally:
            if log.writing.done():
                log.writing = None

    def append_rollback(self, model: int, rollback: Rollback, learned: int) -> None:
        """Write a rollback; see `Journal.append_rollback`."""
        self._logs.known(model).store_event([rollback_row(rollback, learned, now())])
        self._high_water.note(model, rollback.description["at"])

    def append_exchange(self, rollbacks: Mapping[int, Rollback]) -> None:
        """Write the rollbacks of two models, whose logs are in one stream, as one batch."""
        (one, of_one), (other, of_other) = [
            (self._logs.of(model), [rollback_row(rollback, rollback.description["at"], now())])
            for model, rollback in rollbacks.items()
        ]
        one.store_event_with(of_one, other, of_other)
        for model, rollback in rollbacks.items():
            self._high_water.note(model, rollback.description["at"])

    def append_epoch(self, model: int, sequence: int, epoch: str) -> None:
        """Write that an epoch begins: a term of this replica, in which no other one writes."""
        record = json.dumps({"epoch": epoch}).encode()
        log = self._logs.of(model)
        if sequence < log.index.reached:
            raise NotLeader(f"the {log.chain.name} goes on after sequence {sequence}")
        log.read_kept()
        # A challenger goes on from a snapshot, which may be older than what its log has.
        at = max(sequence, log.index.last_event)
        log.store_event([event_row("epoch", at, now(), record)])
        log.term = log.chain.last

    def epoch_since(self, model: int, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or after it."""
        return self._logs.of(model).index.epoch_since(sequence)

    def epoch_before(self, model: int, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence."""
        return self._logs.of(model).index.epoch_before(sequence)

    def blocks(self, model: int, after: int) -> Iterator[list[Entry]]:
        """Yield a model's entries after a sequence, block by block, to the log's present end."""
        for (_, _, several), group in groupby(self._entries(model, after), _block_of):
            block = list(group)
            yield from [block] if several else [[entry] for entry in block]

    def _entries(self, model: int, after: int) -> Iterator[Entry]:
        log = self._logs.of(model)
        there = list[Entry]()  # of the sequence itself, which a rollback there makes void
        for commit in log.chain.read(log.index.before(after)):
            for row in commit.rows:
                if row.kind == "rollback" and row.sequence == after:
                    there.clear()
                elif row.kind in ENTRIES and row.sequence > after:
                    yield from there
                    there.clear()
                    yield read_entry(model, row)
                elif row.kind in ENTRIES - WITH_SAMPLES and row.sequence == after:
                    there.append(read_entry(model, row))
        yield from there

    def begin(self, model: int) -> int | None:
        """Return the sequence after which a model's entries begin; None if it has none."""
        return self._logs.of(model).index.begin()

    def end(self, model: int) -> int:
        """Return the sequence of a model's last sample; 0 if it has none."""
        return self._logs.of(model).index.end

    def rolled_back_at(self, model: int) -> int | None:
        """Return the sequence of a model's last rollback; None if later snapshots replaced it."""
        rollbacks = self.rollbacks(model)
        return rollbacks[0].description["at"] if rollbacks else None

    def rollbacks(self, model: int) -> list[Rollback]:
        """Return a model's rollbacks that later snapshots have not replaced, the last one first."""
        return self._logs.of(model).index.rollbacks()

    def drop(self, model: int, up_to: int) -> None:
        """Purge what a snapshot makes superfluous, after its keys were copied elsewhere."""
        self._purge(model, up_to)
        self._high_water.sync()

    def drop_predictions(self, model: int, up_to: int) -> None:
        """Purge predictions without waiting rows; see `Journal.drop_predictions`."""
        self._left[model] = max(up_to, self._left.get(model, 0))
        self._purge(model, 0)

    def _purge(self, model: int, up_to: int) -> None:
        try:
            self._logs.of(model).purge(up_to, self._left.get(model, 0))
        except (Refused, Unanswered) as error:
            raise StorageFailed(f"the log could not be purged: {error}") from None

    def acknowledged(self, model: int) -> int:
        """Return the sequence up to which this replica knows a model to be durable."""
        return self._high_water.of(model)

    def begin_at(self, model: int, sequence: int) -> None:
        """Record that a new model begins with a snapshot of this sequence."""
        self._high_water.note(model, sequence)
        self._high_water.sync()


def _block_of(entry: Entry) -> tuple[int, str, bool]:
    """Return what the entries of a block share, and whether a block may have several of them."""
    return entry.block, entry.kind, bool(entry.samples)
