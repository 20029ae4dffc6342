"""The learner of any number of classes: blocks, pairs, shared samples, saved states."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.svm import SVC

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import (
    FLOAT64,
    KERNELS,
    blocks,
    clusters,
    direct_hessian,
    in_order_of_appearance,
    members,
    small_streams,
    started,
)
from wolfstream.solver.frank_wolfe.pairs import pairs_of
from wolfstream.solver.frank_wolfe.steps import STEP_NAMES
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import pair_decisions, predict, predicted

RBF = KERNELS["rbf"]
BOUNDS = (None, 96)


def absorbed(learner, X, codes, length=256):
    """Learn in calls of a length; the answers' admissions and steps, joined."""
    answers = [learner.absorb(X[part], codes[part]) for part in blocks(len(codes), length)]
    return (
        np.concatenate([answer.admitted for answer in answers]),
        np.concatenate([answer.step for answer in answers]),
    )


def assert_equal_problems(learner, other, tolerance=1e-9):
    for mine, its in zip(learner.problems, other.problems, strict=True):
        a, b = members(mine), members(its)
        np.testing.assert_array_equal(a.column, b.column)
        np.testing.assert_array_equal(a.sign, b.sign)
        np.testing.assert_allclose(a.alpha, b.alpha, rtol=0, atol=tolerance)


class TestBlocks:
    @pytest.mark.sweep
    @pytest.mark.parametrize("corrective_steps", [0, 1, 3])
    @pytest.mark.parametrize("algorithm", ["sfw", "msfw"])
    @pytest.mark.parametrize("max_size", BOUNDS)
    @pytest.mark.parametrize("n_classes", [2, 5])
    def test_any_length_gives_the_model_of_one_at_a_time(
        self, n_classes, max_size, algorithm, corrective_steps
    ):
        X, codes = clusters(seed=21, n=500, n_classes=n_classes)
        runs = []
        for length in (1, 7, 64, 256):
            learner = WorkingSet(RBF, 5.0, algorithm, corrective_steps, max_size, FLOAT64)
            runs.append((learner, *absorbed(learner, X, codes, length)))
        singly, admitted, step = runs[0]
        for learner, its_admitted, its_step in runs[1:]:
            np.testing.assert_array_equal(its_admitted, admitted)
            np.testing.assert_array_equal(its_step, step)
            assert_equal_problems(learner, singly)

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_of_every_kernel(self, kernel):
        X, codes = clusters(seed=22, n=400, n_classes=3)
        runs = [WorkingSet(kernel, 5.0, "msfw", dtype=FLOAT64) for _ in range(2)]
        answers = [absorbed(runs[0], X, codes, 1), absorbed(runs[1], X, codes, 256)]
        np.testing.assert_array_equal(answers[0][0], answers[1][0])
        assert_equal_problems(*runs)

    @given(
        stream=small_streams(max_classes=2),
        cut=st.integers(1, 40),
        max_size=st.sampled_from([None, 5]),
    )
    def test_answers_do_not_depend_on_the_cut(self, stream, cut, max_size):
        X, codes = stream
        together, apart = (WorkingSet(RBF, 5.0, "msfw", 0, max_size, FLOAT64) for _ in range(2))
        answer = together.absorb(X, codes)
        parts = [apart.absorb(X[part], codes[part]) for part in blocks(len(codes), cut)]
        for field in ("admitted", "step"):
            joined = np.concatenate([getattr(part, field) for part in parts])
            np.testing.assert_array_equal(getattr(answer, field), joined)
        decisions = np.concatenate([part.decision for part in parts])
        np.testing.assert_allclose(answer.decision, decisions, rtol=0, atol=1e-9)
        assert_equal_problems(together, apart)

    def test_more_than_one_block_in_a_call(self):
        X, codes = clusters(seed=23, n=900)
        at_once, apart = (WorkingSet(RBF, dtype=FLOAT64) for _ in range(2))
        answer = at_once.absorb(X, codes)
        admitted, step = absorbed(apart, X, codes, 300)
        np.testing.assert_array_equal(answer.admitted, admitted)
        np.testing.assert_array_equal(answer.step, step)
        assert_equal_problems(at_once, apart)


