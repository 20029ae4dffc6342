"""The idempotency keys and answers of a fleet, in the logs or beside the snapshots."""

from collections.abc import Iterator, Sequence

from service.errors import StartupError, StorageFailed
from service.fleet.commit_messages import LogRow, key_row
from service.fleet.model_log import ModelLogs
from service.storage.entries import KeyedRequest, now


class JetStreamAnswers:
    """`storage.answers.Answers` in streams. One thread at a time uses those of a model."""

    def __init__(self, logs: ModelLogs) -> None:
        self._logs = logs

    def keys(self, model: int) -> Iterator[tuple[int, bytes]]:
        """Return (sequence, key) of a model's keys, oldest first."""
        known = self._logs.of(model).index.keys
        for sequence in sorted(known):
            yield sequence, known[sequence].request.key

    def sizes(self, model: int, above: int) -> Iterator[tuple[int, int]]:
        """Return (sequence, bytes) of a model's answers above a size, oldest first."""
        known = self._logs.of(model).index.keys
        for sequence in sorted(known):
            if known[sequence].n_bytes > above:
                yield sequence, known[sequence].n_bytes

    def find(self, model: int, sequence: int) -> KeyedRequest | None:
        """Return the key of the entry at a sequence."""
        try:
            log = self._logs.of(model)
            known = log.index.keys.get(sequence)
            return known and known.request._replace(answer=log.answer(known))
        except StartupError as error:
            raise StorageFailed(str(error)) from None

    def unanswered(self, model: int, after: int) -> list[KeyedRequest]:
        """Return a model's keys after a sequence whose answers were not written."""
        index = self._logs.of(model).index
        return [index.keys[at].request for at in sorted(index.unanswered) if at > after]

    def write(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the answers of known keys; the first answer of each key counts."""
        self._store(answered, "answer")

    def replace(self, shorter: Sequence[KeyedRequest]) -> None:
        """Write shorter answers, which replace the first ones."""
        self._store(shorter, "shorter")

    def _store(self, answered: Sequence[KeyedRequest], kind: str) -> None:
        time = now()
        rows = dict[int, list[LogRow]]()
        for row in answered:
            rows.setdefault(row.model, []).append(key_row(row, time)._replace(kind=kind))
        for model, of_model in rows.items():
            self._logs.of(model).store_event(of_model)

    def drop(self, model: int, up_to: int) -> None:
        """Forget the keys of a model's entries up to a sequence."""
        log = self._logs.of(model)
        log.index.forget_keys(up_to)
        log.drop_kept()
