"""Class weights of the spec: they follow their labels, through the warm-up and a restart."""

from typing import Any

import pytest

from service.model import Model
from service.spec import read_spec
from tests.service.streams import part, three_classes

WEIGHTS = [{"label": 20, "weight": 4.0}, {"label": "20", "weight": 9.0}]


@pytest.mark.parametrize("gamma", ["auto", 0.5])
def test_weights_follow_their_labels_however_late_these_come(gamma: Any):
    kernel = {"gamma": gamma}
    spec = read_spec({"kernel": kernel, "working_set": {"class_weight": WEIGHTS}})
    samples = three_classes(300)
    model, unweighted = Model(1, "m", spec), Model(1, "m", read_spec({"kernel": kernel}))
    for start in range(0, 300, 50):
        model.absorb("working_set", part(samples, start, start + 50))
    unweighted.absorb("working_set", samples)
    restored = Model(1, "m", spec)
    restored.restore(*model.state())
    for one in (model, restored):
        head = one.heads["working_set"]
        ridges = [head.working_set.ridge_of(head.classes.index(label)) for label in (0, 10, 20)]
        assert ridges == [0.5, 0.5, 0.125]
    objectives = [m.heads["working_set"].view().stats["objective"] for m in (model, unweighted)]
    assert objectives[0] > objectives[1]
