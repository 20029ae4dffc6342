"""A term: the right to write one model's log, which one object holds until it loses it for good.

    UnownedLog ──begin_term──► Term ──first refusal, unproven doubt, end()──► over
       ▲                         │  append, roll back, exchange, answers, drop, delete
       └──── a new UnownedLog ◄──┘  (nothing leads back)

    LIVE ──begin──► UNFINISHED ──► LIVE       the commit is stored
                        │    └──► IN_DOUBT    it may be stored: nothing else is written
                        │              └────► LIVE   it is not, or `replayed` was called
                        └───────────► OVER    the log refused it: another term has begun

Without a live term nothing can be written: `Journal.append` takes terms, never model numbers.
"""

import enum
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from wolfstream.service.errors import NotLeader, StartupError, StorageFailed
from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.log import LogReader


class TermState(enum.Enum):
    """What a term may do now: the second diagram above."""

    LIVE = "live"
    UNFINISHED = "unfinished"
    IN_DOUBT = "in doubt"
    OVER = "over"


class Part(NamedTuple):
    """What one commit writes for one model.

    Attributes:
        entries: the entries, by ascending sequence. A prediction, fit or checkpoint comes after
            everything else at its sequence. A part without entries only proves that the term is
            not over.
        keys: the keys of these entries, without responses, and earlier keys whose responses are
            now known.
    """

    entries: Sequence[Entry] = ()
    keys: Sequence[KeyedRequest] = ()


