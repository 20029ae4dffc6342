"""Trees join the answers of a model's bank, as a function of its rows alone."""

import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wolfstream.solver.adaptive.target_scale import Units
from wolfstream.solver.adaptive.tree_experts import MOST_CLASSES, TreeExperts
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.named_rows import named_values
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.rows.head_rows import Hints, RawRows
from wolfstream.solver.stream.model import StreamModel
from wolfstream.solver.trees.schedule import fit_at

# A fit begins after 256 samples and answers from sequence 384 on; the next one begins after 512.
BLOCK = 64


def model(task: Any, **given: Any) -> StreamModel:
    head: Any = "asset" if task == "regression" else "working_set"
    return StreamModel(
        task, head, preparing=PreparationParameters(), temporal=False, seed=0, **given
    )


def stream(task: str, n: int = 1100, seed: int = 0) -> tuple[Float64Array, Any]:
    """Rows of boxes, which trees find sooner than others."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 4))
    inside = ((X[:, 0] > -0.3) & (X[:, 1] > 0.1)) | ((X[:, 0] < -0.6) & (X[:, 3] < 0.0))
    if task == "regression":
        return X, 5.0 * inside + X[:, 2]
    return X, ["in" if one else "out" for one in inside.tolist()]


def learn(learner: StreamModel, X: Any, y: Any, block: int = BLOCK) -> None:
    for start in range(0, len(y), block):
        learner.absorb(X[start : start + block], y[start : start + block])


def answers(learner: StreamModel, X: Float64Array) -> NDArray[Any]:
    answer = learner.view().predict(X)
    return answer.prediction if answer.probability is None else answer.probability


def trees_of(learner: StreamModel) -> Any:
    assert learner.bank.trees is not None
    return learner.bank.trees


def same(first: StreamModel, second: StreamModel) -> None:
    for one, other in zip(first.bank.state(), second.bank.state(), strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


TASKS = ["classification", "regression"]


@pytest.fixture(scope="module", params=TASKS)
def learned(request: Any) -> tuple[str, StreamModel]:
    one = model(request.param)
    learn(one, *stream(request.param))
    return request.param, one


def test_trees_see_what_the_bank_does_not(learned: tuple[str, StreamModel]) -> None:
    task, one = learned
    X, y = stream(task, 500, seed=1)
    said = answers(one, X)
    trees = one.bank.trees
    one.bank.trees, one._view = None, None
    without = answers(one, X)
    one.bank.trees, one._view = trees, None
    if task == "regression":
        assert np.abs(said - y).mean() < 0.8 * np.abs(without - y).mean()
    else:
        codes = np.array([one.classes.index(label) for label in y])  # type: ignore[union-attr]
        right = [np.mean(one_of.argmax(axis=1) == codes) for one_of in (said, without)]
        assert right[0] > right[1] + 0.01


def test_a_row_has_the_same_bits_alone(learned: tuple[str, StreamModel]) -> None:
    task, one = learned
    X, _ = stream(task, 100, seed=2)
    alone = np.concatenate([answers(one, X[i : i + 1]) for i in range(len(X))])
    # ASSET, which the bank of numbers listens to, rounds by the block.
    tolerance = 1e-12 if task == "regression" else 0.0
    np.testing.assert_allclose(alone, answers(one, X), rtol=tolerance, atol=0.0)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("at", "fitting"),
    [(112, False), (128, True), (144, True), (160, False), (176, False), (208, True)],
)
def test_a_restored_model_goes_on_bit_for_bit(task: str, at: int, fitting: bool) -> None:
    X, y = stream(task)
    one = model(task)
    learn(one, X[:at], y[:at])
    assert (trees_of(one).running is not None) == fitting
    # A restored working set may round differently, so both go on from a restored one.
    first = copy.deepcopy(one)
    second = copy.deepcopy(first)
    for each in (first, second):
        learn(each, X[at : at + 450], y[at : at + 450])
    same(first, second)


def test_no_later_label_changes_an_answer() -> None:
    X, y = stream("regression")
    first, second = model("regression"), model("regression")
    learn(first, X[:640], y[:640])
    changed = y[:704].copy()
    changed[640:] = -3.0
    learn(second, X[:704], changed)
    third = model("regression")
    learn(third, X[:640], changed[:640])
    same(first, third)


def test_fits_follow_from_rows_whatever_their_blocks() -> None:
    X, y = stream("regression", 900)
    each = [model("regression") for _ in range(3)]
    for one, block in zip(each, (1, 64, 900), strict=True):
        learn(one, X, y, block)
    said = [answers(one, X) for one in each]
    fresh = [trees_of(one).forests.fresh for one in each]
    assert all(np.array_equal(a, b) for a, b in zip(fresh[1], fresh[2], strict=True))
    assert all(trees_of(one).samples == 900 for one in each)
    assert np.abs(said[0] - said[1]).mean() < 0.05


def test_learners_share_all_of_the_weight(learned: tuple[str, StreamModel]) -> None:
    _, one = learned
    rows = one.expert_weights()
    assert sum(row["weight"] for row in rows) == pytest.approx(1.0)
    trees = [row for row in rows if row["learner"] == "trees"]
    assert [row["of"] for row in trees] == ["labels", "residuals"]
    assert all(row["recent_loss"] > 0.0 for row in trees)


def test_learners_without_trees_are_those_of_the_bank() -> None:
    one = model("regression")
    learn(one, *stream("regression", 120))
    assert all(row["learner"] != "trees" for row in one.expert_weights())


def test_a_class_between_two_fits_is_learned() -> None:
    X, y = stream("classification")
    one = model("classification")
    y = [*y[:400], *["new" if i % 3 == 0 else y[i] for i in range(400, 1100)]]
    learn(one, X, y)
    assert one.classes is not None
    assert answers(one, X).shape == (1100, 3)
    assert trees_of(one).forests.classes == 3


def test_trees_stop_at_too_many_classes() -> None:
    X = np.random.default_rng(0).normal(size=(700, 3))
    one = model("classification")
    y = [f"c{i % 2 if i < 500 else i % (MOST_CLASSES + 1)}" for i in range(700)]
    learn(one, X, y)
    trees = trees_of(one)
    assert trees.stopped
    assert trees.forests is None
    assert len(trees.window) == 0
    restored = copy.deepcopy(one)
    learn(restored, X, y)


def test_one_class_makes_no_trees() -> None:
    X, _ = stream("classification", 400)
    one = model("classification")
    learn(one, X, ["only"] * 400)
    assert trees_of(one).forests is None


def test_rows_with_words_and_holes_are_learned() -> None:
    random = np.random.default_rng(0)
    codes, X = random.integers(0, 30, 900), random.normal(size=900)
    effect = random.normal(size=30)
    rows = [
        {"word": f"w{code}", **({"x": x} if i % 5 else {})}
        for i, (code, x) in enumerate(zip(codes.tolist(), X.tolist(), strict=True))
    ]
    one = model("regression")
    y = effect[codes] + np.where(np.arange(900) % 5 == 0, 2.0, X)
    for start in range(0, 900, 50):
        one.absorb(named_values(rows[start : start + 50]), y[start : start + 50])
    assert trees_of(one).categories.any()
    said = one.view().predict(named_values(rows)).prediction
    assert np.abs(said - y).mean() < 0.5


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e99])
def test_any_targets_have_finite_answers(scale: float) -> None:
    X, y = stream("regression", 700)
    one = model("regression")
    learn(one, X, scale * y)
    assert np.isfinite(answers(one, X)).all()


def test_weights_of_samples_count() -> None:
    X, y = stream("regression", 700)
    one, other = model("regression"), model("regression")
    weight = np.where(np.arange(700) % 2, 1.0, 3.0)
    one.absorb(X, y, weight)
    other.absorb(X, y)
    leaves = [trees_of(each).forests.fresh.leaf for each in (one, other)]
    assert not np.array_equal(*leaves)


def test_the_gradient_is_the_slope_between_borders(learned: tuple[str, StreamModel]) -> None:
    task, one = learned
    X, _ = stream(task, 1, seed=5)
    view, raw = one.bank.learner_view(), RawRows(X)
    assert view is not None
    assert view.trees is not None
    x, hints, step = np.full(4, 0.1), Hints(raw=raw), 1e-6

    def said(row: Float64Array) -> float:
        answer: Any = view.predict(row[None], hints)
        return float(answer.decision[0])

    direction = np.ones(1) if task == "regression" else np.array([-1.0, 1.0])
    found = view.gradient(x, direction, hints).row
    slopes = [(said(x + step * e) - said(x - step * e)) / (2.0 * step) for e in np.eye(4)]
    np.testing.assert_allclose(found, slopes, rtol=1e-3, atol=1e-5)


def test_intervals_grow_with_the_work() -> None:
    fits = [fit_at(8192, 8192, d, k, 500_000) for d, k in ((4, 2), (99, 2), (99, 9))]
    assert fits[0].next < fits[1].next
    assert all(fit.begins < fit.due < fit.next for fit in fits)
    assert all(fit.due - fit.begins <= 4096 for fit in fits)
    # The fewer rows there are, the sooner a fit is done.
    assert fit_at(2048, 2048, 99, 9, 500_000).next - 2048 < fits[2].next - 8192


def test_intervals_are_shorter_while_a_stream_is_young() -> None:
    intervals = [
        fit.next - fit.begins
        for fit in (fit_at(n, 500, 50, 2, 500_000) for n in (500, 1000, 2048, 9000))
    ]
    assert intervals[0] < intervals[1] < intervals[2] == intervals[3]
    assert fit_at(128, 128, 4, 2, 500_000).next == 192


def titles(n: int = 1100, seed: int = 0) -> tuple[list[dict[str, Any]], Float64Array]:
    """Rows of titles of two words each, of 400 kinds, whose targets are sums of the words'."""
    rng = np.random.default_rng(seed)
    worth, place = rng.normal(size=(2, 20)), rng.integers(0, 20, (n, 2))
    texts = [f"the alpha{a} of beta{b} house" for a, b in place.tolist()]
    rows = [{"title": text, "x": i % 7} for i, text in enumerate(texts)]
    return rows, worth[0, place[:, 0]] + worth[1, place[:, 1]]