class TestProblems:
    @pytest.mark.sweep
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("algorithm", ["sfw", "msfw"])
    @given(
        stream=small_streams(max_classes=4),
        C=st.sampled_from([0.1, 1.0, 100.0]),
        corrective_steps=st.integers(0, 3),
        cut=st.integers(1, 20),
    )
    def test_are_consistent_after_every_call(
        self, kernel, algorithm, stream, C, corrective_steps, cut
    ):
        X, codes = stream
        learner = WorkingSet(kernel, C, algorithm, corrective_steps, dtype=FLOAT64)
        for part in blocks(len(codes), cut):
            learner.absorb(X[part], codes[part])
            for problem in filter(started, learner.problems):
                held, A = members(problem), direct_hessian(learner, problem)
                tolerance = {"rtol": 0, "atol": 1e-9 * max(1.0, np.abs(A).max())}
                np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, **tolerance)
                np.testing.assert_allclose(held.q, held.alpha @ A @ held.alpha, **tolerance)
                assert held.alpha.min() >= 0.0
                assert held.alpha.sum() == pytest.approx(1.0, abs=1e-9)

    def test_with_float32_kernel_values_the_simplex_is_as_exact(self):
        learner = WorkingSet(RBF, 100.0, "msfw", corrective_steps=2)
        learner.absorb(*clusters(seed=24, n=1500, n_classes=3))
        for problem in learner.problems:
            held, A = members(problem), direct_hessian(learner, problem)
            assert held.alpha.sum() == pytest.approx(1.0, abs=1e-9)
            np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("C", [0.1, 10.0])
    def test_the_ridge_is_half_of_one_over_c(self, C):
        learner = WorkingSet(RBF, C, dtype=FLOAT64)
        learner.absorb(np.zeros((1, 2)), np.zeros(1, np.int64))
        assert learner.problems[0].q[0] == pytest.approx(2.0 + 1.0 / (2.0 * C))


class TestPairs:
    @pytest.mark.parametrize("algorithm", ["sfw", "msfw"])
    def test_other_classes_do_not_interfere(self, algorithm):
        X, codes = clusters(seed=25, n=600, n_classes=3)
        all_three = WorkingSet(RBF, 5.0, algorithm, dtype=FLOAT64)
        all_three.absorb(X, codes)
        inside = codes < 2
        alone = WorkingSet(RBF, 5.0, algorithm, dtype=FLOAT64)
        alone.absorb(X[inside], codes[inside])
        pair, binary = members(all_three.problems[0]), members(alone.problems[0])
        np.testing.assert_array_equal(
            all_three.store.rows.exact[pair.column], alone.store.rows.exact[binary.column]
        )
        np.testing.assert_allclose(pair.alpha, binary.alpha, rtol=0, atol=1e-9)
        np.testing.assert_allclose(pair.gradient, binary.gradient, rtol=0, atol=1e-9)
        np.testing.assert_allclose(pair.q, binary.q, rtol=0, atol=1e-9)

    def test_hold_samples_of_their_two_classes_only(self):
        X, codes = clusters(seed=26, n=400, n_classes=4)
        learner = WorkingSet(RBF)
        learner.absorb(X, codes)
        assert len(learner.problems) == len(pairs_of(4))
        for (a, b), problem in zip(pairs_of(4), learner.problems, strict=True):
            held = members(problem)
            expected = np.where(held.sign < 0.0, a, b)
            np.testing.assert_array_equal(learner.store.code[held.column], expected)

    @pytest.mark.parametrize("max_size", BOUNDS)
    def test_share_samples_and_kernel_values(self, max_size):
        X, codes = clusters(seed=27, n=300, n_classes=4)
        learner = WorkingSet(RBF, max_size=max_size, dtype=FLOAT64)
        answer = learner.absorb(X, codes)
        store = learner.store
        held = store.rows.exact[: store.used][store.code[: store.used] >= 0]
        assert len(held) == store.size
        assert len(np.unique(held, axis=0)) == store.size
        if max_size is None:
            assert store.size == np.count_nonzero(answer.admitted)
            np.testing.assert_array_equal(held, X[answer.admitted])
        in_some_problem = {int(column) for p in learner.problems for column in members(p).column}
        assert in_some_problem == set(np.flatnonzero(store.code[: store.used] >= 0).tolist())

    @pytest.mark.parametrize("dtype", [FLOAT64, np.dtype(np.float32)], ids=str)
    @pytest.mark.parametrize("max_size", [64, None])
    @pytest.mark.parametrize("length", [1, 3, 300])
    def test_the_gram_matrix_is_that_of_the_stored_rows(self, length, max_size, dtype):
        X, codes = clusters(seed=28, n=300)
        learner = WorkingSet(RBF, max_size=max_size, dtype=dtype)
        for part in blocks(300, length):
            learner.absorb(X[part], codes[part])
        used = learner.store.used
        held = np.flatnonzero(learner.store.code[:used] >= 0)
        rows = learner.store.rows.exact[held]
        np.testing.assert_allclose(
            learner.store.gram.kept.values[np.ix_(held, held)],
            kernel_matrix(RBF, rows, rows),
            atol=1e-12 if dtype == FLOAT64 else 1e-5,
        )

    def test_rows_one_by_one_take_the_steps_of_a_block(self):
        X, codes = clusters(seed=28, n=500)
        alone, together = WorkingSet(RBF, 5.0), WorkingSet(RBF, 5.0)
        steps = [alone.absorb(X[i : i + 1], codes[i : i + 1]) for i in range(500)]
        expected = together.absorb(X, codes)
        admitted = np.concatenate([one.admitted for one in steps])
        np.testing.assert_array_equal(admitted, expected.admitted)
        decision = np.concatenate([one.decision for one in steps[2:]])
        np.testing.assert_allclose(decision, expected.decision[2:], rtol=1e-3, atol=1e-5)


