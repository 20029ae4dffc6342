"""Every learner on sparse rows: the model that dense rows give, whatever the width."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.solver.streams import (
    FLOAT64,
    blocks,
    in_order_of_appearance,
    members,
    small_streams,
    sparse,
    thin_clusters,
)
from wolfstream.solver.asset import view as asset_view
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.kernels.bandwidth import AutoGamma
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import largest_feature, n_nonzeros, n_rows, take_rows
from wolfstream.solver.working_set import predictions
from wolfstream.solver.working_set.learner import WorkingSet

KERNELS = {
    "rbf": Kernel("rbf", gamma=0.03),
    "quadratic": Kernel("polynomial", gamma=0.05, degree=2, coef0=1.0),
    "cubic": Kernel("polynomial", gamma=0.03, degree=3, coef0=0.5),
    "linear": Kernel("linear"),
}
RBF = KERNELS["rbf"]
LEARNERS = {
    "sfw": lambda: WorkingSet(RBF, 5.0, "sfw"),
    "msfw": lambda: WorkingSet(RBF, 5.0, "msfw", 1),
    "linear": lambda: WorkingSet(KERNELS["linear"], 5.0),
    "full set": lambda: WorkingSet(RBF, 5.0, "msfw", 1, max_size=40),
    "asset": lambda: Asset(RBF, dimension=16),
    "auto": lambda: AutoGamma(lambda gamma: WorkingSet(Kernel("rbf", gamma), max_size=60)),
    "auto asset": lambda: AutoGamma(lambda gamma: Asset(Kernel("rbf", gamma), dimension=16)),
}


def decisions(learner, X):
    if isinstance(learner, AutoGamma):
        learner = learner.learner
    of = asset_view if isinstance(learner, Asset) else predictions
    return of.predict(learner.view(), X)[1]


def answers_of(learner, X, codes, lengths):
    """What the learner said of the stream, fed in calls of these lengths."""
    said, start = [], 0
    for length in lengths:
        part = slice(start, start + length)
        start += length
        answer = learner.absorb(take_rows(X, part), codes[part])
        said += [of for _, of in answer] if isinstance(answer, list) else [answer]
    return said


def assert_equal_answers(said, expected):
    for ours, theirs in zip(said, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def widening(n=400, n_classes=3):
    """A stream whose features appear one after another, and the calls that it comes in."""
    X, codes = thin_clusters(seed=201, n=n, n_features=100, n_classes=n_classes)
    X[np.arange(n)[:, None] < 3 * np.arange(100)] = 0.0
    return X, codes, [1, 2, 30, 67, 100, 50, 150]


def kernel_values(learner):
    """Those of all slots."""
    used = learner.store.used
    return learner.store.gram.kept.values[:used, :used]


class TestEqualDense:
    @pytest.mark.sweep
    @pytest.mark.parametrize("max_size", [None, 64])
    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize("algorithm", ["sfw", "msfw"])
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_working_set(self, kernel, algorithm, n_classes, max_size):
        X, codes = thin_clusters(seed=202, n=500, n_classes=n_classes)
        of_dense, of_sparse = (
            WorkingSet(kernel, 5.0, algorithm, 1, max_size, FLOAT64) for _ in range(2)
        )
        expected, said = of_dense.absorb(X, codes), of_sparse.absorb(sparse(X), codes)
        np.testing.assert_array_equal(said.admitted, expected.admitted)
        np.testing.assert_array_equal(said.step, expected.step)
        np.testing.assert_array_equal(said.prediction, expected.prediction)
        scale = np.nanmax(np.abs(expected.decision))
        np.testing.assert_allclose(said.decision, expected.decision, rtol=0, atol=1e-10 * scale)
        for ours, theirs in zip(of_sparse.problems, of_dense.problems, strict=True):
            np.testing.assert_array_equal(members(ours).column, members(theirs).column)
        np.testing.assert_allclose(
            decisions(of_sparse, sparse(X)), decisions(of_dense, X), rtol=0, atol=1e-10 * scale
        )

    @settings(deadline=None)
    @given(stream=small_streams(), max_size=st.sampled_from([None, 3, 8]))
    def test_bits_are_equal_without_rounding(self, stream, max_size):
        """Rows on a coarse grid: linear kernel values are the same bits."""
        X, codes = stream
        of_dense, of_sparse = (
            WorkingSet(KERNELS["linear"], 5.0, "msfw", 1, max_size) for _ in range(2)
        )
        assert_equal_answers([of_sparse.absorb(sparse(X), codes)], [of_dense.absorb(X, codes)])
        state, state_dense = of_sparse.state(), of_dense.state()
        for name in ("alpha", "gradient", "column", "q", "codes", "entered"):
            np.testing.assert_array_equal(state[name], state_dense[name])
        np.testing.assert_array_equal(kernel_values(of_sparse), kernel_values(of_dense))

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_asset_with_the_origin_at_zero(self, n_classes):
        X, codes = thin_clusters(seed=203, n=500, n_classes=n_classes)
        X[0] = 0.0
        of_dense, of_sparse = (Asset(RBF, dimension=32) for _ in range(2))
        expected, said = of_dense.absorb(X, codes), of_sparse.absorb(sparse(X), codes)
        np.testing.assert_array_equal(said.prediction, expected.prediction)
        np.testing.assert_allclose(said.decision, expected.decision, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            decisions(of_sparse, sparse(X)), decisions(of_dense, X), rtol=0, atol=1e-9
        )

    def test_gamma_from_the_first_samples(self):
        X, codes = thin_clusters(seed=204, n=300)
        of_dense, of_sparse = (
            AutoGamma(lambda gamma: WorkingSet(Kernel("rbf", gamma), dtype=FLOAT64))
            for _ in range(2)
        )
        for part in blocks(300, 37):
            of_dense.absorb(X[part], codes[part])
            of_sparse.absorb(sparse(X[part]), codes[part])
            assert of_sparse.gamma == pytest.approx(of_dense.gamma, rel=1e-12)
        np.testing.assert_allclose(
            decisions(of_sparse, sparse(X)), decisions(of_dense, X), rtol=0, atol=1e-9
        )


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
class TestEveryLearner:
    def test_new_features_may_come_late(self, make):
        X, codes, lengths = widening()
        whole = sparse(X)
        expected = answers_of(knowing := make(), whole, codes, lengths)
        growing, said, start = make(), [], 0
        for length in lengths:
            rows = take_rows(whole, slice(start, start + length))
            narrow = rows._replace(width=largest_feature(rows) + 1)
            said += answers_of(growing, narrow, codes[start : start + length], [length])
            start += length
        assert_equal_answers(said, expected)
        np.testing.assert_array_equal(decisions(growing, whole), decisions(knowing, whole))

    def test_unknown_features_are_predicted(self, make):
        X, codes, _ = widening()
        learner = make()
        learner.absorb(sparse(X[:60]), codes[:60])
        unmet = take_rows(sparse(X), slice(350, None))
        published = decisions(learner, unmet)
        np.testing.assert_array_equal(published, decisions(learner, sparse(X[350:], 5000)))
        assert np.all(np.isfinite(published))

    def test_rows_without_entries_are_learned(self, make):
        X = sparse(np.zeros((40, 0)))
        learner = make()
        learner.absorb(X, np.arange(40) % 2)
        assert np.all(np.isfinite(decisions(learner, X)))

    @pytest.mark.sweep
    @pytest.mark.parametrize("at", [1, 50, 200])
    def test_restored_learner_continues_bit_for_bit(self, make, at):
        X, codes, _ = widening(n=400)
        rows = sparse(X)
        live, restored = make(), make()
        answers_of(live, rows, codes, [at])
        state = live.state()
        for array in state.values():
            assert isinstance(array, np.ndarray)
            array.flags.writeable = False
        live = make()  # as at a checkpoint
        for learner in (live, restored):
            learner.restore(state)
        rest, lengths = take_rows(rows, slice(at, None)), [1, 40, 400 - at - 41]
        assert_equal_answers(
            answers_of(restored, rest, codes[at:], lengths),
            answers_of(live, rest, codes[at:], lengths),
        )
        saved, saved_again = live.state(), restored.state()
        assert saved.keys() == saved_again.keys()
        for name in saved:
            np.testing.assert_array_equal(saved[name], saved_again[name])

    def test_refused_dense_rows_change_nothing(self, make):
        X, codes, _ = widening()
        for first, then in ((sparse(X), X), (X, sparse(X))):
            learner, codes_then = make(), np.full(5, int(codes.max()) + 1)
            learner.absorb(first, codes)
            before = {name: array.copy() for name, array in learner.state().items()}
            with pytest.raises(TypeError, match="sparse"):
                learner.absorb(take_rows(then, slice(0, 5)), codes_then)
            with pytest.raises(TypeError, match="sparse"):
                decisions(learner, then)
            for name, array in learner.state().items():
                np.testing.assert_array_equal(array, before[name])


class TestWorkingSetMemory:
    def test_memory_is_constant_at_the_bound(self):
        X, codes = thin_clusters(seed=205, n=4000, n_features=60, noise=0.3)
        rows = sparse(X)
        learner = WorkingSet(RBF, 5.0, max_size=64)
        sizes = []
        for part in blocks(4000, 50):
            learner.absorb(take_rows(rows, part), codes[part])
            sizes.append(learner.nbytes)
        assert learner.store.added > 1000
        assert max(sizes[40:]) <= 1.1 * max(sizes[:40])
        heap = learner.store.rows.exact.indices
        assert len(heap) <= 3 * 64 * max(len(row) for row in map(np.flatnonzero, X))

    def test_views_do_not_change(self):
        X, codes = thin_clusters(seed=206, n=1500, n_features=30, noise=0.3)
        rows, learner, published = sparse(X), WorkingSet(RBF, 5.0, max_size=50), []
        for part in blocks(1500, 60):
            learner.absorb(take_rows(rows, part), codes[part])
            said = predictions.predict(learner.view(), take_rows(rows, slice(0, 20)))[1]
            published.append((learner.view(), said))
        for its_view, said in published:
            again = predictions.predict(its_view, take_rows(rows, slice(0, 20)))[1]
            np.testing.assert_array_equal(again, said)

    def test_restored_free_slots_change_nothing(self):
        X, codes = thin_clusters(seed=205, n=800)
        rows = sparse(X)
        live, restored = (WorkingSet(RBF, 5.0, "msfw", 1, max_size=100) for _ in range(2))
        live.absorb(take_rows(rows, slice(0, 501)), codes[:501])
        assert live.store.size < live.store.used
        state = live.state()
        for learner in (live, restored):  # as at a checkpoint
            learner.restore(state)
            learner.absorb(take_rows(rows, slice(501, None)), codes[501:])
        for mine, its in zip(live.state().values(), restored.state().values(), strict=True):
            np.testing.assert_array_equal(mine, its)

    def test_state_has_only_stored_rows(self):
        X, codes = thin_clusters(seed=207, n=600, n_features=30, noise=0.3)
        learner = WorkingSet(RBF, 5.0, max_size=50)
        learner.absorb(sparse(X), codes)
        state, stored = learner.state(), learner.store.used_rows().exact
        assert len(state["rows_data"]) == len(state["rows_indices"]) == n_nonzeros(stored)
        assert len(state["rows_indptr"]) == n_rows(stored) + 1
        assert state["rows_width"].tolist() == [30]


def test_late_class_is_learned():
    X, codes = thin_clusters(seed=208, n=600, n_classes=3, noise=0.0, apart=3.0)
    order = np.argsort(codes == 2, kind="stable")
    codes = in_order_of_appearance(codes[order].tolist())
    learner = WorkingSet(RBF, 5.0, "msfw", 1)
    learner.absorb(sparse(X[order]), codes)
    said, _ = predictions.predict(learner.view(), sparse(X[order]))
    assert np.mean(said == codes) > 0.85
