"""Sets that are larger than their kernel matrix may be."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import (
    FLOAT64,
    KERNELS,
    blocks,
    clusters,
    dense,
    direct_hessian,
    members,
    sparse,
    thin_clusters,
)
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import take_rows
from wolfstream.solver.working_set.gram import Gram, NoGram
from wolfstream.solver.working_set.gram_rows import GramRows
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

RBF = KERNELS["rbf"]
C = 5.0
# The matrix of 100 samples in float64.
FEW_BYTES = 8 * 100**2


def learned(X, codes, kernel=RBF, passes=1, gram_bytes_max=FEW_BYTES, length=64, **parameters):
    """A set that has learned rows in so many passes, and its answers."""
    parameters = {"dtype": FLOAT64, "gram_bytes_max": gram_bytes_max} | parameters
    learner = WorkingSet(kernel, C, **parameters)
    entered = np.full(len(codes), -1, np.int64)
    answers = []
    for _ in range(passes):
        for part in blocks(len(codes), length):
            answer = learner.absorb(take_rows(X, part), codes[part], entered[part])
            entered[part] = answer.entered
            answers.append(answer)
    return learner, answers


def kept_rows(learner):
    """The slots whose rows are kept, and their values against all slots."""
    kept, used = learner.store.gram.kept, learner.store.used
    places = np.flatnonzero(kept.column_in >= 0)
    return kept.column_in[places], kept.values[places, :used]


def test_a_row_that_is_computed_has_one_on_the_diagonal():
    X, codes = clusters(5, 700, noise=0.3)
    store = learned(X + 20.0, codes, dtype=np.dtype(np.float32))[0].store
    missing = np.flatnonzero(store.gram.kept.slot_of[: store.used] < 0)[:10]
    store.fetch(missing)
    kept = store.gram.kept
    assert (kept.values[kept.slot_of[missing], missing] == 1.0).all()


CASES = {
    "two classes": ({}, {}),
    "sfw": ({}, {"algorithm": "sfw"}),
    "two passes": ({}, {"passes": 2}),
    "five classes": ({"n_classes": 5}, {}),
    "samples leave": ({}, {"max_size": 220}),
    "samples of five classes leave": ({"n_classes": 5}, {"max_size": 220}),
    "polynomial": ({}, {"kernel": KERNELS["cubic"]}),
}


def test_rows_that_are_asked_for_stay_while_others_are_computed():
    X, codes = clusters(5, 700, noise=0.3)
    store = learned(X, codes)[0].store
    kept = store.gram.kept
    assert (kept.column_in >= 0).all()
    kept.clock[0] += 1
    oldest = kept.column_in[np.argsort(kept.last_used, kind="stable")[:5]]
    asked = np.concatenate([oldest, np.flatnonzero(kept.slot_of[: store.used] < 0)[:5]])
    store.fetch(asked)
    assert (kept.slot_of[asked] >= 0).all()


@pytest.mark.parametrize(("stream", "how"), CASES.values(), ids=CASES)
def test_takes_the_same_steps_as_with_the_whole_matrix(stream, how):
    X, codes = clusters(5, 700, noise=0.3, **stream)
    few, of_few = learned(X, codes, **how)
    whole, of_whole = learned(X, codes, gram_bytes_max=1 << 30, **how)
    assert isinstance(few.store.gram, GramRows)
    assert isinstance(whole.store.gram, NoGram if few.n_classes > 2 else Gram)
    for one, other in zip(of_few, of_whole, strict=True):
        np.testing.assert_array_equal(one.admitted, other.admitted)
        np.testing.assert_array_equal(one.step, other.step)
        np.testing.assert_allclose(one.decision, other.decision, rtol=0, atol=1e-9)
    for ours, theirs in zip(few.problems, whole.problems, strict=True):
        np.testing.assert_allclose(members(ours).alpha, members(theirs).alpha, rtol=0, atol=1e-9)


def test_sparse_rows_take_the_same_steps():
    X, codes = thin_clusters(6, 500, noise=0.3)
    few, of_few = learned(sparse(X), codes)
    _, of_whole = learned(sparse(X), codes, gram_bytes_max=1 << 30)
    assert isinstance(few.store.gram, GramRows)
    for one, other in zip(of_few, of_whole, strict=True):
        np.testing.assert_array_equal(one.step, other.step)
    slots, values = kept_rows(few)
    rows = dense(few.store.used_rows().exact)
    np.testing.assert_allclose(values, kernel_matrix(RBF, rows[slots], rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("max_size", [None, 220])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_rows_are_those_of_the_samples(max_size, scale):
    """Also of float32 values with rows so far from the first one that float32 would not do.

    Values that float32 products round are compared; how they are rounded depends on the processor:
    on one kind the largest difference is 2.5e-6, on another below 2e-6.
    """
    X, codes = clusters(7, 900, noise=0.3)
    kernel = Kernel("rbf", 0.3 / scale**2)
    learner, _ = learned(
        scale * X + 100.0 * scale, codes, kernel, max_size=max_size, dtype=np.dtype(np.float32)
    )
    slots, values = kept_rows(learner)
    assert len(slots) >= 64
    rows = learner.store.used_rows().exact
    held = learner.store.occupied_slots()
    np.testing.assert_allclose(
        values[:, held], kernel_matrix(kernel, rows[slots], rows[held]), rtol=0, atol=4e-6
    )


@pytest.mark.parametrize("max_size", [None, 220])
def test_q_and_g_are_what_they_are_by_definition(max_size):
    X, codes = clusters(8, 700, n_classes=3, noise=0.3)
    learner, _ = learned(X, codes, max_size=max_size)
    for problem, gap in zip(learner.problems, learner.view().gap, strict=True):
        held, A = members(problem), direct_hessian(learner, problem)
        np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-9)
        assert held.q == pytest.approx(held.alpha @ A @ held.alpha, abs=1e-10)
        assert gap == pytest.approx(held.gradient.max() + 2.0 * held.q, abs=1e-9)


def test_many_steps_are_followed_by_a_refresh():
    X, codes = clusters(9, 1500, noise=0.4)
    learner, _ = learned(X, codes, corrective_steps=60)
    problem = learner.problems[0]
    problem.steps[0] = 10**9
    problem.gradient[:] += 1e-6
    learner.absorb(X[:1], codes[:1])
    held, A = members(problem), direct_hessian(learner, problem)
    assert problem.steps[0] < 100
    np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-11)


@pytest.mark.sweep
@pytest.mark.parametrize("gram_bytes_max", [FEW_BYTES, 1 << 30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saved_set_continues_like_restored(gram_bytes_max, dtype):
    X, codes = clusters(10, 1200, n_classes=3, noise=0.3)
    how = {"gram_bytes_max": gram_bytes_max, "max_size": 400, "dtype": np.dtype(dtype)}
    live, _ = learned(X[:700], codes[:700], **how)
    state = live.state()
    live.restore(state)
    other = WorkingSet(RBF, C, **how)
    other.restore(state)
    for part in blocks(500, 37):
        answers = [set_.absorb(X[700:][part], codes[700:][part]) for set_ in (live, other)]
        for one, two in zip(*answers, strict=True):
            np.testing.assert_array_equal(one, two)
    for name, array in live.state().items():
        np.testing.assert_array_equal(array, other.state()[name])
    said = [predict(set_.view(), X)[1] for set_ in (live, other)]
    np.testing.assert_array_equal(*said)


def test_a_state_holds_no_kernel_values():
    X, codes = clusters(11, 600, noise=0.3)
    learner, _ = learned(X, codes, gram_bytes_max=1 << 30)
    n = learner.store.used
    assert n > 200
    assert sum(array.nbytes for array in learner.state().values()) < 100 * n


def test_memory_grows_like_the_samples():
    X, codes = clusters(12, 3000, noise=0.5)
    learner = WorkingSet(RBF, C, gram_bytes_max=4 * 300**2)
    sizes = {}
    for part in blocks(3000, 250):
        learner.absorb(X[part], codes[part])
        sizes[learner.store.used] = learner.store.nbytes
    (small, less), *_, (large, more) = [(n, size) for n, size in sizes.items() if n > 300]
    assert large > 3 * small
    assert more < 2.0 * less * large / small
    assert more < 4 * 300**2 + 64 * 4 * 1.3 * large + 400 * large
