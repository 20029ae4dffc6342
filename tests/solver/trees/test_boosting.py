"""Boosted trees: losses, bits, and rows that say little."""

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.solver.trees.oracle import leaves
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.trees.binning import binned, bins_of
from wolfstream.solver.trees.boosting import (
    CORE,
    LEAF_RIDGE,
    RATE,
    Effort,
    Problem,
    Trees,
    fitted,
    outputs_of,
)
from wolfstream.solver.trees.growing import Tree
from wolfstream.solver.trees.predicting import outputs


def problem(
    X: Float64Array,
    y: Any,
    classes: int = 0,
    weight: Float64Array | None = None,
    base: Float64Array | None = None,
) -> Problem:
    categories = np.zeros(X.shape[1], np.bool_)
    weight = np.ones(len(X)) if weight is None else weight
    rows = binned(bins_of(X, categories), X)
    return Problem(rows, categories, np.asarray(y, np.float64), weight, base, classes)


def drawn(n: int = 2000, d: int = 5, seed: int = 0) -> Float64Array:
    return np.random.default_rng(seed).normal(size=(n, d))


def step(X: Float64Array) -> Float64Array:
    return np.where(X[:, 0] > 0.0, 3.0, -1.0) * np.where(X[:, 1] > 0.5, 1.0, 2.0)


def same(first: Trees, second: Trees) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def of_oracle(trees: Trees, rows: NDArray[np.uint8]) -> Float64Array:
    out = np.repeat(trees.start[None], len(rows), axis=0)
    for *tree, leaf in zip(*trees[:4], strict=True):
        out += leaf[leaves(Tree(*tree), rows)]
    return out


def test_numbers_are_learned() -> None:
    X = drawn()
    given = problem(X, step(X))
    assert np.abs(outputs(fitted(given, Effort(60)), given.rows)[:, 0] - step(X)).mean() < 0.1


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_classes_are_learned(classes: int) -> None:
    X = drawn(4000)
    y = np.clip(np.digitize(X[:, 0] + (X[:, 1] > 0.0), np.linspace(-1, 2, classes - 1)), 0, None)
    given = problem(X, y, classes)
    said = outputs(fitted(given, Effort(60)), given.rows)
    assert said.shape == (4000, outputs_of(classes))
    guess = said[:, 0] > 0.0 if classes == 2 else said.argmax(axis=1)
    assert np.mean(guess == y) > 0.93


def test_a_first_tree_takes_newton_steps() -> None:
    X = drawn(1000)
    y = (X[:, 0] > 0.3).astype(np.float64)
    given = problem(X, y, 2)
    trees = fitted(given, Effort(1))
    p = 1.0 / (1.0 + np.exp(-trees.start[0]))
    leaf = leaves(Tree(trees.feature[0], trees.right[0], trees.child[0]), given.rows)
    for q in np.unique(leaf):
        here = leaf == q
        wanted = -RATE * (p - y[here]).sum() / (here.sum() * p * (1.0 - p) + LEAF_RIDGE)
        assert trees.leaf[0, q, 0] == pytest.approx(wanted)


def test_trees_of_numbers_take_reweighted_steps() -> None:
    random, X = np.random.default_rng(1), drawn(1001)
    y, weight = step(X) + random.standard_t(1.5, 1001), random.uniform(0.5, 1.5, 1001)
    weight /= weight.mean()
    given = problem(X, y, weight=weight)
    trees = fitted(given, Effort(4))
    assert weight[y < trees.start[0]].sum() == pytest.approx(
        weight[y > trees.start[0]].sum(), rel=0.01
    )
    errors = trees.start[0] - y
    bound = CORE * np.average(np.abs(errors), weights=weight)
    for r in range(4):
        beyond = np.abs(errors) > bound
        assert 0.0 < beyond.mean() < 0.25
        slopes = weight * np.clip(errors, -bound, bound)
        curves = np.where(beyond, weight * bound / np.maximum(np.abs(errors), bound), weight)
        leaf = leaves(Tree(trees.feature[r], trees.right[r], trees.child[r]), given.rows)
        assert len(np.unique(leaf)) > 5
        mean = np.average(np.minimum(np.abs(errors), bound), weights=weight)
        for q in np.unique(leaf):
            here = leaf == q
            wanted = -RATE * slopes[here].sum() / (curves[here].sum() + LEAF_RIDGE)
            assert trees.leaf[r, q, 0] == pytest.approx(wanted)
            errors[here] += trees.leaf[r, q, 0]
        bound = max(CORE * mean, (1.0 - RATE) * bound)


@pytest.mark.parametrize("size", [1e1, 1e2])
def test_outlying_targets_hardly_move_trees(size: float) -> None:
    X = drawn()
    y = step(X)
    y[::50] += size * np.where(np.arange(40) % 2, 1.0, -1.0)
    given = problem(X, y)
    assert np.abs(outputs(fitted(given, Effort(60)), given.rows)[:, 0] - step(X)).mean() < 0.15


