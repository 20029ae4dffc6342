"""The sequence under which each member of a set was posted."""

from typing import Any

import numpy as np
import pytest

from tests.service.specs import PAPERS
from tests.service.streams import part, three_classes
from wolfstream.service.heads.set_view import Sequences
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import read_spec

SPECS: dict[str, dict[str, Any]] = {
    "fading": {},
    "plain": {"working_set": {"horizon": None}},
    "samples leave": {"working_set": {"max_size": 40}},
    "papers": PAPERS,
    "plain papers": {**PAPERS, "working_set": {"horizon": None}},
}


def of(sequences: Sequences, *numbers: int) -> list[int]:
    found: list[int] = sequences.of(np.array(numbers, np.int64)).tolist()
    return found


def test_samples_of_other_calls_come_between():
    sequences = Sequences()
    sequences.note(10, 0, 10)
    sequences.note(15, 10, 35)  # twenty samples of another call before these five
    assert of(sequences, 0, 9, 10, 14) == [1, 10, 31, 35]


def test_what_came_before_it_was_noted_is_unknown():
    sequences = Sequences()
    sequences.note(105, 100, 300)
    assert of(sequences, 99, 100, 104, -1) == [-1, 296, 300, -1]


def test_where_the_head_learned_all_samples_all_are_known():
    sequences = Sequences()
    sequences.note(105, 100, 105)
    assert of(sequences, 0, 104) == [1, 105]


def test_changes_that_no_member_needs_are_forgotten():
    sequences, held = Sequences(), np.array([3, 5000, 9000])
    for number in range(10_000):
        sequences.note(number + 1, number, 2 * number + 1)
        if sequences.crowded:
            sequences.keep(held[held <= number])
    assert of(sequences, *held.tolist(), 9999) == [7, 10_001, 18_001, 19_999]
    again = Sequences()
    again.restore(sequences.state())
    assert of(again, *held.tolist()) == [7, 10_001, 18_001]
    assert sequences.state()["sequences"].shape[1] < 5000


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_members_are_found_by_their_sequence(spec: dict[str, Any]):
    """Through calls for two heads, new widths, evictions, a restart and a rollback."""
    samples = three_classes(700)
    learner = Learner(Model(1, "m", read_spec(spec)))
    sent: dict[int, Any] = {}

    def learn(start: int, stop: int, head: Any) -> None:
        learner.absorb(head, part(samples, start, stop))
        for i in range(start, stop):
            sent[learner.sequence - stop + 1 + i] = (head, samples.y[i])

    for start in range(0, 600, 50):
        learn(start, start + 50, "asset" if start % 150 == 100 else "working_set")
    restored = Learner(Model(1, "m", read_spec(spec)))
    restored.restore(*learner.state())
    source, learner = learner, restored
    learner.sequence += 1000  # as after a rollback from there
    learn(600, 650, "working_set")
    learner.publish()
    view = learner.model.published.heads["working_set"]
    X = learner.rows.view().head_rows(samples.X[:1]).X
    found = view.pulls(X, 1, 0)
    assert found is not None
    assert view.classes is not None
    told = [
        (sent[int(s)], view.classes[c]) for s, c in zip(found.sequence, found.code, strict=True)
    ]
    assert told
    for (head, label), known_as in told:
        assert head == "working_set"
        assert label == known_as
    assert found.sequence.max() > 1600
    assert source.sequence == 600