class TestLateClass:
    def stream(self):
        """Classes 0 and 1; class 2 appears as sample 150."""
        X, codes = clusters(seed=29, n=600, n_classes=3, noise=0.0, apart=5.0)
        early = np.flatnonzero(codes < 2)[:150]
        late = np.setdiff1d(np.arange(600), early)
        late = np.roll(late, -np.flatnonzero(codes[late] == 2)[0])
        order = np.concatenate([early, late])
        return X[order], codes[order]

    def test_its_problems_start_with_the_stored_samples_of_the_other_classes(self):
        X, codes = self.stream()
        learner = WorkingSet(RBF, 5.0, dtype=FLOAT64)
        learner.absorb(X[:150], codes[:150])
        stored = [learner.store.slots_of_class(a) for a in (0, 1)]
        learner.absorb(X[150:151], codes[150:151])
        for slots, problem in zip(stored, learner.problems[1:], strict=True):
            held, A = members(problem), direct_hessian(learner, problem)
            np.testing.assert_array_equal(held.column[:-1], slots)
            assert held.sign.tolist() == [-1.0] * len(slots) + [1.0]
            assert held.alpha.tolist() == [0.0] * len(slots) + [1.0]
            assert held.q == pytest.approx(A[-1, -1])
            np.testing.assert_allclose(held.gradient, -2.0 * A[:, -1], rtol=0, atol=1e-12)

    def test_does_not_disturb_the_others(self):
        X, codes = self.stream()
        learner = WorkingSet(RBF, 5.0, dtype=FLOAT64)
        learner.absorb(X[:150], codes[:150])
        before = members(learner.problems[0])
        learner.absorb(X[150:151], codes[150:151])
        np.testing.assert_array_equal(members(learner.problems[0]).alpha, before.alpha)

    def test_is_learned(self):
        X, codes = self.stream()
        learner = WorkingSet(RBF, 5.0, corrective_steps=1)
        learner.absorb(X[:450], codes[:450])
        said, _ = predict(learner.view(), X[450:])
        of_late_class = codes[450:] == 2
        assert of_late_class.sum() > 30
        assert np.mean(said[of_late_class] == 2) > 0.9
        assert np.mean(said[~of_late_class] == codes[450:][~of_late_class]) > 0.9

    def test_several_new_classes_in_one_call(self):
        X, _ = clusters(seed=30, n=40)
        codes = np.array([0, 1, 2, 3, 4] * 8)
        together, singly = (WorkingSet(RBF, dtype=FLOAT64) for _ in range(2))
        together.absorb(X, codes)
        absorbed(singly, X, codes, 1)
        assert_equal_problems(together, singly)
        assert len(together.problems) == 10


