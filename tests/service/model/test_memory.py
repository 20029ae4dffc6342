"""The memory of all models, and what each head says that it will grow by."""

import numpy as np
import pytest

from wolfstream.service.errors import ModelsFull
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.memory import ModelMemory
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import ModelSpec

MB = 1 << 20
NO_BOUND = 1 << 50
# What estimates leave out: buffers of a block, and classes in arrays that are small.
SLACK = 64 << 10
BLOCKS = [1, 1, 7, 60, 200, 1, 400, 1, 1]


def learner_of(spec: ModelSpec, name: str = "m") -> Learner:
    return Learner(Model(1, name, spec), "epoch")


def samples_of(spec: ModelSpec, n: int, seed: int, classes: int = 3) -> Samples:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 6))
    if spec.task == "regression":
        return Samples(X, random.normal(size=n))
    return Samples(X, [int(label) for label in random.integers(0, classes, n)])


def specs() -> list[ModelSpec]:
    return [
        ModelSpec(),
        ModelSpec.model_validate({"task": "regression"}),
        *(spec for kind in KINDS.values() for spec in kind.specs()),
    ]


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: f"{spec.task}-{'-'.join(spec.heads)}")
def test_growth_is_not_underestimated(spec: ModelSpec):
    learner, memory = learner_of(spec), ModelMemory(NO_BOUND)
    head = next(head for head in learner.model.head_of.values() if head is not None)
    for seed, n in enumerate(BLOCKS):
        samples = samples_of(spec, n, seed)
        memory.note(learner.model, learner.n_bytes)
        Draft(learner, Limits(100, 1000, memory=memory)).add(head, samples)
        taken = memory.n_bytes
        learner.absorb(head, samples)
        learner.publish()
        assert learner.n_bytes <= taken + SLACK


def test_full_default_model_stops_growing():
    spec = ModelSpec.model_validate({"working_set": {"max_size": 100}})
    learner, memory = learner_of(spec), ModelMemory(NO_BOUND)
    for seed in range(65):
        learner.absorb("working_set", samples_of(spec, 200, seed, classes=2))
    learner.publish()
    memory = ModelMemory(3 * learner.n_bytes)
    memory.note(learner.model, learner.n_bytes)
    limits = Limits(100, 1000, memory=memory)
    Draft(learner, limits).add("working_set", samples_of(spec, 1, 99, classes=2))
    assert memory.n_bytes == learner.n_bytes
    assert learner.steady_until > learner.sequence


def test_small_requests_take_ahead_what_the_next_ones_need():
    spec = ModelSpec.model_validate({"working_set": {"max_size": 100}})
    learner, memory = learner_of(spec), ModelMemory(NO_BOUND)
    learner.absorb("working_set", samples_of(spec, 400, 0, classes=2))
    learner.publish()
    memory.note(learner.model, learner.n_bytes)
    Draft(learner, Limits(100, 1000, memory=memory)).add(
        "working_set", samples_of(spec, 1, 1, classes=2)
    )
    taken = memory.n_bytes
    assert taken == learner.n_bytes + learner.ahead_bytes
    assert learner.steady_until > learner.sequence + 1
    for seed in range(learner.steady_until - learner.sequence):
        samples = samples_of(spec, 1, seed, classes=2)
        Draft(learner, Limits(100, 1000, memory=memory)).add("working_set", samples)
        learner.absorb("working_set", samples)
    learner.publish()
    assert memory.n_bytes == taken
    assert learner.n_bytes <= taken + SLACK


def test_samples_without_room_are_refused_and_nothing_is_counted():
    learner, memory = learner_of(ModelSpec(), "rooms"), ModelMemory(2 * MB)
    draft = Draft(learner, Limits(100, 1000, memory=memory))
    with pytest.raises(ModelsFull, match=r"model 'rooms' would grow by .*DELETE models"):
        draft.add("working_set", samples_of(ModelSpec(), 10, 0))
    assert memory.n_bytes == 0
    assert draft.sequence == 0


def test_requests_of_a_group_take_once_what_they_need_together():
    spec = ModelSpec()
    together, alone = ModelMemory(NO_BOUND), ModelMemory(NO_BOUND)
    draft = Draft(learner_of(spec), Limits(100, 1000, memory=together))
    for seed in range(40):
        draft.add("working_set", samples_of(spec, 1, seed, classes=1))
    whole = Draft(learner_of(spec), Limits(100, 1000, memory=alone))
    whole.add("working_set", samples_of(spec, 40, 0, classes=1))
    assert together.n_bytes == pytest.approx(alone.n_bytes, rel=0.1)


class TestBound:
    def test_copies_of_the_largest_model_have_room(self):
        memory, model = ModelMemory(30 * MB), Model(1, "m", ModelSpec())
        memory.take(model, 10 * MB)
        with pytest.raises(ModelsFull):
            memory.take(model, 1)

    def test_deleted_model_leaves_its_room_to_others(self):
        memory = ModelMemory(34 * MB)
        large, small = Model(1, "large", ModelSpec()), Model(2, "small", ModelSpec())
        memory.take(large, 10 * MB)
        memory.take(small, 2 * MB)
        with pytest.raises(ModelsFull):
            memory.take(small, 3 * MB)
        memory.forget(large)
        memory.take(small, 3 * MB)
        assert memory.n_bytes == 5 * MB

    def test_what_was_measured_replaces_the_estimate(self):
        memory, model = ModelMemory(NO_BOUND), Model(1, "m", ModelSpec())
        memory.take(model, 10 * MB)
        memory.note(model, 4 * MB)
        assert memory.n_bytes == 4 * MB

    def test_new_model_needs_room_to_learn(self):
        memory = ModelMemory(20 * MB)
        with pytest.raises(ModelsFull, match="WOLFSTREAM_MEMORY_BYTES"):
            memory.check_new("another")
        ModelMemory(40 * MB).check_new("another")
