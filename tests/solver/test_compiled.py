"""What numba compiles, and how often."""

from collections import Counter

import numpy as np
import pytest
from numba.core import event

from wolfstream.solver.compiled import compiled, inner


@inner
def _sum(x):
    total = 0.0
    for value in x:
        total += value
    return total


@inner
def _twice(x):
    return 2.0 * _sum(x)


class _Compilations(event.Listener):
    """How often each function was compiled, and the passes that that took."""

    def __init__(self):
        self.counts = Counter()

    def on_start(self, event):
        if event.kind == "numba:compile":
            self.counts[event.data["dispatcher"].py_func.__name__] += 1
        else:
            self.counts[event.data["name"].split(" ")[0]] += 1

    def on_end(self, event):
        pass


@pytest.fixture
def compilations():
    listener = _Compilations()
    for kind in ("numba:compile", "numba:run_pass"):
        event.register(kind, listener)
    yield listener.counts
    for kind in ("numba:compile", "numba:run_pass"):
        event.unregister(kind, listener)


def test_inner_and_outer_functions_share_calls(compilations):
    def call(x):
        return _sum(x) + _twice(x)

    # Without a file on disk, which would spare the compilation the next time.
    function = compiled(call)
    function._cache.flush()
    assert function(np.arange(4.0)) == 18.0
    assert compilations["_sum"] == compilations["_twice"] == compilations["call"] == 1
    assert compilations["solver_type_inference"] == compilations["native_lowering"] == 3
    assert not {"inline_closure_likes", "nopython_rewrites"} & compilations.keys()