class TestAnswers:
    def test_nothing_is_said_before_two_classes_are_known(self):
        X, _ = clusters(seed=31, n=6)
        answer = WorkingSet(RBF).absorb(X, np.array([0, 0, 0, 1, 0, 1]))
        assert answer.prediction[:4].tolist() == [-1] * 4
        assert np.all(np.isnan(answer.decision[:4]))
        assert np.all(answer.prediction[4:] >= 0)
        assert not np.isnan(answer.decision[4:]).any()

    def test_a_single_class_gives_no_prediction(self):
        answer = WorkingSet(RBF).absorb(np.eye(3), np.zeros(3, np.int64))
        assert answer.prediction.tolist() == [-1, -1, -1]
        assert np.all(np.isnan(answer.decision))
        assert answer.decision.shape == (3,)

    def test_for_two_classes_are_what_a_prediction_would_have_said(self):
        X, codes = clusters(seed=32, n=200)
        learner = WorkingSet(RBF, dtype=FLOAT64)
        learner.absorb(X[:20], codes[:20])
        for i in range(20, 200):
            said = predicted(learner.view(), X[i : i + 1])
            answer = learner.absorb(X[i : i + 1], codes[i : i + 1])
            np.testing.assert_array_equal(answer.prediction, said.prediction)
            np.testing.assert_allclose(answer.decision, said.decision, rtol=0, atol=1e-9)
            np.testing.assert_allclose(answer.scores, said.scores, rtol=0, atol=1e-8)

    def test_for_more_classes_are_what_a_prediction_would_have_said(self):
        X, codes = clusters(seed=33, n=200, n_classes=4)
        learner = WorkingSet(RBF, dtype=FLOAT64)
        learner.absorb(X[:30], codes[:30])
        assert learner.n_classes == 4
        for i in range(30, 200):
            said = predicted(learner.view(), X[i : i + 1])
            answer = learner.absorb(X[i : i + 1], codes[i : i + 1])
            np.testing.assert_array_equal(answer.prediction, said.prediction)
            np.testing.assert_allclose(answer.decision, said.decision, rtol=0, atol=1e-9)
            np.testing.assert_allclose(answer.scores, said.scores, rtol=0, atol=1e-8)

    def test_that_count_pairs_have_no_scores_beside(self):
        X, codes = clusters(seed=33, n=60, n_classes=4)
        learner = WorkingSet(RBF, coupled=False)
        assert learner.absorb(X, codes).scores is None
        assert predicted(learner.view(), X).scores is None

    def test_score_the_classes_known_at_the_time(self):
        X, _ = clusters(seed=34, n=6)
        answer = WorkingSet(RBF).absorb(X, np.array([0, 1, 0, 2, 2, 1]))
        assert answer.decision.shape == (6, 3)
        known = ~np.isnan(answer.decision)
        assert known.sum(axis=1).tolist() == [0, 0, 2, 2, 3, 3]
        assert known[2:4, :2].all()
        np.testing.assert_array_equal(np.isnan(answer.scores), np.isnan(answer.decision))

    def test_two_classes_independent_of_later_rows(self):
        X, codes = clusters(seed=35, n=12)[0], np.array([0, 1] * 5 + [2, 2])
        apart, together = WorkingSet(RBF), WorkingSet(RBF)
        alone = apart.absorb(X[:10], codes[:10])
        f, of_two = alone.decision, alone.scores
        whole = together.absorb(X, codes)
        scores = whole.decision[:10, :2]
        np.testing.assert_allclose(scores, np.stack([-0.5 * f, 0.5 * f], axis=1), atol=1e-9)
        np.testing.assert_allclose(whole.scores[:10, :2], of_two, atol=1e-9)

    def test_first_decision_of_late_class(self):
        X, _ = clusters(seed=33, n=121)
        learner = WorkingSet(RBF, dtype=FLOAT64)
        learner.absorb(X[:120], np.arange(120) % 3)
        said, scores = predict(learner.view(), X[120:])
        answer = learner.absorb(X[120:], np.array([3]))
        np.testing.assert_array_equal(answer.prediction, said)
        np.testing.assert_allclose(answer.decision[:, :3], scores, rtol=0, atol=1e-9)
        assert np.isnan(answer.decision[0, 3])

    def test_a_late_class_is_never_predicted_before_its_first_sample(self):
        X, codes = clusters(seed=35, n=300, n_classes=5)
        answer = WorkingSet(RBF).absorb(X, codes)
        known = np.maximum.accumulate(codes)
        assert np.all(answer.prediction[1:] <= known[:-1])

    def test_steps_are_a_bit_for_each_kind_that_some_pair_took(self):
        X, codes = clusters(seed=36, n=400, n_classes=3)
        answer = WorkingSet(RBF, 50.0, "msfw").absorb(X, codes)
        allowed = sum(1 << kind for kind in range(1, len(STEP_NAMES)))
        assert np.all(answer.step & ~np.uint8(allowed) == 0)
        assert np.all(answer.step > 0)
        assert answer.step[0] == 1 << STEP_NAMES.index("initial")
        several = [int(step).bit_count() for step in answer.step]
        assert max(several) > 1

    def test_the_number_of_samples_seen_is_counted(self):
        X, codes = clusters(seed=37, n=77)
        learner = WorkingSet(RBF)
        absorbed(learner, X, codes, 10)
        assert learner.seen == 77


