"""Sets that learned parts of a stream become one."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import hessian
from tests.solver.streams import clusters, in_order_of_appearance, sparse
from wolfstream.solver.frank_wolfe.pairs import pairs_of
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.auto_widths import AutoWidths
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.merge import GAP, relative_gap, renumbered, support_of, unite
from wolfstream.solver.working_set.merged_widths import interleaved, merge_widths
from wolfstream.solver.working_set.predictions import predicted

KERNEL, C = Kernel("rbf", gamma=0.3), 1.0


def new_set(max_size=None):
    return WorkingSet(KERNEL, C, max_size=max_size)


def taught(X, codes, **parameters):
    learner = new_set(**parameters)
    learner.absorb(X, codes)
    return learner


def samples(n_classes=2):
    return clusters(31, 600, n_classes=n_classes)


def united(sets, places, classes, **parameters):
    merged = new_set(**parameters)
    of_each = zip(sets, places, strict=True)
    supports = [renumbered(support_of(one), of_one, classes) for one, of_one in of_each]
    unite(merged, supports, classes)
    return merged


def true_gaps(learner):
    """Relative gaps in float64, from the stored rows and the weights alone."""
    store, gaps = learner.store, []
    for problem in learner.problems:
        n = int(problem.size[0])
        slots, sign, alpha = problem.column[:n], problem.sign[:n], problem.alpha[:n]
        A = hessian(KERNEL, np.asarray(store.rows.exact)[slots], sign, C)
        gradient, q = -2.0 * A @ alpha, alpha @ A @ alpha
        gaps.append((gradient.max() + 2.0 * q) / q)
    return np.array(gaps)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_united_sets_have_a_small_gap(n_classes):
    X, codes = samples(n_classes)
    parts = [(X[k::3], codes[k::3]) for k in range(3)]
    own = [in_order_of_appearance(of_one.tolist()) for _, of_one in parts]
    places = [
        of_one[np.unique(mine, return_index=True)[1]]
        for (_, of_one), mine in zip(parts, own, strict=True)
    ]
    sets = [taught(rows, mine) for (rows, _), mine in zip(parts, own, strict=True)]
    merged = united(sets, places, n_classes)
    assert relative_gap(merged) <= GAP
    np.testing.assert_allclose(true_gaps(merged), 0.0, atol=GAP + 1e-4)
    held = {
        row.tobytes() for row in np.asarray(merged.store.rows.exact)[merged.store.occupied_slots()]
    }
    for one in sets:
        for row in np.asarray(support_of(one).X):
            assert row.tobytes() in held


def test_bound_holds_all_learned():
    X, codes = samples()
    sets = [taught(X[k::2], codes[k::2], max_size=256) for k in range(2)]
    merged = united(sets, [np.arange(2)] * 2, 2, max_size=256)
    assert sum(len(support_of(one).codes) for one in sets) > 256
    assert merged.store.size <= 256
    right = [np.mean(predicted(s.view(), X).prediction == codes) for s in (merged, *sets)]
    assert right[0] >= min(right[1:]) - 0.03


def test_pairs_across_sets_are_learned():
    X, codes = clusters(32, 400, n_classes=3, noise=0.0, apart=4.0)
    sets, places = [], []
    for pair in ((0, 1), (0, 2)):
        inside = np.isin(codes, pair)
        sets.append(taught(X[inside], np.searchsorted(pair, codes[inside])))
        places.append(np.array(pair))
    merged = united(sets, places, 3)
    assert len(merged.view().ends) == len(pairs_of(3))
    assert np.mean(predicted(merged.view(), X).prediction == codes) > 0.95


def test_sets_of_one_class_are_united():
    X, codes = samples()
    merged = united([taught(X[:50], np.zeros(50, np.int64))] * 2, [np.arange(1)] * 2, 1)
    assert merged.n_classes == 1
    merged.absorb(X, codes)
    assert np.mean(predicted(merged.view(), X).prediction == codes) > 0.7


def test_sample_weights_stay():
    X, codes = samples()
    learner = new_set()
    learner.absorb(X, codes, weight=np.where(codes == 1, 0.5, 1.0))
    merged = united([learner], [np.arange(2)], 2)
    store = merged.store
    np.testing.assert_array_equal(
        store.inverse_weight[: store.used], 1.0 + store.code[: store.used]
    )


def test_sparse_sets_are_united():
    X, codes = samples()
    sets = [taught(sparse(X[k::2]), codes[k::2]) for k in range(2)]
    merged = united(sets, [np.arange(2)] * 2, 2)
    assert relative_gap(merged) <= GAP


@pytest.mark.parametrize("seen", [(3, 3), (5, 2, 9), (0, 4, 1), (1, 1, 1, 1)], ids=str)
def test_interleaved_numbers_are_unique(seen):
    found = [interleaved(np.arange(count), part, seen) for part, count in enumerate(seen)]
    assert sorted(np.concatenate(found).tolist()) == list(range(sum(seen)))
    assert all(np.all(np.diff(of_one) > 0) for of_one in found)


def test_merged_widths_keep_times():
    X, codes = samples()
    parts = []
    for k in range(2):
        one = AutoWidths(lambda gamma: WorkingSet(Kernel("rbf", gamma), C), 0.3, 200.0)
        one.absorb(X[k::2], codes[k::2])
        parts.append(one)
    merged = AutoWidths(lambda gamma: WorkingSet(Kernel("rbf", gamma), C), 0.3, 200.0)
    merge_widths(merged, parts, [np.arange(2)] * 2)
    assert merged.seen == 600
    assert merged.widths.horizon == 400.0
    numbers = merged.kept_numbers()
    store = merged.learner.store
    rows = np.asarray(store.rows.exact)[store.occupied_slots()]
    times = merged.widths.times(rows)
    np.testing.assert_allclose(rows[:, :-1], X[times])
    assert np.isin(times, numbers).all()
    merged.absorb(X, codes)