def absorbed(rows: list[dict[str, Any]], y: Any, block: int = BLOCK) -> StreamModel:
    one = model("regression" if isinstance(y, np.ndarray) else "classification")
    for start in range(0, len(y), block):
        part = slice(start, start + block)
        one.absorb(named_values(rows[part]), y[part])
    return one


def test_trees_know_the_words_of_titles() -> None:
    rows, y = titles()
    one = absorbed(rows, y)
    forests = trees_of(one).forests
    assert forests.encoding.width == 1
    raw = one.view()._seen(named_values(rows)).raw
    said = forests.encoding.encoded(raw.X, raw.word_codes)[:, -1]
    assert np.corrcoef(said, y)[0, 1] > 0.9


def test_words_give_the_same_bits_whatever_the_blocks() -> None:
    rows, y = titles(800)
    raw = absorbed(rows, y).view()._seen(named_values(rows)).raw
    assert raw is not None
    states = []
    for block in (1, 7, 64, 800):
        one = TreeExperts(raw.X.shape[1], raw.categories, raw.word_codes.shape[1], regression=True)
        start = 0
        while start < 800:
            part = slice(start, min(start + block, start + one.until_change(), 800))
            weight, start = np.ones(part.stop - start), part.stop
            one.absorb(
                raw.part(part), y[part], weight, np.zeros(len(weight)), Units(), lambda: 10**6
            )
        states.append(one.state())
    for state in states[1:]:
        for name, array in states[0].items():
            np.testing.assert_array_equal(state[name], array, err_msg=name)