class TestMemory:
    def test_a_learner_without_samples_has_no_store_and_no_view(self):
        with pytest.raises(RuntimeError):
            _ = WorkingSet(RBF).store
        with pytest.raises(RuntimeError):
            WorkingSet(RBF).view()

    def test_counts_the_gram_matrix_and_grows_with_it(self):
        X, codes = clusters(seed=38, n=500)
        learner = WorkingSet(RBF, 5.0)
        empty = learner.nbytes
        learner.absorb(X[:50], codes[:50])
        small = learner.nbytes
        learner.absorb(X, codes)
        assert empty < small < learner.nbytes
        assert learner.nbytes > learner.store.gram.nbytes

    def test_long_call_bounds_memory_of_decisions(self):
        classes, n = 20, 3000
        random = np.random.default_rng(40)
        X = random.standard_normal((n, 3))
        codes = np.concatenate([np.arange(classes), random.integers(0, classes, n - classes)])
        learner = WorkingSet(RBF, max_size=320)
        learner.absorb(X[:320], codes[:320])
        tracemalloc.start()
        try:
            learner.absorb(X[320:], codes[320:])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        of_all_pairs = 2 * 8 * n * len(pairs_of(classes))
        assert peak < of_all_pairs / 3

    def test_the_callers_rows_are_not_kept(self):
        X, codes = clusters(seed=39, n=100)
        learner, untouched = (WorkingSet(KERNELS["linear"]) for _ in range(2))
        mine = X.copy()
        learner.absorb(mine, codes)
        untouched.absorb(X, codes)
        mine[:] = np.nan
        np.testing.assert_array_equal(
            predict(learner.view(), X)[1], predict(untouched.view(), X)[1]
        )


