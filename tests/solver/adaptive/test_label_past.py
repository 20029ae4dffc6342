"""What the labels before a row add to answers, beside plain numpy and by the order of rows."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from tests.solver.streams import blocks
from wolfstream.solver.adaptive import past_classes, past_values
from wolfstream.solver.adaptive.combination import Combiner, combination_arrays, new_combination
from wolfstream.solver.adaptive.label_past import MOST_CLASSES, LabelPast
from wolfstream.solver.adaptive.regressor import ValueAnswers
from wolfstream.solver.adaptive.value_mixture import learn_rows, new_mixture
from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.stream_classifier import StreamClassifier
from wolfstream.solver.estimators.stream_regressor import StreamRegressor
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.rows.answers import Values
from wolfstream.solver.stream.merge import merge, sibling
from wolfstream.solver.stream.model import StreamModel

ONES = np.ones(1)


def sticky(n: int, classes: int, stay: float = 0.9, seed: int = 0) -> NDArray[np.int64]:
    """Labels that mostly are the one before."""
    random, y = np.random.default_rng(seed), np.zeros(n, np.int64)
    for i in range(1, n):
        y[i] = y[i - 1] if random.random() < stay else random.integers(classes)
    return y


def walk(n: int, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Targets that walk, and answers that know only where about they are."""
    random = np.random.default_rng(seed)
    y = 100.0 + np.cumsum(random.normal(size=n))
    return y, y + 5.0 * random.normal(size=n)


