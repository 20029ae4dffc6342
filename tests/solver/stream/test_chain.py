"""The chain of the default model's heads in one call, beside the heads one after another."""

import pickle

import numpy as np
import pytest

from tests.solver.streams import blocks
from wolfstream.solver.prepare.named_rows import table_of
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.stream.model import StreamModel
from wolfstream.solver.working_set.auto_widths import WIDEST

PARAMETERS = {"preparing": PreparationParameters(), "temporal": False, "seed": 0}


def stream(n=700, columns=4, classes=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, columns)) * 10.0 ** np.arange(columns) + 5.0
    signal = X[:, 0] - 5.0 + 0.2 * random.normal(size=n)
    y = np.digitize(signal, np.quantile(signal, np.arange(1, classes) / classes))
    return X, y.tolist()


def model_of(X, y, **parameters):
    own = {**PARAMETERS, **parameters}
    model = StreamModel("classification", own.pop("head", "working_set"), **own)
    for part in blocks(len(y), 64):
        model.absorb(X[part], y[part])
    return model


def by_heads(view, rows):
    """The answers of the heads one after another."""
    return view._predict(view._seen(rows))[0]


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("columns", [1, 4, 33, 100])
def test_answers_are_those_of_the_heads(columns, classes):
    X, y = stream(columns=columns, classes=classes)
    view = model_of(X[:500], y[:500]).view()
    assert view.chain.get() is not None
    found, expected = view.predict(X[500:]), by_heads(view, X[500:])
    np.testing.assert_allclose(found.probability, expected.probability, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.prediction, expected.prediction)
    assert found.classes == expected.classes


def test_a_row_has_the_same_bits_alone_and_among_others():
    X, y = stream(classes=3)
    view = model_of(X[:500], y[:500]).view()
    together = view.predict(X[500:]).probability
    alone = [view.predict(X[i : i + 1]).probability[0] for i in range(500, len(X))]
    np.testing.assert_array_equal(together, alone)


def test_memory_that_is_reused_does_not_matter():
    X, y = stream()
    view = model_of(X[:500], y[:500]).view()
    expected = view.predict(X[500:]).probability
    work, _ = view.chain.get()._idle[0]
    for array in (work.p, work.scores, work.phi, work.vote.values, work.search.distance):
        array[...] = 7.0
    work.speaks[...] = False
    np.testing.assert_array_equal(view.predict(X[500:]).probability, expected)


def test_a_restored_model_has_a_chain_with_the_same_bits():
    X, y = stream()
    model = model_of(X[:300], y[:300])
    restored = pickle.loads(pickle.dumps(model))  # noqa: S301
    views = [one.view() for one in (model, restored)]
    assert views[1].chain.get() is not None
    found = [view.predict(X[300:]).probability for view in views]
    np.testing.assert_array_equal(*found)


def test_far_and_missing_numbers_are_answered():
    X, y = stream()
    X[::50] *= 1e12
    X[::7, 1] = np.nan
    view = model_of(X[:500], y[:500]).view()
    expected = by_heads(view, X[500:]).probability
    found = view.predict(X[500:]).probability
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_the_weights_of_classes_count():
    X, y = stream()
    view = model_of(X[:500], y[:500], class_weight="balanced").view()
    found, expected = view.predict(X[500:]), by_heads(view, X[500:])
    np.testing.assert_array_equal(found.prediction, expected.prediction)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9, atol=1e-9)


def test_a_view_stays_while_the_model_learns():
    X, y = stream()
    model = model_of(X[:300], y[:300])
    view = model.view()
    before = view.predict(X[600:]).probability
    model.absorb(X[300:600], y[300:600])
    np.testing.assert_array_equal(view.predict(X[600:]).probability, before)


def test_texts_are_answered_as_by_the_heads():
    """Also words, and in rows that lack them; a row has the same bits alone."""
    X, y = stream()
    words = ["ice cold", "ice warm", "sun warm", None]
    values = [
        [*row, "abc"[i % 3] if i % 5 else None, words[i % 4]] for i, row in enumerate(X.tolist())
    ]
    spec = PARAMETERS | {"preparing": PreparationParameters(columns=(("f", "text"),))}
    model = StreamModel("classification", "working_set", **spec)
    for part in blocks(500, 64):
        model.absorb(table_of([*"abcdef"], values[part]), y[part])
    view = model.view()
    assert view.chain.get() is not None
    rest = table_of([*"abcdef"], values[500:])
    found, expected = view.predict(rest), by_heads(view, rest)
    np.testing.assert_allclose(found.probability, expected.probability, rtol=1e-6, atol=1e-9)
    alone = [view.predict(rest.rows(i, i + 1)).probability[0] for i in range(len(y) - 500)]
    np.testing.assert_array_equal(found.probability, alone)


def test_one_class_wide_rows_and_other_heads_have_no_chain():
    X, y = stream(200)
    assert model_of(X, [0] * len(y)).view().chain.get() is None
    assert model_of(X, y, temporal=True).view().chain.get() is not None
    assert model_of(X, y, head="asset").view().chain.get() is None
    assert model_of(*stream(200, columns=WIDEST)).view().chain.get() is None