class TestState:
    def assert_goes_on_bit_for_bit(self, make, X, codes, at):
        live, restored = make(), make()
        for part in blocks(at, 50):
            live.absorb(X[part], codes[part])
        state = live.state()
        for learner in (live, restored):  # as at a checkpoint
            learner.restore(state)
        for part in [slice(at, at + 1), slice(at + 1, at + 40), slice(at + 40, len(codes))]:
            ours = live.absorb(X[part], codes[part])
            theirs = restored.absorb(X[part], codes[part])
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(a, b)
        assert live.seen == restored.seen
        saved, saved_again = live.state(), restored.state()
        assert saved.keys() == saved_again.keys()
        for name in saved:
            np.testing.assert_array_equal(saved[name], saved_again[name])
        np.testing.assert_array_equal(predict(live.view(), X)[1], predict(restored.view(), X)[1])

    @pytest.mark.sweep
    @pytest.mark.parametrize("max_size", [None, 20, 100])
    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_restored_goes_on_bit_for_bit(self, kernel, n_classes, max_size):
        X, codes = clusters(seed=40, n=500, n_classes=n_classes)
        self.assert_goes_on_bit_for_bit(
            lambda: WorkingSet(kernel, 5.0, "msfw", 1, max_size), X, codes, at=251
        )

    @pytest.mark.parametrize("at", [1, 2, 3, 150])
    def test_early_and_between_classes(self, at):
        X, codes = clusters(seed=41, n=300)
        codes[150:] += np.arange(150) % 2
        codes = in_order_of_appearance(codes.tolist())
        self.assert_goes_on_bit_for_bit(lambda: WorkingSet(RBF, 5.0, "msfw", 2, 40), X, codes, at)

    def test_of_a_learner_without_samples(self):
        X, codes = clusters(seed=42, n=100)
        self.assert_goes_on_bit_for_bit(lambda: WorkingSet(RBF), X, codes, at=0)

    def test_is_not_changed_by_further_learning(self):
        X, codes = clusters(seed=43, n=300)
        learner = WorkingSet(RBF, max_size=60)
        learner.absorb(X[:150], codes[:150])
        state = learner.state()
        copies = {name: array.copy() for name, array in state.items()}
        learner.absorb(X[150:], codes[150:])
        for name, array in state.items():
            np.testing.assert_array_equal(array, copies[name])

    def test_may_be_read_only(self):
        """A state may be a view of a file's bytes; restoring must not write to it."""
        X, codes = clusters(seed=43, n=400, noise=0.4)
        live = WorkingSet(RBF, max_size=128)
        live.absorb(X[:300], codes[:300])
        n = 300
        while not np.any(live.state()["codes"] < 0):
            live.absorb(X[n : n + 1], codes[n : n + 1])
            n += 1
        state = live.state()
        for array in state.values():
            array.flags.writeable = False
        restored = WorkingSet(RBF, max_size=128)
        for learner in (live, restored):
            learner.restore(state)
            for part in blocks(400 - n, 1):
                learner.absorb(X[n:][part], codes[n:][part])
        np.testing.assert_array_equal(predict(live.view(), X)[1], predict(restored.view(), X)[1])


class TestAccuracy:
    """One pass of MSFW with corrective steps against a solver that iterates to convergence."""

    def split(self, data, test_size):
        X = data.data.astype(np.float64)
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
        order = np.random.default_rng(0).permutation(len(X))
        X, codes = X[order], in_order_of_appearance(data.target[order].tolist())
        return X[:-test_size], codes[:-test_size], X[-test_size:], codes[-test_size:]

    @pytest.mark.parametrize(
        ("load", "test_size", "gamma", "C", "margin"),
        [(load_breast_cancer, 200, 1 / 60, 10.0, 0.02), (load_digits, 600, 1 / 120, 10.0, 0.015)],
        ids=["breast-cancer", "digits"],
    )
    def test_comes_close_to_libsvm(self, load, test_size, gamma, C, margin):
        X, codes, X_test, codes_test = self.split(load(), test_size)
        learner = WorkingSet(Kernel("rbf", gamma), C, "msfw", corrective_steps=2)
        learner.absorb(X, codes)
        ours = np.mean(predict(learner.view(), X_test)[0] == codes_test)
        libsvm = SVC(C=C, gamma=gamma).fit(X, codes).score(X_test, codes_test)
        assert libsvm > 0.95
        assert ours > libsvm - margin


