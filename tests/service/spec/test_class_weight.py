"""Class weights of the spec: they follow their labels, through the warm-up and a restart."""

from typing import Any

import pytest

from tests.service.streams import part, three_classes
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import read_spec

WEIGHTS = [{"label": "20", "weight": 4.0}, {"label": "30", "weight": 9.0}]


@pytest.mark.parametrize("gamma", ["auto", 0.5])
def test_weights_follow_their_labels_however_late_these_come(gamma: Any):
    kernel = {"gamma": gamma}
    spec = read_spec({"kernel": kernel, "working_set": {"class_weight": WEIGHTS}})
    samples = three_classes(300)
    learner, unweighted = (
        Learner(Model(1, "m", spec)),
        Learner(Model(1, "m", read_spec({"kernel": kernel}))),
    )
    for start in range(0, 300, 50):
        learner.absorb("working_set", part(samples, start, start + 50))
    unweighted.absorb("working_set", samples)
    restored = Learner(Model(1, "m", spec))
    restored.restore(*learner.state())
    for one in (learner, restored):
        head = one.heads["working_set"]
        codes = [head.classes.index(label) for label in (0, 10, 20)]
        assert head.learner.current.ridges.class_ridges(3)[codes].tolist() == [0.5, 0.5, 0.125]
    objectives = [m.heads["working_set"].view().stats["objective"] for m in (learner, unweighted)]
    assert objectives[0] > objectives[1]