@pytest.mark.parametrize("at", [400, 600])
def test_a_restored_model_of_words_goes_on_bit_for_bit(at: int) -> None:
    rows, y = titles(800)
    labels = ["high" if one > 0.0 else "low" for one in y.tolist()]
    for targets in (y, labels):
        one = absorbed(rows[:at], targets[:at])
        other = copy.deepcopy(one)
        for each in (one, other):
            each.absorb(named_values(rows[at:]), targets[at:])
        same(one, other)
        assert trees_of(one).forests.encoding.width


def test_words_that_come_later_leave_trees_as_they_are() -> None:
    rows, y = titles(700)
    plain = [{"x": row["x"]} for row in rows]
    one = absorbed(plain[:300] + rows[300:], y)
    assert trees_of(one).words == 0
    assert trees_of(one).samples == 700
    assert np.isfinite(one.view().predict(named_values(rows)).prediction).all()


def test_a_category_of_many_codes_is_a_column_too() -> None:
    rng = np.random.default_rng(4)
    code, worth = rng.integers(0, 300, 1100), rng.normal(size=300)
    rows = [{"zone": f"z{k}", "x": float(k % 7)} for k in code.tolist()]
    one = absorbed(rows, worth[code])
    assert trees_of(one).forests.encoding.columns.tolist() == [0]
