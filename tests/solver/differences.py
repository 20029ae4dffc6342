"""Differences: gradients by central ones, and whether two learners have any."""

import numpy as np


def central(function, x, step=1e-5):
    """The gradient of a function of a row at x, by central differences."""
    found = np.empty(len(x))
    for j in range(len(x)):
        away = np.zeros(len(x))
        away[j] = step
        found[j] = (function(x + away) - function(x - away)) / (2.0 * step)
    return found


def assert_same_state(one, other):
    """Assert that two learners have the same arrays, bit for bit."""
    ours, theirs = one.state(), other.state()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
