"""One stream: which messages it takes, and what purges and limits remove from it."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.service.jetstream import errors
from tests.service.jetstream.errors import ApiRefusal
from tests.service.jetstream.packet import Packet, decoded
from tests.service.jetstream.store import Store, StoredMessage, stored_size
from tests.service.jetstream.subjects import matches

EXPECTED_LAST_OF_SUBJECT = "Nats-Expected-Last-Subject-Sequence"
_EXPECTED_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
_EXPECTED_LAST, _EXPECTED_STREAM = "Nats-Expected-Last-Sequence", "Nats-Expected-Stream"
MESSAGE_ID, EXPECTED_LAST_ID = "Nats-Msg-Id", "Nats-Expected-Last-Msg-Id"
ROLLUP = "Nats-Rollup"
# Headers that change what the server does, and that the stand-in does not know.
_NOT_MODELLED = frozenset({"Nats-TTL", "Nats-Incr", "Nats-Schedule", EXPECTED_LAST_ID})
# The number of changes that a copy can be behind.
_CHANGES = 4096


class _Change(NamedTuple):
    """What one operation has done; the state before it."""

    added: list[StoredMessage]
    removed: list[StoredMessage]
    last: int
    last_time: int
    first_if_empty: int


class Staged:
    """The messages of a batch that were checked so far."""

    def __init__(self) -> None:
        self.n_bytes = self.n_messages = 0
        self.subjects = set[str]()
        self.message_ids = set[str]()
        self.expected: dict[str, int] = {}  # subject -> its last sequence before the batch


class Stream:
    """A stream of a server.

    config: as the server answers it.
    created: nanoseconds since 1970.
    clock: returns the time of the next message, in nanoseconds.
    """

    def __init__(self, config: dict[str, Any], created: int, clock: Callable[[], int]) -> None:
        self.config, self.created, self.store = config, created, Store()
        self._clock = clock
        self._message_ids: dict[str, int] = {}  # Nats-Msg-Id -> sequence
        self._changes: deque[_Change] = deque(maxlen=_CHANGES)

    @property
    def name(self) -> str:
        """Return the stream's name."""
        return str(self.config["name"])

    def takes(self, subject: str) -> bool:
        """Return whether messages of a subject are stored here."""
        return any(matches(pattern, subject) for pattern in self.config["subjects"])

    def copy_behind(self, changes: int | None) -> Store:
        """Return what a copy has that lacks the last changes.

        changes: the number of operations that it has not applied; None for all of them.
        """
        if changes is None:
            return Store()
        store = self.store.copy()
        for change in list(self._changes)[::-1][:changes]:
            for message in change.added:
                if store.get(message.sequence):
                    store.remove(message.sequence)
            for message in change.removed:
                store.add(message)
            store.last, store.last_time = change.last, change.last_time
            store.first_if_empty = change.first_if_empty
        return store

    def append(self, packet: Packet) -> tuple[int, bool]:
        """Store a message; return its sequence, and whether its id was known already.

        Raises ApiRefusal.
        """
        headers = decoded(packet.headers)
        self._check(packet, headers)
        self._check_expected(headers, packet.subject)
        message_id = headers.get(MESSAGE_ID, "")
        if message_id in self._message_ids:
            return self._message_ids[message_id], True
        self._check_rollup(headers)
        self._check_room(packet)
        change = self._begin()
        self.store_one(packet, headers, change)
        return self.store.last, False

    def append_all(self, packets: list[Packet]) -> int:
        """Store the messages of a batch, all or none; return the sequence of the last.

        Raises ApiRefusal.
        """
        staged = Staged()
        for packet in packets:
            self._check_staged(packet, decoded(packet.headers), staged)
        change = self._begin()
        for packet in packets:
            self.store_one(packet, decoded(packet.headers), change)
        return self.store.last

    def purge(self, subject: str, before: int, keep: int) -> int:
        """Remove messages; return how many.

        subject: only those that this covers; empty for all.
        before: only those of lower sequences; 0 for all.
        keep: leave so many of the last ones.
        """
        if before == 1:
            return 0
        everything = subject in ("", ">")
        gone = self.store.sequences_of("" if everything else subject)
        if before:
            gone = [sequence for sequence in gone if sequence < before]
        if keep:
            gone = gone[:-keep]
        change = self._begin()
        self._remove(gone, change)
        if everything and not keep:
            self._move_first(before)
        return len(gone)

    def delete(self, sequence: int) -> None:
        """Remove one message. Raises ApiRefusal."""
        if self.store.get(sequence) is None:
            raise ApiRefusal(self._not_deleted(sequence))
        self._remove([sequence], self._begin())

    def _not_deleted(self, sequence: int) -> errors.ApiError:
        """Return the error for a message that is not there."""
        if sequence > self.store.last:
            return errors.delete_failed("stream store EOF")
        if sequence < self.store.first:
            return errors.delete_failed("no message found")
        return errors.sequence_not_found(sequence)

    def store_one(self, packet: Packet, headers: Mapping[str, str], change: _Change) -> None:
        """Store a message that was checked, and remove what it replaces."""
        store, time = self.store, self._clock()
        store.last, store.last_time = store.last + 1, time
        message = StoredMessage(store.last, packet.subject, packet.headers, packet.body, time)
        store.add(message)
        change.added.append(message)
        if message_id := headers.get(MESSAGE_ID, ""):
            self._message_ids[message_id] = message.sequence
        most = self.config["max_msgs_per_subject"]
        if rollup := headers.get(ROLLUP):
            self._remove(store.sequences_of("" if rollup == "all" else packet.subject)[:-1], change)
        elif most > 0:
            self._remove(store.sequences_of(packet.subject)[:-most], change)

    def _begin(self) -> _Change:
        store = self.store
        change = _Change([], [], store.last, store.last_time, store.first_if_empty)
        self._changes.append(change)
        return change

    def _remove(self, sequences: list[int], change: _Change) -> None:
        change.removed.extend(self.store.remove(sequence) for sequence in sequences)

    def _move_first(self, before: int) -> None:
        """Let an empty stream begin after its last message, or at a sequence that comes later."""
        store = self.store
        if not len(store):
            store.last = max(store.last, before - 1)
            store.first_if_empty = store.last + 1

    def _check(self, packet: Packet, headers: Mapping[str, str]) -> None:
        if unknown := _NOT_MODELLED & headers.keys():
            raise NotImplementedError(f"the stand-in does not model the headers {unknown}")
        most = self.config["max_msg_size"]
        if 0 <= most < len(packet.headers) + len(packet.body):
            raise ApiRefusal(errors.MESSAGE_TOO_LARGE)
        if headers.get(_EXPECTED_STREAM, self.name) != self.name:
            raise ApiRefusal(errors.OTHER_STREAM)

    def _check_expected(self, headers: Mapping[str, str], subject: str) -> None:
        if (expected := headers.get(EXPECTED_LAST_OF_SUBJECT)) is not None:
            last = self.store.last_of(headers.get(_EXPECTED_SUBJECT, subject))
            found = last.sequence if last else 0
            if _number(expected) != found:
                raise ApiRefusal(errors.wrong_last(found))
        expected = headers.get(_EXPECTED_LAST)
        if expected is not None and _number(expected) != self.store.last:
            raise ApiRefusal(errors.wrong_last(self.store.last))

    def _check_rollup(self, headers: Mapping[str, str]) -> None:
        rollup = headers.get(ROLLUP)
        if rollup is None:
            return
        if not self.config["allow_rollup_hdrs"] or self.config["deny_purge"]:
            raise ApiRefusal(errors.NO_ROLLUP)
        if rollup not in ("sub", "all"):
            raise ApiRefusal(errors.rollup_failed(f'rollup value invalid: "{rollup}"'))

    def _check_room(self, packet: Packet) -> None:
        """Refuse a message beyond the bound, unless it replaces one that is as large."""
        bound = self.config["max_bytes"]
        if bound < 0:
            return
        if self.config["discard"] != "new":
            raise NotImplementedError("the stand-in does not discard old messages")
        size = stored_size(packet.subject, packet.headers, packet.body)
        if self.store.n_bytes + size <= bound:
            return
        most = self.config["max_msgs_per_subject"]
        of_subject = self.store.sequences_of(packet.subject)
        replaced = self.store.get(of_subject[0]) if 0 < most <= len(of_subject) else None
        if replaced is None or replaced.size < size:
            raise ApiRefusal(errors.BYTES_EXCEEDED)

    def _check_staged(self, packet: Packet, headers: Mapping[str, str], staged: Staged) -> None:
        """Check a message of a batch, whose earlier ones are not stored yet. Raises ApiRefusal."""
        if EXPECTED_LAST_ID in headers:
            raise ApiRefusal(errors.batch_header(EXPECTED_LAST_ID))
        self._check(packet, headers)
        if message_id := headers.get(MESSAGE_ID, ""):
            if message_id in staged.message_ids or message_id in self._message_ids:
                raise ApiRefusal(errors.BATCH_DUPLICATE)
            staged.message_ids.add(message_id)
        if (expected := headers.get(_EXPECTED_LAST)) is not None:
            last = self.store.last + staged.n_messages
            if _number(expected) != last:
                raise ApiRefusal(errors.wrong_last(last))
            if staged.n_messages:
                raise ApiRefusal(errors.WRONG_LAST_UNKNOWN)
        if (expected := headers.get(EXPECTED_LAST_OF_SUBJECT)) is not None:
            subject = headers.get(_EXPECTED_SUBJECT, packet.subject)
            if subject in staged.subjects:
                raise ApiRefusal(errors.WRONG_LAST_UNKNOWN)
            message = self.store.last_of(subject)
            found = message.sequence if message else 0
            if _number(expected) != found:
                raise ApiRefusal(errors.wrong_last(found))
        self._check_rollup(headers)
        if headers.get(ROLLUP) == "sub" and packet.subject in staged.subjects:
            raise ApiRefusal(errors.rollup_failed("batch rollup sub invalid"))
        if headers.get(ROLLUP) == "all" and staged.subjects:
            raise ApiRefusal(errors.rollup_failed("batch rollup all invalid"))
        staged.subjects.add(packet.subject)
        staged.n_messages += 1
        staged.n_bytes += stored_size(packet.subject, packet.headers, packet.body)
        bound = self.config["max_bytes"]
        if self.config["discard"] == "new" and 0 < bound < self.store.n_bytes + staged.n_bytes:
            raise ApiRefusal(errors.BYTES_EXCEEDED)


def _number(text: str) -> int:
    """Return a sequence in a header; -1, which is none, if it is no number."""
    return int(text) if text.isdecimal() else -1
