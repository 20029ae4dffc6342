"""Wide and sparse rows: hashed columns, diagonal learners, and a classifier on both."""

import numpy as np
import pytest

from tests.solver.streams import blocks
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.diagonal import DiagonalLearners, diagonal_scores
from wolfstream.solver.adaptive.hashing import WIDTH, hashed
from wolfstream.solver.adaptive.view import predict_classes
from wolfstream.solver.rows.matrix import sparse_from_csr, take_rows


def words(seed, n, width=40_000, length=8):
    """Rows of words; those of class 1 have one of ten words that class 0 never has."""
    random = np.random.default_rng(seed)
    columns = random.integers(20, width, (n, length))
    y = random.integers(0, 2, n)
    y[:2] = 0, 1
    columns[:, 0] = 2 * random.integers(0, 10, n) * 1000 + 1000 * y
    ends = np.arange(0, n * length + 1, length)
    return sparse_from_csr(np.ones(n * length), columns.ravel(), ends, width), y


def plain_adagrad(rows, Y, step):
    """One row at a time, in dictionaries."""
    W, G, seen = {}, {}, {}
    scores = np.zeros(Y.shape)
    for i, (columns, values) in enumerate(rows):
        x = {-1: 1.0}
        for j, value in zip(columns, values, strict=True):
            count, square = seen.get(j, (0.0, 0.0))
            seen[j] = count + 1.0, square + (value**2 - square) / (count + 1.0)
            x[j] = np.clip(value / np.sqrt(seen[j][1]), -4.0, 4.0)
        norm = np.sqrt(sum(v * v for j, v in x.items() if j >= 0))
        x = {j: v if j < 0 else v / norm for j, v in x.items()}
        scores[i] = sum(W.get(j, 0.0) * v for j, v in x.items())
        residual = Y[i] - 1.0 / (1.0 + np.exp(-scores[i]))
        for j, v in x.items():
            G[j] = G.get(j, 0.0) + (residual * v) ** 2
            W[j] = W.get(j, 0.0) + step * residual * v / np.sqrt(G[j] + 1e-12)
    return scores


@pytest.mark.parametrize("length", [1, 7, 200])
def test_diagonal_learners_are_adagrad_one_row_at_a_time(length):
    random = np.random.default_rng(1)
    dense = np.where(random.random((200, 30)) < 0.2, random.normal(size=(200, 30)), 0.0)
    dense[:, 0] = 1.0
    row, column = np.nonzero(dense)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=200))])
    X = sparse_from_csr(dense[row, column], column, ends, 30)
    Y = np.eye(3)[random.integers(0, 3, 200)]
    learner = DiagonalLearners((0.1, 1.0), regression=False)
    learner.meet(2)
    scores = [
        learner.absorb(take_rows(X, part), Y[part], np.ones(len(Y[part])))
        for part in blocks(200, length)
    ]
    rows = [(np.flatnonzero(r), r[r != 0.0]) for r in dense]
    for e, step in enumerate(learner.steps):
        found = np.concatenate([s[:, e] for s in scores])
        np.testing.assert_allclose(found, plain_adagrad(rows, Y, step), atol=1e-9)


def test_diagonal_view_scores_as_the_learner():
    X, y = words(2, 300)
    learner = DiagonalLearners((0.3,), regression=False)
    learner.meet(1)
    Y = np.eye(2)[y]
    learner.absorb(take_rows(X, slice(0, 299)), Y[:299], np.ones(299))
    last = take_rows(X, slice(299, 300))
    scores = diagonal_scores(learner.view(), last)
    np.testing.assert_array_equal(scores, learner.absorb(last, Y[299:], np.ones(1)))


def test_hashing_keeps_narrow_rows_and_inner_products_of_wide_ones():
    narrow = sparse_from_csr([1.0, 2.0], [0, WIDTH - 1], [0, 1, 2], WIDTH)
    expected = np.zeros((2, WIDTH))
    expected[0, 0], expected[1, -1] = 1.0, 2.0
    np.testing.assert_array_equal(hashed(narrow), expected)
    random = np.random.default_rng(3)
    values, columns = random.normal(size=4000), random.permutation(10**6)[:4000]
    wide = sparse_from_csr(np.tile(values, 2), np.tile(columns, 2), np.arange(0, 8001, 4), 10**6)
    dense = hashed(wide)
    product = np.einsum("ij,ij->i", dense[:1000], dense[1000:]).sum()
    assert product == pytest.approx((values**2).sum(), rel=0.1)


@pytest.mark.parametrize("length", [1, 7, 64])
def test_answers_do_not_depend_on_the_blocks(length):
    X, y = words(4, 300)
    one, other = AdaptiveClassifier(None), AdaptiveClassifier(None)
    once = one.absorb(X, y).probability
    parts = [other.absorb(take_rows(X, part), y[part]).probability for part in blocks(300, length)]
    padded = [np.pad(p, ((0, 0), (0, 2 - p.shape[1]))) for p in parts]
    np.testing.assert_allclose(np.concatenate(padded), once, atol=1e-7)


def test_words_are_learned_and_a_view_and_a_restored_state_agree():
    X, y = words(5, 2000)
    learner = AdaptiveClassifier(None, seed=1)
    first, rest = slice(0, 1900), slice(1900, 2000)
    answers = learner.absorb(take_rows(X, first), y[first])
    assert np.mean(answers.prediction[1000:] == y[1000:1900]) > 0.95
    twin = AdaptiveClassifier(None, seed=1)
    twin.restore(learner.state())
    views = [predict_classes(one.view(), take_rows(X, rest)) for one in (learner, twin)]
    np.testing.assert_array_equal(views[0].probability, views[1].probability)
    absorbed = [one.absorb(take_rows(X, rest), y[rest]) for one in (learner, twin)]
    np.testing.assert_array_equal(absorbed[0].probability, absorbed[1].probability)
    np.testing.assert_allclose(
        views[0].probability[0], absorbed[0].probability[0], rtol=1e-9, atol=1e-12
    )


def test_wide_dense_rows_are_taken_like_sparse_ones():
    random = np.random.default_rng(6)
    X = random.normal(size=(2000, 300))
    y = (X[:, 0] + X[:, 299] > 0.0).astype(np.int64)
    y[:2] = 0, 1
    learner = AdaptiveClassifier(300)
    answers = learner.absorb(X, y)
    assert np.mean(answers.prediction[1000:] == y[1000:]) > 0.75


def test_rows_without_entries_are_learned():
    X = sparse_from_csr([], [], np.zeros(65, np.int64), 10)
    answers = AdaptiveClassifier(None).absorb(X, np.arange(64) % 2)
    np.testing.assert_allclose(answers.probability[1:].sum(axis=1), 1.0)


def test_a_narrow_bank_refuses_sparse_rows():
    X, y = words(7, 10)
    with pytest.raises(TypeError, match="dense rows"):
        AdaptiveClassifier(3).absorb(X, y)