class Term(ABC):
    """The right to write one model's log. Used by the writer's thread, except `confirm`.

    Methods that write raise NotLeader if the term is over; if the log refuses them because another
    term has begun, they also end it. They raise StorageFailed if nothing was written, and InDoubt
    if that is unknown.

    Attributes:
        log: what the term has read and written; it never has anything of a later term.
        state: see `TermState`.
        began: the offset in the log at which the term began; it increases from term to term.
        confirmed: when the log was last known to have nothing of a later term, by boot_seconds().
        on_end: called once with the term when it is over, on any thread.
        on_doubt: called with the term each time a commit is in doubt.
    """

    def __init__(self, log: LogReader, began: int, high_water: HighWater) -> None:
        """Begin a term.

        Args:
            log: what was read, which the term continues.
            began: see the attributes.
            high_water: marks of this machine, outside all logs, of what was durable.
        """
        self.log, self.began, self._high_water = log, began, high_water
        self.confirmed = float("-inf")
        self.state = TermState.LIVE
        self.on_end: Callable[[Term], None] = _nothing
        self.on_doubt: Callable[[Term], None] = _nothing
        # Guards changes of `state`: `confirm` may end the term on another thread.
        self._changing = threading.Lock()
        # The part of the commit in doubt; None unless `state` is IN_DOUBT.
        self._in_doubt: Part | None = None
        # Whether that part turned out to be in the log, so the learner has to replay it.
        self._in_log = False

    @property
    def model(self) -> int:
        """The number of the model."""
        return self.log.model

    @property
    def over(self) -> bool:
        """Whether nothing more can be written."""
        return self.state is TermState.OVER

    def end(self) -> None:
        """End the term for good; a second call does nothing."""
        with self._changing:
            ends, self.state = self.state is not TermState.OVER, TermState.OVER
        if ends:
            self.on_end(self)

    def check(self) -> None:
        """Raise NotLeader or StorageFailed unless the term can write now."""
        if self.state is TermState.OVER:
            raise self.not_leader()
        if self.state is TermState.UNFINISHED:
            raise StorageFailed(f"the {self.log.name} has not answered yet; nothing was learned")
        if self.state is TermState.IN_DOUBT:
            raise StorageFailed(
                f"an earlier commit of the {self.log.name} is in doubt; nothing was learned"
            )

    def begin(self) -> None:
        """Record that a commit is under way. Raises NotLeader, StorageFailed."""
        with self._changing:
            self.check()
            self.state = TermState.UNFINISHED

    def finish(self) -> None:
        """Record that the commit under way was stored, or that nothing of it was."""
        self._change_state(TermState.UNFINISHED, TermState.LIVE)

    def _change_state(self, before: TermState, after: TermState) -> None:
        """Change from one state into another, unless the term is over."""
        with self._changing:
            if self.state is before:
                self.state = after

    def not_leader(self) -> NotLeader:
        """Return the error for a term that is over."""
        return NotLeader(f"another replica writes the {self.log.name}; nothing was learned here")

    def doubt(self, part: Part) -> None:
        """Put the part under way in doubt: nothing else is written until the doubt ends."""
        self._in_doubt, self._in_log = part, False
        self._change_state(TermState.UNFINISHED, TermState.IN_DOUBT)
        self.on_doubt(self)

    def resolve(self) -> bool:
        """Find out whether the commit in doubt was stored; return whether it was.

        If not, it never will be, and the term continues. If so, the doubt lasts until `replayed`:
        the log has samples that the learner lacks.

        Raises StorageFailed while this is unknown, and NotLeader, which ends the term, if another
        term has begun.
        """
        if self.state is TermState.OVER:
            raise self.not_leader()
        if self._in_doubt is not None and not self._in_log:
            self._in_log = self._is_stored(self._in_doubt)
            if not self._in_log:
                self._end_doubt()
        return self._in_log

    def doubtful_blocks(self, sequence: int) -> Iterator[list[Entry]]:
        """Yield the blocks of the commit that was in doubt, for the learner to replay.

        Args:
            sequence: the learner's sequence. The commit must begin there: otherwise samples would
                be learned twice or not at all.

        Raises StartupError for another sequence, and if there is nothing to replay.
        """
        part = self._in_doubt
        if part is None or not part.entries or not self._in_log:
            raise StartupError(f"the {self.log.name} has no commit to replay")
        first = part.entries[0]
        if sequence != first.sequence - first.samples:
            raise StartupError(
                f"a commit of the {self.log.name} begins after sequence "
                f"{first.sequence - first.samples}, but the learner is at {sequence}"
            )
        return split_blocks(part.entries)

    def replayed(self, up_to: int) -> None:
        """End the doubt after the learner has replayed the commit.

        Args:
            up_to: the learner's sequence, which must be that of the commit's last sample.

        Raises StartupError for another sequence.
        """
        part = self._in_doubt
        last = None if part is None else part.entries[-1].sequence
        if up_to != last:
            raise StartupError(
                f"a commit of the {self.log.name} ends at {last}, the learner stopped at {up_to}"
            )
        self._end_doubt()

    def abandon_replay(self) -> None:
        """End the doubt of a broken model, which will never learn the commit."""
        self._end_doubt()

    def _end_doubt(self) -> None:
        self._in_doubt, self._in_log = None, False
        self._change_state(TermState.IN_DOUBT, TermState.LIVE)

    def highest_sequence(self, learned: int, snapshots: Sequence[int]) -> int:
        """Return the highest sequence that the model ever had, which a rollback must exceed.

        The learner of a model that could not be loaded is empty, and a purged log has no samples.
        So learner, log, snapshots and the mark of what was acknowledged all count.

        Args:
            learned: the learner's sequence.
            snapshots: the sequences of the model's snapshots.
        """
        log = self.log
        return max(learned, log.end(), log.last_event(), self.acknowledged(), *snapshots)

    @abstractmethod
    def _is_stored(self, part: Part) -> bool:
        """Return whether a part in doubt was stored; raise like `resolve`."""

    def acknowledged(self) -> int:
        """Return the sequence up to which the model is marked as durable outside the log.

        It may be too low, never too high; 0 if nothing is marked.
        """
        return self._high_water.sequence(self.model)

    def mark_durable(self, sequence: int) -> None:
        """Mark outside the log that the model is durable up to a sequence."""
        self._high_water.mark(self.model, sequence)

    @abstractmethod
    def confirm(self) -> None:
        """Raise NotLeader, and end the term, if the log has anything of a later term.

        Called before a response that needed no append, on any thread but the event loop. Raises
        StorageFailed if this cannot be known now.
        """

    def begin_to_confirm(self) -> "Future[None]":
        """Begin `confirm` on any thread, and return its result."""
        confirmed = Future[None]()
        try:
            self.confirm()
        except StorageFailed as error:
            confirmed.set_exception(error)
        else:
            confirmed.set_result(None)
        return confirmed

    @abstractmethod
    def roll_back(
        self, rollback: Rollback, learned: int, pinned: Collection[str], kept: int
    ) -> list[str]:
        """Write a rollback after everything else; durable on return.

        The keys of entries after `learned` are forgotten: these entries will never be learned.

        Args:
            rollback: the rollback, at the sequence that `highest_sequence` returned.
            learned: the sequence up to which entries were, or may have been, learned.
            pinned: the digests of all states pinned now.
            kept: the number of last rollbacks whose pinned states are kept.

        Returns the digests that are no longer needed; they may be unpinned at any later time.
        """

    @abstractmethod
    def write_answers(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the responses of known keys; the first response of each key counts."""

    @abstractmethod
    def shorten_answers(self, shorter: Sequence[KeyedRequest]) -> None:
        """Replace stored responses by shorter ones."""

    @abstractmethod
    def forget_keys(self, up_to: int) -> None:
        """Forget the keys of entries up to a sequence."""

    @abstractmethod
    def drop(self, up_to: int) -> None:
        """Forget what a snapshot at a sequence replaces, except keys.

        Those are samples up to the sequence, and predictions, fits, checkpoints, rollbacks and
        epochs before it.
        """

    @abstractmethod
    def drop_predictions(self, up_to: int) -> None:
        """Forget predictions whose rows no longer wait for labels.

        Without it, predictions would pile up while no samples arrive: `drop` needs a snapshot of
        a later sequence.

        Args:
            up_to: the number of the last row to forget, over all predictions of the model.
        """


class UnownedLog(LogReader):
    """A log that this process reads, with the only way to become its writer."""

    @abstractmethod
    def begin_term(self, sequence: int, epoch: str | None = None) -> Term:
        """Become the only writer of the log, directly after what was read.

        From then on the log refuses earlier terms, and this object belongs to the new term.

        Args:
            sequence: the learner's sequence; the term begins there, or at the end of the log if
                that is later.
            epoch: the epoch that begins with the term. None stays in the current epoch, which is
                safe only where no other process can write the log.

        Raises NotLeader if the log has anything that was not read or not learned here, and
        StorageFailed or StartupError.
        """


def split_blocks(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries of a commit, a list per block; only entries with samples share one."""
    block: list[Entry] = []
    for entry in entries:
        if block and not (entry.samples and _block_key(block[-1]) == _block_key(entry)):
            yield block
            block = []
        block.append(entry)
    if block:
        yield block


def _block_key(entry: Entry) -> tuple[int, str]:
    """Return what the entries of a block have in common."""
    return entry.block, entry.kind


def _nothing(_: Term) -> None:
    """Do nothing."""
