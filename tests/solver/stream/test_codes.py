"""Numbers that are codes: crossed by the bank as texts are, once they show as such."""

import copy

import numpy as np
import pytest

from wolfstream.solver.prepare.cells import Cells, cells_of_numbers
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.prepare.schema import SETTLING
from wolfstream.solver.stream.merge import merge, sibling
from wolfstream.solver.stream.model import StreamModel

FEW, MANY = (12, 15), (20, 25)  # values of the two codes


def rows_of_codes(seed, n, values=FEW):
    """Rows of a number and two codes, and labels that only both codes together tell."""
    signs = np.random.default_rng(7).choice(["no", "yes"], values)
    random = np.random.default_rng(seed)
    a, b = (random.integers(0, count, n) for count in values)
    return np.column_stack([random.normal(size=n), a, 100.0 + b]), signs[a, b].tolist()


def model(codes="crossed", task="classification"):
    preparing = PreparationParameters(codes=codes)
    return StreamModel(task, "asset", preparing=preparing, temporal=False, seed=0)


def learned(n=1500, length=64, values=FEW, **parameters):
    one, (X, y) = model(**parameters), rows_of_codes(1, n, values)
    if one.task == "regression":
        y = np.array([float(label == "yes") for label in y])
    for start in range(0, n, length):
        one.absorb(X[start : start + length], y[start : start + length])
    return one


def share_right(one, X, y):
    answer = one.view().predict(X)
    return np.mean([answer.classes[k] for k in answer.prediction] == np.array(y))


def test_a_model_learns_what_two_codes_say_together():
    # Of so many values that trees, which divide few of them well, cannot make up for codes.
    asked, crossed = rows_of_codes(2, 2000, MANY), learned(2000, values=MANY)
    without = learned(2000, values=MANY, codes="numbers")
    assert share_right(crossed, *asked) > 0.99
    assert share_right(without, *asked) < 0.8
    assert crossed.rows.form.coded == (1, 2)
    assert any(row.get("features") == "texts" for row in crossed.expert_weights())
    assert not any(row.get("features") == "texts" for row in without.expert_weights())


def test_numbers_that_are_no_codes_are_learned_in_the_same_bits():
    X = np.random.default_rng(3).normal(size=(300, 3))
    y = np.where(X[:, 0] > 0.0, "a", "b").tolist()
    each = [model(codes) for codes in ("crossed", "numbers")]
    for one in each:
        one.absorb(X, y)
    np.testing.assert_array_equal(*(one.view().predict(X).probability for one in each))
    states = [one.bank.state() for one in each]
    assert states[0][0] == states[1][0]
    assert states[0][1].keys() == states[1][1].keys()


def test_requests_of_any_length_teach_the_same():
    asked = rows_of_codes(5, 50)[0]
    said = [learned(260, length).view().predict(asked).probability for length in (1, 64, 260)]
    np.testing.assert_allclose(said[0], said[1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(said[0], said[2], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("samples", [60, 300], ids=["while it settles", "later"])
def test_a_model_that_was_saved_goes_on_bit_for_bit(samples, task):
    one = learned(samples, task=task)
    other, (X, y) = copy.deepcopy(one), rows_of_codes(4, 100)
    y = y if task == "classification" else [float(label == "yes") for label in y]
    for each in (one, other):
        each.absorb(X, y if task == "classification" else np.array(y))
    np.testing.assert_array_equal(*(each.view().predict(X).decisions[0] for each in (one, other)))
    assert one.rows.form.coded == other.rows.form.coded == (1, 2)


def test_names_may_come_after_numbers_without_any():
    X, y = rows_of_codes(1, 400)
    one = model()
    one.absorb(X[:200], y[:200])
    one.absorb(cells_of_numbers(("x", "shop", "kind"), X[200:]), y[200:])
    assert one.rows.form.coded == (1, 2)
    assert np.isfinite(one.view().predict(X).probability).all()


def test_codes_follow_texts_not_times():
    n = 2 * SETTLING
    X, y = rows_of_codes(1, n)
    texts = np.tile(np.array([[-1, -1, -1, 0]], np.int32), (n, 1))
    numbers = np.column_stack([np.repeat(86_400.0 * np.arange(n // 8), 8), X[:, 1:], X[:, 0]])
    numbers[:, 3] = np.nan
    cells = Cells(("at", "shop", "kind", "plan"), numbers, ("a",), texts, texts > -2)
    preparing = PreparationParameters(timestamps=("at",))
    one = StreamModel("classification", "asset", preparing=preparing, temporal=False, seed=0)
    one.absorb(cells, y)
    assert one.bank.texts == 3
    assert one.rows.form.crossed_columns == (12, 10, 11)


def test_a_number_that_never_came_and_a_missing_one_are_answered():
    one = learned(300)
    rows = np.array([[0.0, 99.0, np.nan], [np.nan, np.nan, np.nan]])
    assert np.isfinite(one.view().predict(rows).probability).all()
    one.absorb(rows, ["yes", "no"])
    assert np.isfinite(one.view().predict(rows).probability).all()


def test_models_of_parts_are_merged_with_what_they_know_of_codes():
    X, y = rows_of_codes(6, 2400)
    first = model()
    first.absorb(X[:300], y[:300])
    second = sibling(first)
    first.absorb(X[300:1350], y[300:1350])
    second.absorb(X[1350:], y[1350:])
    assert share_right(merge([first, second]), *rows_of_codes(8, 300)) > 0.85


def test_reasons_say_what_the_answer_is_without_each_code():
    view = learned(600).view()
    (found,) = view.explain(np.array([[0.3, 2.0, 104.0]]))
    assert {(one.feature, one.value) for one in found.values} == {(1, 2.0), (2, 104.0)}
    p = view.predict(np.array([[0.3, np.nan, 104.0]])).probability[0]
    without = next(one.without for one in found.values if one.feature == 1)
    odds = np.log(p[found.contest.wanted] / p[found.contest.other])
    np.testing.assert_allclose(without, odds, rtol=1e-9)
