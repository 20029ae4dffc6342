"""Models that learn no more, because their states are between two entries of the journal."""

import logging

from wolfstream.service.errors import NotYetLearned
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model

logger = logging.getLogger(__name__)


def mark_broken(learner: Learner, error: Exception) -> NotYetLearned:
    """Let a model learn no more, because its state is between two entries of the journal."""
    model = learner.model
    learner.failed_live = True
    logger.exception("model %s: learning failed", model.name)
    model.broken = f"learning failed after sequence {learner.sequence}: {error}"
    return not_yet_learned(model)


def not_yet_learned(model: Model) -> NotYetLearned:
    """Return the answer to a request that is in the journal of a broken model."""
    return NotYetLearned(
        f"model {model.name!r}: {model.broken}; the request is in the journal, and a restart "
        "carries it out"
    )


def learned_elsewhere(model: Model) -> NotYetLearned:
    """Return the answer to a request that is in the log of a model that is led elsewhere since."""
    return NotYetLearned(
        f"another replica leads model {model.name!r} since; the request is in its log, and that "
        "replica learns it. Do not send the samples again, unless under the same Idempotency-Key"
    )
