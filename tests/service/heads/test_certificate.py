"""Certificates of several pairs of classes bound the objective that is published with them."""

import numpy as np
import pytest

from wolfstream.service.heads.set_view import certificate, gap_text

OBJECTIVE = np.array([-4.0, -1.0, -2.0])
GAP = np.array([0.4, 0.5, 0.1])


def test_gaps_are_summed_as_objectives_are():
    found = certificate(OBJECTIVE, GAP)
    assert found["objective"] == -7.0
    assert found["gap"] == pytest.approx(1.0)


def test_the_relative_gap_is_that_of_the_worst_pair():
    assert certificate(OBJECTIVE, GAP)["relative_gap"] == pytest.approx(0.5)


def test_one_unknown_gap_leaves_none():
    found = certificate(OBJECTIVE, np.array([0.4, np.nan, 0.1]))
    assert found == {"objective": -7.0, "gap": None, "relative_gap": None}


def test_words():
    report = certificate(OBJECTIVE, GAP) | {"gap_over": "the set"}
    assert gap_text(report) == "gap 1, 0.5 relative over the set"
    assert "not positive semidefinite" in gap_text(report | {"gap": None})