def class_answers(y: NDArray[np.int64], classes: int, seed: int = 0) -> ClassAnswers:
    """Answers with some evidence for each label."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(len(y), classes))
    logits[np.arange(len(y)), y] += 1.0
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return ClassAnswers(p.argmax(axis=1), p)


def part_of(answers: Any, part: slice) -> Any:
    return type(answers)(*(field[part] for field in answers))


def learned(past: LabelPast, answers: Any, y: Any, block: int) -> Any:
    """What it answers to all rows, block by block."""
    found = []
    for part in blocks(len(y), block):
        X = np.arange(part.start, min(part.stop, len(y)), dtype=np.float64)[:, None]
        own = past.absorb(X, None, y[part], np.ones(len(X)), part_of(answers, part))
        found.append(own.prediction if isinstance(own, Values) else own.probability)
    return np.concatenate(found)


def problem(task: str, n: int = 500) -> tuple[LabelPast, Any, Any]:
    if task == "regression":
        y, said = walk(n)
        return LabelPast(regression=True, always=False), Values(said), y
    labels = sticky(n, 3)
    return of_classes(3), class_answers(labels, 3), labels


def of_classes(classes: int) -> LabelPast:
    past = LabelPast(regression=False, always=False)
    past.meet(classes)
    return past


def test_labels_that_follow_each_other_are_found():
    y = np.arange(2000) % 7
    even = ClassAnswers(np.zeros(2000, np.int64), np.full((2000, 7), 1.0 / 7.0))
    probability = learned(of_classes(7), even, y, 64)
    assert np.mean(probability[200:].argmax(axis=1) == y[200:]) > 0.99


def test_values_are_those_of_the_formulas():
    y, answers = walk(300)
    weight = np.random.default_rng(1).uniform(0.5, 3.0, 300)
    past = past_values.new_value_past()
    found, losses = past_values.ValuePasts().learn(past, answers, answers, y, weight)
    F, H = past_values.FEATURES, np.array(past_values.HORIZONS)
    a, P, mixture = np.zeros((len(H), F)), [np.eye(F) for _ in H], new_mixture(past_values.EXPERTS)
    r = np.zeros(300)
    assert_array_equal(found[:2], answers[:2])
    r[1] = y[1] - answers[1]
    scale, count = abs(r[1]), 1.0
    for i in range(2, 300):
        unit = max(scale / max(count, 1.0), 1e-12 * abs(y[i - 1]))
        changes = [y[i - k] - y[i - k - 1] if i > k else 0.0 for k in (1, 2, 3)]
        left = [r[i - k] if i - k > 0 else 0.0 for k in (1, 2)]
        f = np.array([y[i - 1] - answers[i], *changes, *left, unit]) / unit
        limits = np.full(F, past_values.USUAL)
        limits[0] = reach = past_values.FARTHEST
        f = np.clip(f, -limits, limits)
        target = np.clip((y[i] - answers[i]) / unit, -reach, reach)
        middle = np.clip((np.sort(y[:i])[i // 2] - answers[i]) / unit, -reach, reach)
        values = np.array([0.0, f[0], 0.0, middle, *(one @ f for one in a)])
        of_row = (one[None] for one in (values, np.array(target), weight[i]))
        one_row = (np.atleast_1d(one) for one in of_row)
        (answer,), (squares,) = learn_rows(mixture, *one_row, in_units=True)
        assert_allclose(found[i], answers[i] + unit * answer, rtol=1e-9)
        assert_allclose(losses[i], squares * unit**2, rtol=1e-6, atol=1e-12)
        for h, horizon in enumerate(H):
            kept, error = np.exp(-1.0 / horizon), target - a[h] @ f
            gain = P[h] @ f / (max(abs(error), 0.3) / weight[i] + f @ P[h] @ f)
            a[h] = np.sqrt(kept) * (a[h] + gain * error)
            P[h] = kept * (P[h] - np.outer(gain, P[h] @ f)) + (1.0 - kept) * np.eye(F)
        r[i] = y[i] - answers[i]
        scale, count = 0.99 * scale + abs(r[i]), 0.99 * count + 1.0
    assert_allclose(past.a, a, rtol=1e-6, atol=1e-9)


def test_last_value_is_exact_after_a_jump():
    y = 100.0 + np.random.default_rng(1).normal(size=400)
    y[300:] -= 60.0
    answers, past = np.full(400, 100.0), past_values.new_value_past()
    _, losses = past_values.ValuePasts().learn(past, answers, answers, y, np.ones(400))
    assert_allclose(losses[301:, 1], np.diff(y)[300:] ** 2, rtol=1e-9)


def whole_numbers(n: int) -> tuple[Float64Array, Float64Array]:
    """Whole numbers, some wrong by one, and what they are rounded from."""
    random = np.random.default_rng(3)
    exact = random.uniform(0.0, 20.0, n)
    return np.round(exact) + random.choice([-1.0, 0.0, 0.0, 0.0, 1.0], n), exact


def mean_error(y: Float64Array, answers: Float64Array) -> tuple[float, past_values.ValuePast]:
    """Return that of the predictions after the first 200, and the state after all."""
    past = past_values.new_value_past()
    predictions, _ = past_values.ValuePasts().learn(past, answers, answers, y, np.ones(len(y)))
    return float(np.abs(predictions - y)[200:].mean()), past


def test_predictions_move_to_numbers_that_repeat():
    y, answers = whole_numbers(1000)
    error, past = mean_error(y, answers)
    assert error < 0.9 * np.abs(answers - y)[200:].mean()
    assert past.moving[1] > 0.9


def test_numbers_that_do_not_repeat_move_no_prediction():
    y, answers = walk(1000)
    _, past = mean_error(y, answers)
    assert past.moving.tolist() == [0.8, 0.2]


def test_the_median_is_found_where_most_targets_are_zero():
    random = np.random.default_rng(3)
    means = 0.1 * np.exp(random.normal(size=1000))
    y = random.poisson(means).astype(np.float64)
    assert mean_error(y, means)[0] < 1.02 * y[200:].mean()


def test_a_view_moves_predictions_as_learning_does():
    y, means = whole_numbers(400)
    past, learning = past_values.new_value_past(), past_values.ValuePasts()
    learning.learn(past, means[:399], means[:399], y[:399], np.ones(399))
    view = learning.view(past)
    assert view is not None
    assert len(view.targets) == 399
    answer = view.answer(ValueAnswers(means[399:], np.ones(1)), means[399:]).prediction
    before_learning, _ = learning.learn(past, means[399:], means[399:], y[399:], np.ones(1))
    assert_allclose(answer, before_learning, rtol=1e-9)
    step, at = 1e-6, float(means[399])
    ends = np.array([at - step, at + step])
    low, high = view.answer(ValueAnswers(ends, np.ones(2)), ends).prediction
    # Values of trees follow the prediction without the targets before.
    assert_allclose((high - low) / (2 * step), view.rate(at), rtol=1e-4, atol=1e-6)


def test_probabilities_are_those_of_the_formulas():
    n, K = 300, 4
    y, random = sticky(n, K), np.random.default_rng(2)
    answers, weight = class_answers(y, K), random.uniform(0.5, 3.0, n)
    past = past_classes.with_classes(past_classes.new_class_past(), K)
    known = np.full(n, K)
    found, losses = past_classes.ClassPasts().learn(past, answers, y, known, weight)
    kept, short, stayed = (np.exp(-1.0 / h) for h in (1000.0, 10.0, 300.0))
    table, share, recent, stay = np.zeros((K, K)), np.zeros(K), np.zeros(K), np.zeros(2)
    scores, awake = np.zeros((n, 4, K + 1)), np.ones((n, 4), np.bool_)
    awake[0, 1:] = False
    for i in range(n):
        said = scores[i, :, :K]
        said[0] = np.log(np.maximum(answers.probability[i], 1e-4))
        if i:
            j, q = y[i - 1], (share + 0.5) / (share + 0.5).sum()
            said[1] = said[0] + np.log((table[j] + 2.0 * q) / (table[j].sum() + 2.0) / q)
            s = (stay[0] + 1.0) / (stay[1] + 2.0)
            said[2] = np.where(np.arange(K) == j, np.log(s), np.log((1.0 - s) / (K - 1)))
            said[3] = np.log((recent + 0.05) / (recent + 0.05).sum())
            table[j] *= kept
            table[j, y[i]] += weight[i]
            stay = stayed * stay + weight[i] * np.array([y[i] == j, 1.0])
        share, recent = kept * share, short * recent
        share[y[i]] += weight[i]
        recent[y[i]] += weight[i]
    prior = np.array([4.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    first = np.array([64.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    combination = new_combination(first, (0.03, 0.1), noisy=False)
    combination.a[:] = [1.0, 0.0, 0.0, 0.0]
    combine = Combiner(prior).combine
    expected, expected_losses = combine(combination, scores, awake, y, known, weight)
    assert_allclose(found.probability, expected, rtol=1e-9)
    assert_allclose(losses, expected_losses, rtol=1e-6)
    for name, array in combination_arrays("c", combination).items():
        assert_allclose(getattr(past.combination, name[2:]), array, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("block", [1, 7, 64])
def test_blocks_of_any_length_and_restored_ones_give_the_same_bits(task, block):
    past, answers, y = problem(task)
    expected = learned(past, answers, y, 500)
    first, _, _ = problem(task)
    start = learned(first, part_of(answers, slice(0, 200)), y[:200], block)
    restored, _, _ = problem(task)
    restored.restore(first.state())
    rest = learned(restored, part_of(answers, slice(200, None)), y[200:], block)
    assert_array_equal(np.concatenate([start, rest]), expected)
    restored.recent.hashes[:] = past.recent.hashes  # rows were numbered anew
    for name, array in past.state().items():
        if "calibration" not in name:
            assert_array_equal(restored.state()[name], array, err_msg=name)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_view_answers_as_the_next_row_is_learned(task):
    past, answers, y = problem(task)
    learned(past, part_of(answers, slice(0, 300)), y[:300], 64)
    view, row = past.view(), slice(300, 301)
    assert view is not None
    if task == "regression":
        found = view.answer(ValueAnswers(answers.prediction[row], ONES))
        assert found.deviation[0] > 0.0
        own = past.absorb(ONES[None], None, y[row], ONES, part_of(answers, row))
        assert_allclose(found.prediction, own.prediction, rtol=1e-12)
    else:
        found = view.answer(part_of(answers, row))
        own = past.absorb(ONES[None], None, y[row], ONES, part_of(answers, row))
        assert_allclose(found.probability, own.probability, rtol=1e-9)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_gradients_are_slopes_of_answers(task):
    past, answers, y = problem(task)
    learned(past, answers, y, 64)
    view, step = past.view(), 1e-5
    assert view is not None
    if task == "regression":
        base = y[-1] + 0.5
        at = (view.answer(ValueAnswers(ONES * v, ONES)).prediction for v in (base, base + step))
        low, high = at
        slope = view.gradient(ValueAnswers(ONES * base, ONES), ONES)
        # Trees that say what the answer does, too, move with it.
        vote = ONES * base
        fixed = view.answer(ValueAnswers(ONES * (base + step), ONES), vote + step).prediction
        assert_allclose((fixed - low) / step, slope, rtol=1e-4)
        assert_allclose(high, fixed)
        return
    direction = np.array([1.0, -1.0, 0.0])

    def value(logs: Float64Array) -> float:
        p = np.exp(logs) / np.exp(logs).sum()
        return float(
            direction @ np.log(view.answer(ClassAnswers(np.zeros(1), p[None])).probability[0])
        )

    logs = np.array([-0.5, -1.0, -1.5])
    p = np.exp(logs) / np.exp(logs).sum()
    found = view.gradient(ClassAnswers(np.zeros(1, np.int64), p[None]), direction)
    each = [(value(logs + step * e) - value(logs - step * e)) / (2.0 * step) for e in np.eye(3)]
    assert_allclose(found, each, atol=1e-6)


def test_persisting_labels_are_as_good_as_the_last_one_soon():
    random = np.random.default_rng(3)
    y = sticky(2000, 2, stay=0.97)
    p = np.clip(0.5 + 0.1 * random.normal(size=2000), 0.1, 0.9)
    answers = ClassAnswers((p > 0.5).astype(np.int64), np.stack([1.0 - p, p], axis=1))
    found = learned(of_classes(2), answers, y, 64).argmax(axis=1)
    late = slice(100, None)
    last = np.concatenate([[0], y[:-1]])
    assert (found != y)[late].sum() <= (last != y)[late].sum() + 2


def test_walking_targets_are_as_good_as_the_last_one_soon():
    y, answers = walk(2000)
    found = learned(LabelPast(regression=True, always=False), Values(answers), y, 64)
    late = slice(100, None)
    last = np.concatenate([[0.0], y[:-1]])
    assert np.abs(found - y)[late].mean() < 1.02 * np.abs(last - y)[late].mean()


@pytest.mark.parametrize("seed", range(3))
def test_labels_without_memory_cost_nothing(seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, 4000)
    answers = class_answers(labels, 3, seed)
    found = learned(of_classes(3), answers, labels, 64)
    right = (found.argmax(axis=1) == labels).mean(), (answers.prediction == labels).mean()
    assert right[0] > right[1] - 0.002
    y = random.normal(size=4000)
    said = y + random.normal(size=4000)
    values = learned(LabelPast(regression=True, always=False), Values(0.5 * said), y, 64)
    assert np.abs(values - y).mean() < 1.005 * np.abs(0.5 * said - y).mean()


def test_too_many_classes_end_it():
    past, n = LabelPast(regression=False, always=False), MOST_CLASSES + 1
    y = np.arange(n)
    answers = ClassAnswers(y, np.full((n, n), 1.0 / n))
    assert past.absorb(np.zeros((n, 1)), None, y, np.ones(n), answers) is answers
    assert past.view() is None
    other = LabelPast(regression=False, always=False)
    other.restore(past.state())
    assert other.past is None


@pytest.mark.parametrize("y", [np.zeros(50), np.full(50, 1e150), np.tile([1e150, -1e150], 25)])
def test_targets_of_any_size_give_finite_answers(y):
    for said in (np.zeros(50), y.copy()):
        past = LabelPast(regression=True, always=False)
        found = learned(past, Values(said), y, 7)
        assert np.isfinite(found).all()
        view = past.view()
        assert view is not None
        answer = view.answer(ValueAnswers(said[:1], ONES))
        assert np.isfinite(answer.prediction).all()
        assert np.isfinite(answer.deviation).all()


def rows(n: int, seed: int = 0) -> Float64Array:
    return np.random.default_rng(seed).normal(size=(n, 3))


def stream_model(task: Any, temporal: Any = "auto") -> StreamModel:
    head: Any = "asset" if task == "regression" else "working_set"
    return StreamModel(task, head, preparing=PreparationParameters(), temporal=temporal, seed=0)


def targets(task: str, n: int) -> Any:
    return walk(n)[0] if task == "regression" else sticky(n, 2).tolist()


@settings(max_examples=8, deadline=None)
@given(task=st.sampled_from(["classification", "regression"]), seed=st.integers(0, 99))
def test_later_labels_change_nothing_earlier(task, seed):
    X, y = rows(140, seed), targets(task, 140)
    order = np.concatenate([np.arange(70), 70 + np.random.default_rng(seed).permutation(70)])
    other = [y[i] for i in order] if task == "classification" else y[order]
    answers = []
    for labels in (y, other):
        model, found = stream_model(task), []
        bank = model.bank
        absorb = bank.absorb

        def kept(*given: Any, absorb: Any = absorb, found: list[Any] = found) -> Any:
            parts = absorb(*given)
            found.append(parts[0].decision)
            return parts

        bank.absorb = kept  # type: ignore[method-assign]
        for part in blocks(140, 14):
            model.absorb(X[part], labels[part])
        answers.append(np.concatenate([np.atleast_1d(one) for one in found[:5]]))
    assert_array_equal(*answers)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_answer_without_them_is_that_of_a_model_without(task):
    X, y = rows(200), targets(task, 200)
    found = []
    for temporal in ("auto", False):
        model = stream_model(task, temporal)
        for part in blocks(200, 20):
            model.absorb(X[part], y[part])
        found.append(model.view().predict(X).decisions[0])
    assert_array_equal(*found)


def test_estimators_know_the_label_before_once_it_came():
    X, y = rows(300), sticky(300, 2, stay=0.95)
    model = StreamClassifier().partial_fit(X[:200], y[:200], classes=[0, 1])
    alone = [model.predict_proba(X[i : i + 1])[0] for i in range(200, 300)]
    assert_array_equal(model.predict_proba(X[200:]), alone)
    wrong = 0
    for i in range(200, 300):
        wrong += int(model.predict(X[i : i + 1])[0] != y[i])
        assert_array_equal(model.predict_proba(X[i : i + 1]), model.predict_proba(X[i : i + 1]))
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert wrong <= 2 + (y[200:] != y[199:-1]).sum()
    again = copy.deepcopy(model)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_true_answers_batches_with_them_and_false_never():
    X, y = rows(300), walk(300)[0]
    found = {}
    for temporal in ("auto", True, False):
        model = StreamRegressor(temporal=temporal).partial_fit(X, y)
        found[temporal] = np.abs(model.predict(rows(50, 9)) - y[-1]).mean()
    assert found[True] < 0.5 * found[False]
    assert found["auto"] == found[False]
    with pytest.raises(ValueError, match="temporal is 'no'"):
        StreamRegressor(temporal="no").partial_fit(X, y)


def test_merged_models_begin_anew():
    X, y = rows(400), sticky(400, 2).tolist()
    first = stream_model("classification")
    first.absorb(X[:200], y[:200])
    second = sibling(first)
    second.absorb(X[200:], y[200:])
    merged = merge([first, second])
    assert merged.bank.past is not None
    assert merged.view().predict(X).in_turn is False
    merged.absorb(X, y)
    assert merged.bank.past.recent.total == 400
    with pytest.raises(ValueError, match="always uses the labels"):
        sibling(trained(True, X, y))


def trained(temporal: Any, X: Float64Array, y: Any) -> StreamModel:
    model = stream_model("classification", temporal)
    model.absorb(X, y)
    return model