class TestClassWeights:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("heavy", [0, 1])
    def test_weight_two_is_every_sample_of_the_class_twice(self, n_classes, heavy):
        """At the optimum: twins share the weight of the sample that counts twice."""
        X, codes = clusters(seed=71, n=60, n_classes=n_classes)
        class_weight = np.ones(n_classes)
        class_weight[heavy] = 2.0
        weighted = WorkingSet(
            RBF, 5.0, "msfw", 2000, dtype=FLOAT64, class_weight=class_weight.tolist()
        )
        posted_twice = WorkingSet(RBF, 5.0, "msfw", 2000, dtype=FLOAT64)
        times = np.where(codes == heavy, 2, 1)
        converged(weighted, X, codes)
        converged(posted_twice, np.repeat(X, times, axis=0), np.repeat(codes, times))
        for mine, its in zip(weighted.problems, posted_twice.problems, strict=True):
            assert members(mine).q == pytest.approx(members(its).q, abs=1e-8)
        ours, theirs = (pair_decisions(m.view(), X) for m in (weighted, posted_twice))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
        unweighted = WorkingSet(RBF, 5.0, "msfw", 2000, dtype=FLOAT64)
        converged(unweighted, X, codes)
        assert np.abs(pair_decisions(unweighted.view(), X) - ours).max() > 1e-3

    def test_of_a_pair_are_those_of_its_classes(self):
        X, codes = clusters(seed=72, n=200, n_classes=3)
        learner = WorkingSet(RBF, 5.0, "msfw", 1, class_weight=[2.0, 0.5], max_size=60)
        learner.absorb(X, codes)
        assert [learner.ridges.class_ridge(code) for code in range(3)] == [0.05, 0.2, 0.1]
        for problem in learner.problems:
            held, A = members(problem), direct_hessian(learner, problem)
            np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("wrong", [[1.0, 0.0], [-1.0], [float("nan")]])
    def test_must_be_positive(self, wrong):
        with pytest.raises(ValueError):
            WorkingSet(RBF, class_weight=wrong)


def converged(learner, X, codes, passes=6):
    """Pass after pass over the same rows."""
    entered = None
    for _ in range(passes):
        entered = learner.absorb(X, codes, entered).entered
    return entered


def gaps_over(learner, X, codes):
    """Each problem's max g + 2q over all samples of its classes, whether stored or not."""
    decision = pair_decisions(learner.view(), X)
    gaps = []
    for i, (a, b) in enumerate(pairs_of(learner.n_classes)):
        held = members(learner.problems[i])
        sign = (codes == b).astype(np.float64) - (codes == a)
        outside = np.isin(codes, (a, b)) & ~(X[:, None] == stored_rows(learner, held)).all(2).any(1)
        g = np.concatenate([held.gradient, (-2.0 * sign * decision[:, i])[outside]])
        gaps.append(g.max() + 2.0 * held.q)
    return np.array(gaps)


def stored_rows(learner, held):
    return learner.store.rows.exact[held.column]


