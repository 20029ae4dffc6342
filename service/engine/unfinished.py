"""Requests whose commit has no answer yet: their models wait for it, and the others go on."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from wolfstream.service.engine.admission import Admission
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.duplicates import Duplicates
from wolfstream.service.engine.waiter import Waiter
from wolfstream.service.errors import StorageFailed
from wolfstream.service.model.live import Model
from wolfstream.service.storage.journal import Unfinished
from wolfstream.service.storage.term import Term


class Committed(NamedTuple):
    """A commit, as far as it has an outcome.

    Attributes:
        admission: the requests in it.
        duplicates: of these requests.
        failures: why nothing was written, by the numbers of models.
    """

    admission: Admission
    duplicates: Duplicates
    failures: Mapping[int, StorageFailed]


class UnfinishedCommits:
    """The parts of commits that are unfinished. Used by the writer's thread.

    A part belongs to its term: by the time that it ends, its model may have another one.
    """

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._parts: dict[Term, tuple[Admission, Duplicates]] = {}

    @property
    def models(self) -> set[Model]:
        """The models that wait; nothing else of theirs may begin."""
        return self._commits.unfinished

    def waiting(self) -> Iterator[Waiter]:
        """Yield what waits for the answers to requests that have none yet."""
        for admission, duplicates in self._parts.values():
            yield from admission.waiting()
            yield from duplicates.waiting()

    def leave(
        self, admission: Admission, duplicates: Duplicates, failures: Mapping[Term, StorageFailed]
    ) -> Committed:
        """Keep what belongs to terms whose part is unfinished; return the rest."""
        if not failures:
            return Committed(admission, duplicates, {})
        others = {model.id for model in admission.models}
        for term, error in failures.items():
            if isinstance(error, Unfinished):
                self._parts[term] = admission.of({term.model}), duplicates
                others.discard(term.model)
        of_models = {term.model: error for term, error in failures.items()}
        if len(others) == len(admission.models):
            return Committed(admission, duplicates, of_models)
        rest = admission.of(others)._replace(refused=admission.refused)
        return Committed(rest, duplicates, of_models)

    def take(self, seconds: float) -> Iterator[Committed]:
        """Yield what has ended by now, or ends within these seconds."""
        for term, error in self._commits.finished(seconds).items():
            if term in self._parts:
                admission, duplicates = self._parts.pop(term)
                failures = {} if error is None else {term.model: error}
                yield Committed(admission, duplicates, failures)
