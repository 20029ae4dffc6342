"""How long a model is expected to learn samples, by what it took lately, or else by their size."""

from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import LEAST_PART_SAMPLES, PART_SAMPLES
from wolfstream.solver.prepare.named_rows import n_bytes

# A turn of a model takes about this long: time enough to be spent on matrix products, and little
# beside a second, which is the most that another model may have to wait.
TURN_SECONDS = 0.4
# Before anything was measured: of a sample, and of each of its numbers for each class.
_SAMPLE_SECONDS, _NUMBER_SECONDS = 1e-4, 3e-8


def seconds_of_sample(model: Model, head: HeadName, samples: Samples) -> float:
    """Return how long a model is expected to learn one of some samples, posted for a head."""
    measured = model.learning_time.of_sample(head)
    if measured is not None:
        return measured
    y = samples.y
    numbers = n_bytes(samples.X) / 8 / max(len(y), 1)
    classes = len(set(y)) if isinstance(y, list) else 1
    return _SAMPLE_SECONDS + _NUMBER_SECONDS * numbers * (1 + classes)


def samples_of_a_block(of_sample: float) -> int:
    """Return how many samples are learned at a time, if one takes so many seconds."""
    in_time = int(TURN_SECONDS / max(of_sample, 1e-9))
    return min(PART_SAMPLES, max(LEAST_PART_SAMPLES, in_time))
