"""A view of a set describes the set as it was published, whenever it is asked."""

from typing import Any

import numpy as np
import pytest

from tests.service.specs import PAPERS
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec

SETS: dict[str, dict[str, Any]] = {
    "whole": {},
    "samples leave": {"max_size": 64},
    "rows are computed": {"gram_bytes_max": 1 << 20},
}


@pytest.mark.parametrize("settings", SETS.values(), ids=SETS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_view_describes_its_own_time(settings: dict[str, Any], classes: int):
    spec = read_spec({**PAPERS, "working_set": settings})
    learner = Learner(Model(1, "m", spec))
    random = np.random.default_rng(0)
    views, told = [], []
    for _ in range(30):
        X = random.standard_normal((17, 4))
        y = (np.arange(17) + (X[:, 0] > 0.0)) % classes
        learner.absorb("working_set", Samples(X, y.tolist()))
        learner.publish()
        view = learner.model.published.heads["working_set"]
        views.append(view)
        told.append((view.stats, view.gauges))
    for view, (stats, gauges) in zip(views, told, strict=True):
        assert view.stats == stats
        assert view.gauges == gauges
        assert (stats["size"], stats["support_vectors"], stats["bytes"]) == (
            gauges["set_size"],
            gauges["support_vectors"],
            gauges["head_memory_bytes"],
        )
    assert learner.heads["working_set"].learner.current.store.size == told[-1][0]["size"]
