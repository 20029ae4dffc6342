"""The expected time of learning, from the model's recent times, or else from its size."""

from wolfstream.service.model.live import Model
from wolfstream.service.samples.tasks import task_of
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import LEAST_PART_SAMPLES, PART_SAMPLES
from wolfstream.solver.prepare.named_rows import n_bytes

# About how long a turn takes: enough to be spent in matrix products rather than around them, and
# little beside a second, the most that another model may have to wait.
TURN_SECONDS = 0.4
# Before anything was measured: for a sample, and for each of its numbers times each class.
_SAMPLE_SECONDS, _NUMBER_SECONDS = 1e-4, 3e-8


def seconds_per_sample(model: Model, head: HeadName, samples: Samples) -> float:
    """Return the seconds that a model is expected to take for each of these samples."""
    measured = model.learning_time.seconds_per_sample(head)
    if measured is not None:
        return measured
    y = samples.y
    numbers = n_bytes(samples.X) / 8 / max(len(y), 1)
    classes = task_of(y).n_classes(y)
    return _SAMPLE_SECONDS + _NUMBER_SECONDS * numbers * (1 + classes)


def block_size(sample_seconds: float) -> int:
    """Return how many samples form a block, if each takes this many seconds."""
    in_time = int(TURN_SECONDS / max(sample_seconds, 1e-9))
    return min(PART_SAMPLES, max(LEAST_PART_SAMPLES, in_time))
