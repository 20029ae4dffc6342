"""The log of one model: its chain of commits, an index of it, and keys that are kept longer."""

from collections.abc import Sequence
from concurrent.futures import Future

from service.errors import StartupError, StorageFailed
from service.fleet.chained_subject import ChainedSubject
from service.fleet.commit_messages import LogRow, event_row, key_row
from service.fleet.connection import NatsConnection, Refused, Unanswered
from service.fleet.log_index import KnownKey, LogIndex
from service.fleet.streams import STATES, log_of, states_of
from service.storage.entries import now

# Longer than the time limits of an append.
_SECONDS = 60.0
# The number of keys that are copied with one commit.
_KEYS_OF_COMMIT = 1000


class ModelLog:
    """One model's log. Used by one thread at a time.

    term: the message with which this replica began to lead; 0 before. chain: its commits.
    index: of what was read or written of them, and of what is kept. writing: what is done to it on
    the connection's loop; until that has ended, nothing else uses it.
    """

    def __init__(self, nats: NatsConnection, model: int) -> None:
        self._nats = nats
        self.term = 0
        self.writing: Future[None] | None = None
        self.index = LogIndex(model)
        self.chain = ChainedSubject(nats, model, *log_of(model), self.index.add)
        self._kept = ChainedSubject(
            nats, model, STATES, states_of(model, "answers"), self.index.add_kept
        )
        # The rows of the commit that the last lookup of an answer read.
        self._read: tuple[tuple[bool, int], list[LogRow]] | None = None

    def open(self) -> None:
        """Read the whole log except the contents of entries. Raises StartupError."""
        self.read_kept()
        self.chain.read_on()

    def read_kept(self) -> None:
        """Read the keys that were kept since the last read. Raises StartupError."""
        self._kept.read_on()

    def store_event(self, rows: Sequence[LogRow]) -> None:
        """Write a commit without entries. Raises StorageFailed, NotLeader."""
        self._nats.run(self.chain.store(rows, event=True), _SECONDS)

    def store_event_with(
        self, rows: Sequence[LogRow], other: "ModelLog", of_other: Sequence[LogRow]
    ) -> None:
        """Write a commit without entries here and one in another log of the stream, both or none.

        Raises StorageFailed, NotLeader.
        """
        self._nats.run(self.chain.store_with(rows, other.chain, of_other), _SECONDS)

    def answer(self, key: KnownKey) -> bytes | None:
        """Return the answer to a request; None if it is not known. Raises StorageFailed."""
        if key.answer is None:
            return None
        at = key.kept, key.answer
        if self._read is None or self._read[0] != at:
            chain = self._kept if key.kept else self.chain
            try:
                self._read = at, chain.commit_at(key.answer)
            except StartupError as error:
                raise StorageFailed(str(error)) from None
        found = [
            row.record
            for row in self._read[1]
            if row.sequence == key.request.sequence and row.kind in ("answer", "shorter")
        ]
        return found[-1] if found else None

    def purge(self, up_to: int, left: int) -> None:
        """Copy the keys of segments that nothing needs, then purge these segments.

        up_to: the sequence of a snapshot. left: the number of rows that no longer wait.
        Raises StorageFailed.
        """
        gone, after = self.index.superfluous(up_to, left)
        if gone:
            self._keep(self.index.known_before(after))
            self._purge(self.chain, after)
        self.index.forget(up_to, len(gone))

    def drop_kept(self) -> None:
        """Purge copied keys before the first one that is still known. Raises StorageFailed."""
        used = [key.place for key in self.index.keys.values() if key.kept]
        if self._kept.last:
            self._purge(self._kept, min(used, default=self._kept.last))

    def _purge(self, chain: ChainedSubject, before: int) -> None:
        try:
            self._nats.run(chain.messages.purge(before), _SECONDS)
        except (Refused, Unanswered) as error:
            raise StorageFailed(f"the {chain.name} could not be purged: {error}") from None

    def _keep(self, keys: list[KnownKey]) -> None:
        """Copy keys and their answers to the snapshots' stream; durable on return."""
        time = now()
        keys.sort(key=lambda key: key.answer or 0)  # each commit of answers is read once
        for start in range(0, len(keys), _KEYS_OF_COMMIT):
            rows = list[LogRow]()
            for key in keys[start : start + _KEYS_OF_COMMIT]:
                rows.append(key_row(key.request, time))
                answer = self.answer(key)
                if answer is not None:
                    rows.append(event_row("shorter", key.request.sequence, time, answer))
            self._nats.run(self._kept.store(rows, event=True), _SECONDS)


class ModelLogs:
    """The logs of models, by the models' numbers."""

    def __init__(self, nats: NatsConnection) -> None:
        self.nats = nats
        self._logs: dict[int, ModelLog] = {}
        self._open: set[int] = set()

    def known(self, model: int) -> ModelLog:
        """Return a model's log without reading it; the log of a new model is empty."""
        return self._logs.get(model) or self._logs.setdefault(model, ModelLog(self.nats, model))

    def of(self, model: int) -> ModelLog:
        """Return a model's log; the first call for a model reads it to its end.

        Raises StartupError, and StorageFailed while a commit is in progress.
        """
        log = self.known(model)
        if log.writing is not None:
            raise StorageFailed(f"the {log.chain.name} has not answered yet")
        if model not in self._open:
            log.open()
            self._open.add(model)
        return log

    def begin(self, model: int) -> None:
        """Begin a new model's log; its first append fails if another replica wrote before."""
        self.known(model).chain.begin()
        self._open.add(model)

    def forget(self, model: int) -> None:
        """Forget a model's log; it is read again when it is needed."""
        self._open.discard(model)
        self._logs.pop(model, None)
