"""Texts of a table in a model: crossed by the bank, whatever else becomes of the model."""

import copy

import numpy as np
import pytest

from wolfstream.solver.prepare.cells import cells_of_rows
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.stream.merge import merge, sibling
from wolfstream.solver.stream.model import StreamModel

SHOPS, USERS = 4, 60


def table(seed, n):
    """Rows of a number and two texts, and labels that only both texts together tell."""
    signs = np.random.default_rng(7).choice(["no", "yes"], (SHOPS, USERS))
    random = np.random.default_rng(seed)
    a, b = random.integers(0, SHOPS, n), random.integers(0, USERS, n)
    a[:USERS], b[:USERS] = np.arange(USERS) % SHOPS, np.arange(USERS)
    x = random.normal(size=n)
    rows = [
        {"x": number, "shop": f"shop {i}", "user": f"user {j}"}
        for number, i, j in zip(x.tolist(), a.tolist(), b.tolist(), strict=True)
    ]
    return cells_of_rows(rows), signs[a, b].tolist()


def model(texts="crossed", head="asset", task="classification"):
    preparing = PreparationParameters(texts=texts)
    return StreamModel(task, head, preparing=preparing, temporal=False, seed=0)


def share_right(one, rows, y):
    answer = one.view().predict(rows)
    return np.mean([answer.classes[k] for k in answer.prediction] == np.array(y))


def probability(one, rows):
    return one.view().predict(rows).probability


@pytest.fixture(scope="module")
def learned():
    one, (rows, y) = model(), table(1, 900)
    one.absorb(rows, y)
    return one


def test_a_model_learns_what_two_texts_say_together(learned):
    without, (rows, y) = model("slots"), table(1, 900)
    without.absorb(rows, y)
    asked = table(2, 300)
    assert share_right(learned, *asked) > 0.9
    assert any(row.get("features") == "texts" for row in learned.expert_weights())
    assert not any(row.get("features") == "texts" for row in without.expert_weights())


def test_rows_without_texts_are_learned_in_the_same_bits():
    random = np.random.default_rng(3)
    X, y = random.normal(size=(300, 3)), random.integers(0, 2, 300).tolist()
    each = [model(texts) for texts in ("crossed", "slots")]
    for one in each:
        one.absorb(X, y)
    np.testing.assert_array_equal(*(probability(one, X) for one in each))
    states = [one.bank.state() for one in each]
    assert states[0][0] == states[1][0] == {"begun": True, "columns": 3, "trees": 3}
    assert states[0][1].keys() == states[1][1].keys()


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("samples", [60, 300], ids=["while it settles", "later"])
def test_a_model_that_was_saved_goes_on_bit_for_bit(samples, task):
    rows, y = table(4, samples + 60)
    y = y if task == "classification" else np.array([float(label == "yes") for label in y])
    one = model(task=task)
    one.absorb(rows.rows(0, samples), y[:samples])
    other = copy.deepcopy(one)
    one = copy.deepcopy(one)
    for each in (one, other):
        each.absorb(rows.rows(samples, samples + 60), y[samples:])
    said = [each.view().predict(rows).decisions[0] for each in (one, other)]
    np.testing.assert_array_equal(*said)


def test_requests_of_any_length_teach_the_same():
    rows, y = table(5, 200)
    found = []
    for length in (1, 64):
        one = model()
        for start in range(0, 200, length):
            stop = min(200, start + length)
            one.absorb(rows.rows(start, stop), y[start:stop])
        found.append(probability(one, rows))
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


def test_a_text_that_never_came_and_a_missing_one_are_answered(learned):
    rows = cells_of_rows([{"x": 0.0, "shop": "new", "user": None}, {"x": 1.0}])
    assert np.isfinite(probability(learned, rows)).all()
    y = ["yes", "no"]
    other = copy.deepcopy(learned)
    other.absorb(rows, y)
    assert np.isfinite(probability(other, rows)).all()


def test_the_gradient_is_that_in_the_numbers_with_the_texts_as_they_are(learned):
    row = {"x": 0.3, "shop": "shop 1", "user": "user 2"}
    step, odds = 1e-5, []
    for x in (0.3 - step, 0.3 + step):
        p = probability(learned, cells_of_rows([row | {"x": x}]))[0]
        odds.append(np.log(p[1] / p[0]))
    (found,) = learned.view().explain(cells_of_rows([row]))
    sign = 1.0 if found.contest.wanted == 1 else -1.0
    of_x = next(one.gradient for one in found.gradient if one.feature == "x")
    np.testing.assert_allclose(of_x, sign * (odds[1] - odds[0]) / (2.0 * step), rtol=1e-3)


def test_models_of_parts_are_merged_with_what_they_know_of_texts():
    rows, y = table(6, 1800)
    first = model()
    first.absorb(rows.rows(0, 300), y[:300])
    second = sibling(first)
    first.absorb(rows.rows(300, 1050), y[300:1050])
    second.absorb(rows.rows(1050, 1800), y[1050:])
    merged = merge([first, second])
    asked = table(8, 300)
    assert share_right(merged, *asked) > 0.85
    merged.absorb(*asked)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_reasons_say_what_the_answer_is_without_each_text(task):
    rows, y = table(1, 600)
    y = y if task == "classification" else np.array([float(label == "yes") for label in y])
    one = model(task=task)
    one.absorb(rows, y)
    row = {"x": 0.3, "shop": "shop 1", "user": "user 2"}
    view = one.view()
    (found,) = view.explain(cells_of_rows([row]))

    def said(cells):
        answer = view.predict(cells_of_rows([cells]))
        if found.contest is None:
            return answer.prediction[0]
        p = answer.probability[0]
        return np.log(p[found.contest.wanted] / p[found.contest.other])

    assert {(one.feature, one.value) for one in found.values} == {
        ("shop", "shop 1"),
        ("user", "user 2"),
    }
    for one in found.values:
        np.testing.assert_allclose(one.without, said(row | {one.feature: None}), rtol=1e-9)
    sizes = [abs(said(row) - one.without) for one in found.values]
    assert sizes == sorted(sizes, reverse=True)
    (without_texts,) = view.explain(cells_of_rows([{"x": 0.3}]))
    assert without_texts.values == []


def test_reasons_of_rows_without_texts_name_none():
    random = np.random.default_rng(3)
    X = random.normal(size=(300, 3))
    one = model()
    one.absorb(X, np.where(X[:, 0] > 0.0, "a", "b").tolist())
    (found,) = one.view().explain(X[:1])
    assert found.values is None
