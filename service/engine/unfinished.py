"""Requests whose commit has no answer yet: their models wait for it, and the others go on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from service.engine.admission import Admission
from service.engine.commits import Commits
from service.engine.duplicates import Duplicates
from service.engine.late_labels import LabelRequest
from service.engine.learn_request import LearnRequest, Reply
from service.errors import StorageFailed
from service.model.live import Model
from service.storage.journal import Unfinished


class Committed(NamedTuple):
    """A commit, with the models whose part of it has an outcome.

    duplicates: of the requests in it. failures: the models of which nothing was written.
    """

    admission: Admission
    duplicates: Duplicates
    failures: Mapping[int, StorageFailed]


class UnfinishedCommits:
    """The parts of commits that are unfinished, by their models. Used by the writer's thread."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._parts: dict[int, tuple[Admission, Duplicates]] = {}

    @property
    def models(self) -> set[Model]:
        """The models that wait; nothing else of theirs may begin."""
        return self._commits.unfinished

    def waiting(self) -> Iterator[LearnRequest | LabelRequest]:
        """Yield the requests that have no answer yet."""
        for admission, _ in self._parts.values():
            yield from (item.request for item in admission.admitted)
            yield from (request for request, _ in admission.settled)

    def leave(self, committed: Committed) -> Committed:
        """Keep what belongs to models whose commit is unfinished; return the rest."""
        admission, duplicates, failures = committed
        unfinished = [m for m, error in failures.items() if isinstance(error, Unfinished)]
        for model in unfinished:
            self._parts[model] = _of({model}, admission), duplicates
        if not unfinished:
            return committed
        others = {model.id for model in _models(admission)} - set(unfinished)
        return Committed(_of(others, admission, admission.refused), duplicates, failures)

    def take(self, seconds: float) -> Iterator[Committed]:
        """Yield what has ended by now, or ends within these seconds."""
        for model, error in self._commits.finished(seconds).items():
            if model in self._parts:
                admission, duplicates = self._parts.pop(model)
                yield Committed(admission, duplicates, {} if error is None else {model: error})


def _models(admission: Admission) -> Iterator[Model]:
    yield from (item.request.model for item in admission.admitted)
    yield from (item.request.model for item in admission.remembered)
    yield from (request.model for request, _ in admission.settled)


def _of(models: Collection[int], admission: Admission, refused: Sequence[Reply] = ()) -> Admission:
    """Return the part of an admission for some models."""
    return Admission(
        [item for item in admission.admitted if item.request.model.id in models],
        [item for item in admission.remembered if item.request.model.id in models],
        [item for item in admission.settled if item[0].model.id in models],
        list(refused),
    )
