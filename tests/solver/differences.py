"""Gradients by central differences, which analytic ones are compared with."""

import numpy as np


def central(function, x, step=1e-5):
    """The gradient of a function of a row at x, by central differences."""
    found = np.empty(len(x))
    for j in range(len(x)):
        away = np.zeros(len(x))
        away[j] = step
        found[j] = (function(x + away) - function(x - away)) / (2.0 * step)
    return found
