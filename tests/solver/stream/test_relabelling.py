"""A working set when labels change their meaning, and when they do not."""

from functools import partial

import numpy as np
import pytest

from tests.solver.streams import blocks, in_order_of_appearance
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.stream.kernel_learner import KernelLearner
from wolfstream.solver.stream.paper_learners import new_working_set
from wolfstream.solver.stream.parameters import SetParameters
from wolfstream.solver.stream.relabelling import MatchedPermutation, RelabellingDetector


def rings(seed, n=2600, classes=6):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    part = 1.0 - np.exp(-0.5 * np.square(X).sum(axis=1))
    return X, np.floor(classes * part).astype(np.int64)


def moved_rings(seed, at=1600):
    X, y = rings(seed)
    y[at:] = (y[at:] + 1) % 6
    return X, in_order_of_appearance(y.tolist())


def made():
    build = partial(new_working_set, parameters=SetParameters())
    return KernelLearner(Kernel("rbf", 1.0), build, auto=True, horizon="auto")


def said_by(learner, X, y, length=64):
    answers = [learner.absorb(X[part], y[part]) for part in blocks(len(y), length)]
    return np.concatenate([one.prediction for parts in answers for one in parts])


def test_set_recovers_500_after_relabelling():
    X, y = moved_rings(0)
    right = said_by(made(), X, y) == y
    assert right[2100:].mean() > right[1100:1600].mean() - 0.02
    assert right[1600:1660].mean() < 0.3


def test_a_state_around_a_move_goes_on_to_the_bit():
    X, y = moved_rings(1)
    for at in (1550, 1700, 1810):
        learner, twin = made(), made()
        said_by(learner, X[:at], y[:at])
        twin.restore(*learner.state())
        for one in (learner, twin):
            said_by(one, X[at:], y[at:])
        arrays, others = learner.state()[1], twin.state()[1]
        assert arrays.keys() == others.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, others[name], err_msg=name)


def test_calls_of_any_length_find_the_same_move():
    X, y = moved_rings(2)
    of_one, of_many = (said_by(made(), X[:2000], y[:2000], length) for length in (77, 2000))
    assert np.mean(of_one == of_many) > 0.998


@pytest.mark.parametrize("classes", [2, 5, 30])
def test_a_move_and_its_beginning_are_found(classes):
    random = np.random.default_rng(classes)
    y = random.integers(0, classes, 6000)
    said = np.where(random.random(6000) < 0.8, y, random.integers(0, classes, 6000))
    moved = np.roll(np.arange(classes), 1)
    y[4000:] = moved[y[4000:]]
    watch, found = RelabellingDetector(), []
    for part in blocks(6000, 128):
        move = watch.absorb(said[part], y[part])
        if move is not None:
            found.append(move)
            said[part.stop :] = move.permutation[said[part.stop :]]
    (move,) = found
    np.testing.assert_array_equal(move.permutation, moved)
    assert abs(move.since - 4000) < 10


@pytest.mark.parametrize("right", [0.0, 0.3, 0.9])
def test_nothing_is_found_where_nothing_moves(right):
    random = np.random.default_rng(7)
    y = random.integers(0, 4, 12_800)
    y[6400:] = np.minimum(y[6400:], random.integers(0, 4, 6400))
    said = np.where(random.random(len(y)) < right, y, random.integers(0, 4, len(y)))
    said[:3] = -1
    watch = RelabellingDetector()
    assert all(watch.absorb(said[part], y[part]) is None for part in blocks(len(y), 128))


def test_labels_that_alternate_move_ever_more_seldom():
    """What the set says is wrong again as soon as it has followed."""
    n, watch = 40_000, RelabellingDetector()
    y = np.arange(n) % 2
    found = [part.stop for part in blocks(n, 128) if watch.absorb(1 - y[part], y[part])]
    assert 5 <= len(found) <= 12
    assert max(np.diff(found)) >= 8192


def test_moves_that_hold_are_followed_each_time():
    n, every, found = 12_800, 640, []
    y = np.random.default_rng(0).integers(0, 2, n)
    said = y.copy()
    y = np.where(np.arange(n) // every % 2 == 1, 1 - y, y)
    watch = RelabellingDetector()
    for part in blocks(n, 128):
        move = watch.absorb(said[part], y[part])
        if move is not None:
            found.append(part.stop)
            said[part.stop :] = move.permutation[said[part.stop :]]
    assert len(found) == n // every - 1


def test_swap_among_many_classes_is_ignored():
    random = np.random.default_rng(3)
    y = random.integers(0, 10, 5120)
    said = y.copy()
    y[2560:] = np.array([1, 0, *range(2, 10)])[y[2560:]]
    watch = RelabellingDetector()
    assert all(watch.absorb(said[part], y[part]) is None for part in blocks(len(y), 128))


def test_two_classes_never_have_one_place():
    places = MatchedPermutation()
    places.meet(3)
    places.table[:] = [[0, 9, 0], [0, 8, 1], [0, 0, 0]]
    np.testing.assert_array_equal(places.estimate(), [1, 2, 0])
