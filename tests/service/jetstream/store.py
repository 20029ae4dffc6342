"""The messages of one stream, by sequence and by subject."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

from tests.service.jetstream.subjects import has_wildcard, matches

# The bytes that a file store adds to each message, and to the headers of one.
_RECORD_BYTES, _HEADER_BYTES = 30, 4


class StoredMessage(NamedTuple):
    """A message of a stream.

    time: nanoseconds since 1970.
    """

    sequence: int
    subject: str
    headers: bytes
    body: bytes
    time: int

    @property
    def size(self) -> int:
        """Return the bytes that a file store needs for it."""
        return stored_size(self.subject, self.headers, self.body)


def stored_size(subject: str, headers: bytes, body: bytes) -> int:
    """Return the bytes that a file store needs for a message."""
    size = _RECORD_BYTES + len(subject) + len(body)
    return size + _HEADER_BYTES + len(headers) if headers else size


class Store:
    """Messages in the order of their sequences.

    last: the sequence that was given last, also when its message is gone. first_if_empty: what a
    server names as the first sequence while there are no messages.
    """

    def __init__(self) -> None:
        self.last, self.last_time, self.n_bytes = 0, 0, 0
        self.first_if_empty = 0
        self._messages: dict[int, StoredMessage] = {}
        self._order: list[int] = []  # sequences, ascending
        self._of_subject: dict[str, list[int]] = {}  # subject -> sequences, ascending

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[StoredMessage]:
        return (self._messages[sequence] for sequence in self._order)

    @property
    def first(self) -> int:
        """Return the sequence of the first message, or the next one if there is none."""
        return self._order[0] if self._order else self.first_if_empty

    def copy(self) -> "Store":
        """Return a store with the same messages."""
        other = Store()
        other.last, other.last_time, other.n_bytes = self.last, self.last_time, self.n_bytes
        other.first_if_empty = self.first_if_empty
        other._messages, other._order = self._messages.copy(), self._order.copy()
        other._of_subject = {name: of.copy() for name, of in self._of_subject.items()}
        return other

    def add(self, message: StoredMessage) -> None:
        """Add a message, anywhere in the order."""
        self._messages[message.sequence] = message
        if self._order and self._order[-1] > message.sequence:
            insort(self._order, message.sequence)
        else:
            self._order.append(message.sequence)
        insort(self._of_subject.setdefault(message.subject, []), message.sequence)
        self.n_bytes += message.size

    def remove(self, sequence: int) -> StoredMessage:
        """Remove a message that is there, and return it."""
        message = self._messages.pop(sequence)
        del self._order[bisect_left(self._order, sequence)]
        of_subject = self._of_subject[message.subject]
        del of_subject[bisect_left(of_subject, sequence)]
        if not of_subject:
            del self._of_subject[message.subject]
        self.n_bytes -= message.size
        if not self._order:
            self.first_if_empty = self.last + 1
        return message

    def get(self, sequence: int) -> StoredMessage | None:
        """Return the message of a sequence."""
        return self._messages.get(sequence)

    def last_of(self, subject: str) -> StoredMessage | None:
        """Return the last message of a subject or a pattern."""
        last = max((self._of_subject[name][-1] for name in self._matching(subject)), default=0)
        return self._messages.get(last)

    def next_of(self, subject: str, sequence: int) -> StoredMessage | None:
        """Return the first message of a subject or a pattern that has a sequence or a higher one.

        subject: empty for all messages.
        """
        lists = [self._of_subject[name] for name in self._matching(subject)]
        if not subject:
            lists = [self._order]
        places = ((one, bisect_left(one, sequence)) for one in lists)
        found = min((one[place] for one, place in places if place < len(one)), default=0)
        return self._messages.get(found)

    def count_from(self, subject: str, sequence: int) -> int:
        """Return the number of messages of a subject that have a sequence or a higher one."""
        lists = [self._of_subject[name] for name in self._matching(subject)]
        if not subject:
            lists = [self._order]
        return sum(len(one) - bisect_left(one, sequence) for one in lists)

    def sequences_of(self, subject: str) -> list[int]:
        """Return the sequences of a subject or a pattern, ascending.

        subject: empty for all messages.
        """
        if not subject:
            return self._order.copy()
        return sorted(at for name in self._matching(subject) for at in self._of_subject[name])

    def subjects(self, pattern: str = ">") -> dict[str, int]:
        """Return the number of messages of each subject that a pattern covers."""
        return {name: len(self._of_subject[name]) for name in self._matching(pattern)}

    def last_per_subject(self, pattern: str) -> list[int]:
        """Return the last sequence of each subject that a pattern covers, ascending."""
        return sorted(self._of_subject[name][-1] for name in self._matching(pattern))

    def _matching(self, subject: str) -> list[str]:
        if not has_wildcard(subject):
            return [subject] if subject in self._of_subject else []
        return [name for name in self._of_subject if matches(subject, name)]
