"""Requests that failed on the server's side: its storage, a learner or its own code."""

from wolfstream.service.errors.unavailable import Unavailable


class StorageFailed(Unavailable):
    """The journal could not be written; nothing was learned."""

    slug, title = "storage-failed", "The journal could not be written"
    retry_after_seconds = 10


class InDoubt(StorageFailed):
    """A commit failed in such a way that it may have been written."""

    outcome = "unknown"
    slug, title = "in-doubt", "It is not known whether the samples were written"


class NotLeader(StorageFailed):
    """Another replica of the fleet learns the model; nothing was learned here."""

    slug, title = "not-leader", "Another replica leads the model"
    retry_after_seconds = 1


class AnswerMissing(StorageFailed):
    """A request was learned before, but its answer is lost."""

    outcome = "durable"
    slug, title = "answer-missing", "The request was learned, and its answer is lost"


class ServerFailed(Unavailable):
    """The server met an error that it did not expect; nothing was learned."""

    slug, title = "server-failed", "The server failed"
    retry_after_seconds = 10


class ModelBroken(Unavailable):
    """Learning failed inside this model; its journal is intact."""

    slug, title = "model-broken", "The model stopped learning"
    retry_after_seconds = 60


class NotYetLearned(Unavailable):
    """The samples are durable, and the model's learner failed; a restart learns them."""

    outcome = "durable"
    slug, title = "not-yet-learned", "The samples are durable, but not learned yet"
    retry_after_seconds = 60