def test_rare_targets_other_than_zero_are_learned() -> None:
    X = drawn(8000)
    y = np.where(X[:, 0] > 1.65, 5.0 + X[:, 1], 0.0)
    assert 0.03 < np.mean(y > 0.0) < 0.07
    given = problem(X, y)
    said = outputs(fitted(given, Effort(60)), given.rows)[:, 0]
    assert np.abs(said - y)[y > 0.0].mean() < 0.8
    assert np.abs(said - y)[y == 0.0].mean() < 0.05


def test_a_base_is_added_to() -> None:
    X = drawn()
    base = 2.0 * X[:, 2:3]
    given = problem(X, step(X) + base[:, 0], base=base)
    trees = fitted(given, Effort(60))
    assert trees.start == 0.0
    assert np.abs(outputs(trees, given.rows)[:, 0] - step(X)).mean() < 0.1


def test_outputs_are_sums_of_leaves() -> None:
    X = drawn(300)
    given = problem(X, np.arange(300) % 3, 3)
    trees = fitted(given, Effort(10))
    assert outputs(trees, given.rows) == pytest.approx(of_oracle(trees, given.rows))


def test_a_row_has_the_same_bits_alone() -> None:
    X = drawn(500)
    given = problem(X, X[:, 0] ** 2)
    trees = fitted(given, Effort(20))
    alone = [outputs(trees, given.rows[i : i + 1]) for i in range(500)]
    assert np.array_equal(np.concatenate(alone), outputs(trees, given.rows))


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("classes", [0, 2, 9])
def test_the_same_rows_make_the_same_bits_on_any_thread(classes: int, share: float) -> None:
    X = drawn(1500)
    y = np.floor(4.0 * np.abs(X[:, 0])) % max(classes, 2)
    given, found = problem(X, y, classes), list[Trees]()
    effort = Effort(15, share, seed=3)
    threads = [threading.Thread(target=lambda: found.append(fitted(given, effort))) for _ in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(found[0], one) for one in found[1:])


def test_weights_count_as_so_many_rows() -> None:
    X = drawn(900)
    y, weight = step(X), np.where(np.arange(900) % 3, 1.0, 2.0)
    repeated = np.repeat(np.arange(900), weight.astype(int))
    first = problem(X, y, weight=weight / weight.mean())
    second = Problem(first.rows[repeated], *first[1:2], y[repeated], np.ones(1200), None, 0)
    one, other = (outputs(fitted(given, Effort(30)), first.rows) for given in (first, second))
    assert np.corrcoef(one[:, 0], other[:, 0])[0, 1] > 0.99


@pytest.mark.parametrize("value", [0.0, -7.0, 1e12])
def test_constant_targets_are_said(value: float) -> None:
    given = problem(drawn(400), np.full(400, value))
    trees = fitted(given, Effort(5))
    assert not trees.right.any()
    assert outputs(trees, given.rows) == pytest.approx(value)


def test_one_class_of_two_is_said() -> None:
    given = problem(drawn(400), np.ones(400), 2)
    assert (outputs(fitted(given, Effort(5)), given.rows) > 3.0).all()


def test_rows_without_values_are_said_the_median() -> None:
    X = np.full((300, 3), np.nan)
    given = problem(X, np.arange(300.0))
    assert outputs(fitted(given, Effort(5)), given.rows) == pytest.approx(149.5)


def test_huge_numbers_in_rows_are_told_apart() -> None:
    X = np.where(drawn(600, 2) > 0.0, 1e300, -1e300)
    given = problem(X, (X[:, 0] > 0.0).astype(float))
    said = outputs(fitted(given, Effort(60)), given.rows)[:, 0]
    assert np.abs(said - (X[:, 0] > 0.0)).max() < 0.02


def test_few_rows_make_no_split() -> None:
    X = drawn(20)
    assert not fitted(problem(X, X[:, 0]), Effort(3)).right.any()


_PRINT = """
import numpy as np
from wolfstream.solver.trees.boosting import Effort, Problem, fitted
random = np.random.default_rng(0)
rows = random.integers(0, 64, (800, 6)).astype(np.uint8)
y = random.integers(0, 3, 800).astype(float)
trees = fitted(Problem(rows, np.zeros(6, bool), y, np.ones(800), None, 3), Effort(8))
print(*(array.tobytes().hex() for array in trees))
"""


def test_a_second_process_computes_the_same_bits(tmp_path: Any) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PATH": ""}
    command = [sys.executable, "-c", _PRINT]
    first, second = (
        subprocess.run(command, env=environment, check=True, capture_output=True).stdout
        for _ in range(2)
    )
    assert first == second
