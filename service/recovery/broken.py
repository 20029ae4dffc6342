"""Models that can learn no more, because their state is between two entries of the log.

Learning has failed, or the server stops. Such a model predicts with its last published view. A
restart or a rollback brings it back.
"""

import logging

from wolfstream.service.errors import NotYetLearned
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model

logger = logging.getLogger(__name__)


def mark_broken(learner: Learner, error: Exception) -> NotYetLearned:
    """Mark a model broken after learning failed midway; return the reply to its requests."""
    model = learner.model
    learner.failed_live = True
    logger.exception("learning failed, model stopped: model=%s", model.name)
    model.broken = f"learning failed after sequence {learner.sequence}: {error_text(error)}"
    return not_yet_learned(model)


def mark_stopped(learner: Learner) -> NotYetLearned:
    """Let a model learn no more in a server that stops; return the reply to its requests."""
    learner.failed_live = True
    learner.model.broken = f"the server stops after sequence {learner.sequence}"
    return not_yet_learned(learner.model)


def error_text(error: Exception) -> str:
    """Return an error as text; a lack of memory, whose own text says nothing, as advice."""
    if isinstance(error, MemoryError):
        return (
            "the process got no more memory; DELETE models that are not used, or give the server "
            "more (WOLFSTREAM_MEMORY_BYTES, or the limit of its container), and start it again"
        )
    return str(error) or type(error).__name__


def not_yet_learned(model: Model) -> NotYetLearned:
    """Return the reply to a request that is in the log of a broken model."""
    return NotYetLearned(
        f"model {model.name!r}: {model.broken}; the request is in the journal, and a restart "
        "carries it out"
    )


def learned_elsewhere(model: Model) -> NotYetLearned:
    """Return the reply to a request that is in the log of a model that another replica leads."""
    return NotYetLearned(
        f"another replica leads model {model.name!r} since; the request is in its log, and that "
        "replica learns it. Do not send the samples again, unless under the same Idempotency-Key"
    )
