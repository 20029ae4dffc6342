"""Commits without an outcome yet: their models wait for it while the others go on."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from wolfstream.service.engine.admission import Admission
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.duplicates import Duplicates
from wolfstream.service.engine.queue_items import Waiter
from wolfstream.service.errors import StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.storage.journal import Unfinished
from wolfstream.service.storage.term import Term


class CommitOutcome(NamedTuple):
    """A commit whose outcome is known for all of its models.

    Attributes:
        admission: the requests in it.
        duplicates: of these requests.
        failures: model id -> why nothing was written for it.
    """

    admission: Admission
    duplicates: Duplicates
    failures: Mapping[int, StorageFailed]


class UnfinishedCommits:
    """The unfinished parts of commits. Used by the writer's thread.

    A part belongs to a term, not to a model: by the time that it ends, its model may have another
    term.
    """

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        # term -> the requests of its model in the commit, and the commit's duplicates
        self._parts: dict[Term, tuple[Admission, Duplicates]] = {}

    @property
    def models(self) -> set[Model]:
        """The models that wait; no other request of theirs may begin."""
        return self._commits.unfinished

    def waiting(self) -> Iterator[Waiter]:
        """Yield the waiters of the requests in unfinished parts."""
        for admission, duplicates in self._parts.values():
            yield from admission.waiting()
            yield from duplicates.waiting()

    def leave(
        self, admission: Admission, duplicates: Duplicates, failures: Mapping[Term, StorageFailed]
    ) -> CommitOutcome:
        """Set unfinished parts aside; return the rest of the commit."""
        if not failures:
            return CommitOutcome(admission, duplicates, {})
        others = {model.id for model in admission.models}
        for term, error in failures.items():
            if isinstance(error, Unfinished):
                self._parts[term] = admission.part_for({term.model}), duplicates
                others.discard(term.model)
        reasons = {term.model: error for term, error in failures.items()}
        if len(others) == len(admission.models):
            return CommitOutcome(admission, duplicates, reasons)
        rest = admission.part_for(others)._replace(refused=admission.refused)
        return CommitOutcome(rest, duplicates, reasons)

    def take(self, seconds: float) -> Iterator[CommitOutcome]:
        """Yield the parts that have ended by now, or end within these seconds."""
        for term, error in self._commits.finished(seconds).items():
            if term in self._parts:
                admission, duplicates = self._parts.pop(term)
                failures = {} if error is None else {term.model: error}
                yield CommitOutcome(admission, duplicates, failures)
