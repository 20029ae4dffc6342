"""A term: the right to write one model's log, held by one object that can lose it once.

    UnownedLog ──begin_term──► Term ──first refusal, unproven doubt, end()──► over
       ▲                         │  append, roll back, exchange, answers, drop, delete
       └──── a new UnownedLog ◄──┘  (nothing leads back)

    LIVE ──begin──► UNFINISHED ──► LIVE       the commit is stored
                        │    └──► IN_DOUBT    it may be stored: nothing else is written
                        │              └────► LIVE   it is not, or `replayed` was called
                        └───────────► OVER    the log refused it: another term has begun

Whoever holds no living term cannot write: appending takes terms, never the numbers of models.
"""

import enum
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

from wolfstream.service.errors import NotLeader, StartupError, StorageFailed
from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback
from wolfstream.service.storage.log import LogReader


class TermState(enum.Enum):
    """What a term may do now; see the picture above."""

    LIVE = "live"
    UNFINISHED = "unfinished"
    IN_DOUBT = "in doubt"
    OVER = "over"


class Part(NamedTuple):
    """What one commit writes for one model.

    Attributes:
        entries: in ascending order of their sequences. A prediction, a fit or a checkpoint comes
            after everything else at its sequence. Without any, the commit proves that the term
            is not over.
        keys: those of the entries, without answers, and earlier ones whose answers are known by
            now.
    """

    entries: Sequence[Entry] = ()
    keys: Sequence[KeyedRequest] = ()