class TestPasses:
    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize("algorithm", ["sfw", "msfw"])
    def test_approach_the_optimum_over_all_samples(self, algorithm, n_classes):
        X, codes = clusters(seed=73, n=200, n_classes=n_classes, noise=0.2)
        learner = WorkingSet(RBF, 5.0, algorithm, corrective_steps=3, dtype=FLOAT64)
        entered, q, gaps = None, [], []
        for _ in range(30):
            entered = learner.absorb(X, codes, entered).entered
            q.append([members(problem).q for problem in learner.problems])
            gaps.append(gaps_over(learner, X, codes))
        assert np.all(np.diff(q, axis=0) <= 1e-12)
        assert np.all(gaps[4] < gaps[0])
        assert np.all(gaps[-1] < 1e-6 * np.array(q[-1]))

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_store_no_sample_and_make_none_a_member_twice(self, n_classes):
        X, codes = clusters(seed=74, n=300, n_classes=n_classes, noise=0.2)
        learner = WorkingSet(RBF, 5.0, "msfw", 1, dtype=FLOAT64)
        converged(learner, X, codes)
        held = learner.store.rows.exact[: learner.store.used]
        assert len(np.unique(held, axis=0)) == learner.store.size == learner.store.used
        for problem in learner.problems:
            columns = members(problem).column
            assert len(np.unique(columns)) == len(columns)

    def test_without_the_numbers_twins_are_stored(self):
        """Which is what makes the numbers necessary."""
        X, codes = clusters(seed=74, n=300, noise=0.2)
        learner = WorkingSet(RBF, 5.0, "msfw", 1, dtype=FLOAT64)
        learner.absorb(X, codes)
        learner.absorb(X, codes)
        held = learner.store.rows.exact[: learner.store.used]
        assert len(np.unique(held, axis=0)) < learner.store.used

    def test_admit_stored_samples_to_further_problems(self):
        X, codes = clusters(seed=75, n=300, n_classes=4, noise=0.2)
        learner = WorkingSet(RBF, 5.0, "msfw", 1, dtype=FLOAT64)
        entered = learner.absorb(X, codes).entered
        sizes = [int(problem.size[0]) for problem in learner.problems]
        again = learner.absorb(X, codes, entered)
        assert (again.admitted & (entered >= 0)).any()
        for problem, size in zip(learner.problems, sizes, strict=True):
            assert problem.size[0] > size
            held, A = members(problem), direct_hessian(learner, problem)
            np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("max_size", [None, 70])
    def test_number_the_stored_samples(self, max_size):
        X, codes = clusters(seed=76, n=400, n_classes=3, noise=0.2)
        learner = WorkingSet(RBF, 5.0, "msfw", 1, max_size=max_size)
        entered = None
        for _ in range(3):
            entered = learner.absorb(X, codes, entered).entered
            store = learner.store
            assert len(np.unique(store.entered[store.occupied_slots()])) == store.size
            for slot in store.occupied_slots():
                row = np.flatnonzero(entered == store.entered[slot])
                np.testing.assert_array_equal(X[row], store.rows.exact[[slot]])

    @pytest.mark.parametrize("length", [1, 64])
    @pytest.mark.parametrize("max_size", BOUNDS)
    def test_do_not_depend_on_the_cut(self, length, max_size):
        X, codes = clusters(seed=77, n=300, n_classes=3, noise=0.2)
        whole, cut = (WorkingSet(RBF, 5.0, "msfw", 1, max_size, FLOAT64) for _ in range(2))
        entered = [learner.absorb(X, codes).entered for learner in (whole, cut)]
        whole.absorb(X, codes, entered[0])
        for part in blocks(300, length):
            cut.absorb(X[part], codes[part], entered[1][part])
        assert_equal_problems(whole, cut)

    def test_start_an_emptied_problem_with_a_sample_that_is_held(self):
        X, codes = clusters(seed=78, n=40)
        learner = WorkingSet(RBF, 5.0, dtype=FLOAT64)
        entered = learner.absorb(X, codes).entered
        problem = learner.problems[0]
        problem.alpha[:] = 0.0
        problem.q[0] = 0.0
        first = np.flatnonzero(entered >= 0)[-1:]
        size = int(problem.size[0])
        learner.absorb(X[first], codes[first], entered[first])
        held, A = members(problem), direct_hessian(learner, problem)
        assert len(held.alpha) == size
        assert held.alpha.tolist() == [0.0] * (size - 1) + [1.0]
        np.testing.assert_allclose(held.gradient, -2.0 * A[-1], rtol=0, atol=1e-12)
        assert held.q == pytest.approx(A[-1, -1])


class TestBoundInBytes:
    def test_is_no_bound_on_the_samples(self):
        X, codes = clusters(seed=79, n=600, n_classes=3, noise=0.3)
        learner = WorkingSet(RBF, 5.0, gram_bytes_max=4 * 50**2)
        learner.absorb(X, codes)
        assert learner.store.used > 200

    def test_holds_for_the_whole_matrix(self):
        X, codes = clusters(seed=79, n=600, noise=0.3)
        learner = WorkingSet(RBF, 5.0, gram_bytes_max=4 * 150**2)
        whole = []
        for part in blocks(600, 7):
            learner.absorb(X[part], codes[part])
            if not learner.store.some_rows:
                whole.append(learner.store.gram.kept.values.nbytes)
        assert 4 * 100**2 < max(whole) <= 4 * 150**2
        assert learner.store.some_rows

    @pytest.mark.parametrize("bound", [{"max_size": 1}, {"gram_bytes_max": 15}, {"max_size": 0}])
    def test_must_leave_room_for_two_samples(self, bound):
        with pytest.raises(ValueError):
            WorkingSet(RBF, **bound)


@pytest.mark.parametrize("after", [0, 40])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_rows_at_all_change_nothing(n_classes, after):
    X, codes = clusters(7, 60, n_classes=n_classes)
    learner = WorkingSet(KERNELS["rbf"])
    if after:
        learner.absorb(X[:after], codes[:after])
    before = learner.state()
    answers = learner.absorb(X[:0], codes[:0])
    assert [len(column) for column in answers if column is not None] == [0] * 6
    for name, array in learner.state().items():
        np.testing.assert_array_equal(array, before[name])