class Term(ABC):
    """The right to write one model's log. Used by the writer's thread, except `confirm`.

    Methods that write raise NotLeader if the term is over, and end it where the log refuses them
    because another term has begun. They raise StorageFailed where nothing was written, and InDoubt
    where that is unknown.

    Attributes:
        log: what the term has read and written. Nothing of a later term is ever in it.
        state: see `TermState`.
        began: where the term began in the log; later terms of a model have larger numbers.
        on_end: called once, with the term, when it is over; on any thread.
        on_doubt: called with the term whenever a commit is in doubt.
    """

    def __init__(self, log: LogReader, began: int) -> None:
        self.log, self.began = log, began
        self.state = TermState.LIVE
        self.on_end: Callable[[Term], None] = _nothing
        self.on_doubt: Callable[[Term], None] = _nothing
        # Around changes of `state`: `confirm` may end the term on another thread.
        self._changing = threading.Lock()
        # The part of the commit that is in doubt; None unless `state` is IN_DOUBT.
        self._in_doubt: Part | None = None
        # Whether that commit was found in the log, so that its learner has to replay it.
        self._found = False

    @property
    def model(self) -> int:
        """The number of the model."""
        return self.log.model

    @property
    def over(self) -> bool:
        """Whether nothing can be written any more."""
        return self.state is TermState.OVER

    def end(self) -> None:
        """End the term for good; a second call does nothing."""
        with self._changing:
            ends, self.state = self.state is not TermState.OVER, TermState.OVER
        if ends:
            self.on_end(self)

    def check(self) -> None:
        """Raise NotLeader or StorageFailed unless something can be written now."""
        if self.state is TermState.OVER:
            raise self.not_leader()
        if self.state is TermState.UNFINISHED:
            raise StorageFailed(f"the {self.log.name} has not answered yet; nothing was learned")
        if self.state is TermState.IN_DOUBT:
            raise StorageFailed(
                f"an earlier commit of the {self.log.name} is in doubt; nothing was learned"
            )

    def begin(self) -> None:
        """Note that a commit is under way. Raises NotLeader, StorageFailed."""
        with self._changing:
            self.check()
            self.state = TermState.UNFINISHED

    def finish(self) -> None:
        """Note that the commit under way was stored, or that nothing of it was."""
        self._go_on(TermState.UNFINISHED, TermState.LIVE)

    def _go_on(self, before: TermState, after: TermState) -> None:
        """Change from one state into another, unless the term is over."""
        with self._changing:
            if self.state is before:
                self.state = after

    def not_leader(self) -> NotLeader:
        """Return the error of a term that is over."""
        return NotLeader(f"another replica writes the {self.log.name}; nothing was learned here")

    def doubt(self, part: Part) -> None:
        """Write nothing more until it is known whether the part under way was stored."""
        self._in_doubt, self._found = part, False
        self._go_on(TermState.UNFINISHED, TermState.IN_DOUBT)
        self.on_doubt(self)

    def settle(self) -> bool:
        """Find out whether the commit in doubt was stored; return whether it was.

        If it was not, it never will be, and the term goes on. If it was, the doubt lasts until
        `replayed`: its samples are in the log, and not in the learner.

        Raises StorageFailed while it cannot be known, and NotLeader, which ends the term, where
        another one has begun.
        """
        if self.state is TermState.OVER:
            raise self.not_leader()
        if self._in_doubt is not None and not self._found:
            self._found = self._resolve(self._in_doubt)
            if not self._found:
                self._end_doubt()
        return self._found

    def doubtful_blocks(self, sequence: int) -> Iterator[list[Entry]]:
        """Yield the blocks of the commit that was in doubt, for a learner to replay.

        Args:
            sequence: of the learner, which must be where the commit begins. Any other one would
                learn samples twice, or not at all.

        Raises StartupError for another learner, and where there is nothing to replay.
        """
        part = self._in_doubt
        if part is None or not part.entries or not self._found:
            raise StartupError(f"the {self.log.name} has no commit that is to be replayed")
        first = part.entries[0]
        if sequence != first.sequence - first.samples:
            raise StartupError(
                f"a commit of the {self.log.name} begins after sequence "
                f"{first.sequence - first.samples}, and the learner is at {sequence}"
            )
        return blocks_of(part.entries)

    def replayed(self, up_to: int) -> None:
        """End the doubt: the learner has the commit that was found.

        Args:
            up_to: the sequence of the learner, which must be that of the commit's last sample.

        Raises StartupError for a learner elsewhere.
        """
        part = self._in_doubt
        last = None if part is None else part.entries[-1].sequence
        if up_to != last:
            raise StartupError(
                f"a commit of the {self.log.name} ends at {last}, the learner stopped at {up_to}"
            )
        self._end_doubt()

    def abandon_replay(self) -> None:
        """End the doubt of a model that is broken: its log has what it will never learn."""
        self._end_doubt()

    def _end_doubt(self) -> None:
        self._in_doubt, self._found = None, False
        self._go_on(TermState.IN_DOUBT, TermState.LIVE)

    def stands_behind(self, learned: int, snapshots: Sequence[int]) -> int:
        """Return the sequence that a rollback must come after.

        A model that could not be loaded has an empty learner, and a log that was purged has no
        samples. So all that names a sequence counts: learner, log, snapshots and the mark of what
        was acknowledged.

        Args:
            learned: the sequence of the learner.
            snapshots: the sequences of the model's snapshots.
        """
        log = self.log
        return max(learned, log.end(), log.last_event(), self.acknowledged(), *snapshots)

    @abstractmethod
    def _resolve(self, part: Part) -> bool:
        """Return whether a part in doubt was stored; see `settle`."""

    @abstractmethod
    def acknowledged(self) -> int:
        """Return the sequence up to which the model was durable, known from outside the log.

        It is at most the true one; 0 where nothing is known.
        """

    @abstractmethod
    def note_durable(self, sequence: int) -> None:
        """Note, outside the log, that the model is durable up to a sequence."""

    @abstractmethod
    def confirm(self) -> None:
        """Raise NotLeader, and end the term, if the log has something of a later one.

        Called before something is answered that needs no append; on any thread but the event
        loop. Raises StorageFailed where it cannot be known now.
        """

    @abstractmethod
    def roll_back(
        self, rollback: Rollback, learned: int, pinned: Collection[str], kept: int
    ) -> list[str]:
        """Write a rollback after everything else; durable on return.

        Keys of entries after `learned` are forgotten: these entries never will be learned.

        Args:
            rollback: to write, at a sequence that `stands_behind` returned.
            learned: the sequence up to which entries were, or may have been, learned.
            pinned: the digests of all states that are pinned now.
            kept: how many of the last rollbacks keep their pinned states.

        Returns the digests that nothing needs any more. They may be unpinned at any later time.
        """

    @abstractmethod
    def write_answers(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the answers of known keys; the first answer of each key counts."""

    @abstractmethod
    def shorten_answers(self, shorter: Sequence[KeyedRequest]) -> None:
        """Write shorter answers, which replace the first ones."""

    @abstractmethod
    def forget_keys(self, up_to: int) -> None:
        """Forget the keys of entries up to a sequence."""

    @abstractmethod
    def drop(self, up_to: int) -> None:
        """Forget what a snapshot at a sequence makes superfluous, keys excepted.

        Those are entries up to the sequence, and predictions, fits, checkpoints, rollbacks and
        epochs before it.
        """

    @abstractmethod
    def drop_predictions(self, up_to: int) -> None:
        """Forget predictions up to one, counted in rows, of which none waits any longer.

        Where no sample comes, no snapshot has a later sequence: `drop` would let them grow
        without a bound.
        """


class UnownedLog(LogReader, Protocol):
    """A log that is read and not written here, and the one way to become its writer."""

    def begin_term(self, sequence: int, epoch: str | None = None) -> Term:
        """Become the only writer of the log, behind exactly what was read.

        From then on the log takes nothing from earlier terms, and is the new term's.

        Args:
            sequence: that of the learner. The term begins there, or after what the log has.
            epoch: that begins with the term; None goes on in the present one, where no other
                process can write the log.

        Raises NotLeader where the log has something that was not read or not learned here,
        StorageFailed, StartupError.
        """


def blocks_of(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries of one commit, block by block; only entries with samples share one."""
    block: list[Entry] = []
    for entry in entries:
        if block and not (entry.samples and _shared(block[-1]) == _shared(entry)):
            yield block
            block = []
        block.append(entry)
    if block:
        yield block


def _shared(entry: Entry) -> tuple[int, str]:
    """Return what the entries of a block have in common."""
    return entry.block, entry.kind


def _nothing(_: Term) -> None:
    """Do nothing."""
