"""The default model where labels come late: what it answers, and that a replay rebuilds it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.streams import curve, three_classes
from tests.service.writer_bench import Bench, work_off
from wolfstream.service.engine.queue_items import LabelRequest, WaitingRowsRequest
from wolfstream.service.model.live import Model
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec

BATCH = 20


def created(bench: Bench, task: str, name: str = "m", **spec: Any) -> Model:
    return bench.writer.new_models.create(name, read_spec({"task": task, **spec}))[0]


def stream(task: str, n: int, seed: int) -> Samples:
    return curve(n, seed) if task == "regression" else three_classes(n, seed)


def predict(bench: Bench, model: Model, ids: list[Any], X: Any) -> tuple[list[Any], list[Any]]:
    """Predict rows, which then wait for their labels; return predictions and decisions."""
    published, serve = model.published, model.spec.serve
    predictions = published.predict(serve, published.head_rows(X))
    response = {
        "sequence": published.sequence,
        "epoch": published.epoch,
        "head": serve,
        "prediction": predictions.prediction,
        "decision": predictions.decision,
        "ids": ids,
    }
    waiter: Any = object()
    work_off(bench.writer, [WaitingRowsRequest(model, ids, X, response, waiter, 0.0)])
    return predictions.prediction, predictions.decision


def label(bench: Bench, model: Model, ids: list[Any], y: Any) -> list[str]:
    """Send labels; return what became of each."""
    waiter: Any = object()
    labels = LateLabels(ids, y)
    work_off(bench.writer, [LabelRequest(model, model.spec.serve, labels, waiter, 0.0)])
    status: list[str] = bench.replies[-1][1]["results"]["status"]
    return status


def walk(bench: Bench, model: Model, samples: Samples, delay: Any, first: int = 0) -> list[Any]:
    """Predict rows in batches under their numbers; send each label so many rows later.

    delay: (n,) int, -1 of a label that never comes. Returns the answers to all predictions.
    """
    n, due = len(samples.y), np.arange(len(samples.y)) + delay
    answers = []
    for start in range(0, n, BATCH):
        stop = min(start + BATCH, n)
        ids = list(range(first + start, first + stop))
        answers.append(predict(bench, model, ids, samples.X[start:stop]))
        came = np.flatnonzero((delay >= 0) & (due >= start) & (due < stop) & (np.arange(n) < stop))
        came = came[np.argsort(due[came], kind="stable")]
        if len(came):
            known = samples.y
            y = [known[i] for i in came] if isinstance(known, list) else known[came]
            assert {*label(bench, model, (first + came).tolist(), y)} == {"learned"}
    return answers


def taught(bench: Bench, task: str, n: int = 40, name: str = "m", **spec: Any) -> Model:
    """A new model that has learned a few samples, of all classes."""
    model = created(bench, task, name, **spec)
    samples = stream(task, n, 99)
    bench.learn(model, samples, "asset" if task == "regression" else "working_set")
    return model


def bits_of(bench: Bench, model: Model) -> Any:
    """All of the model's state but its memory, which is added up once in some hundred samples."""
    plain, arrays = bench.writer.models.learner(model).state()
    del plain["memory_bytes"]
    return plain, {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}


def are_finite(answers: list[Any]) -> bool:
    """Whether all predictions and decisions of numbers are finite, and no prediction is missing."""
    for prediction, decision in answers:
        if any(one is None for one in prediction):
            return False
        numbers = [one for one in prediction if isinstance(one, float)]
        for one in decision:
            numbers += one if isinstance(one, list) else [one]
        if not np.isfinite(np.array(numbers, np.float64)).all():
            return False
    return True


# -- the order in the log is all that counts --------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_later_labels_change_no_earlier_answer(bench: Bench, task: str, seed: int) -> None:
    random, n = np.random.default_rng(seed), 600
    samples, delay = stream(task, n, seed), random.choice([0, 7, 100, 250, -1], n)
    cut = BATCH * int(random.integers(n // 2 // BATCH, n // BATCH))
    late = np.flatnonzero((np.arange(n) + delay >= cut) & (delay >= 0))
    moved = np.arange(n)
    moved[late] = random.permutation(late)
    y = samples.y
    other_y: Any = [y[i] for i in moved] if isinstance(y, list) else y[moved]
    assert len(late) > 10
    first = walk(bench, taught(bench, task), samples, delay)
    second = walk(bench, taught(bench, task, name="other"), Samples(samples.X, other_y), delay)
    # The batch at the cut is predicted before the labels that are due with it.
    before = cut // BATCH + 1
    assert first[:before] == second[:before]
    assert first != second


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_replay_rebuilds_the_model_bit_for_bit(tmp_path: Path, task: str) -> None:
    """With trees, which answer after 384 samples, and a snapshot while rows wait."""
    bench = Bench(tmp_path / "data")
    model = taught(bench, task)
    delay = np.random.default_rng(1).choice([0, 7, 100, 250, -1], 700)
    samples = stream(task, 700, 1)
    walk(bench, model, Samples(samples.X[:300], samples.y[:300]), delay[:300])
    bench.snapshot(model)
    walk(bench, model, Samples(samples.X[300:], samples.y[300:]), delay[300:], first=300)
    learned, before = model.published.sequence, bits_of(bench, model)
    assert learned > 384
    again = bench.restarted()
    restored = again.writer.models.get("m")
    assert restored is not None
    assert (restored.published.sequence, bits_of(again, restored)) == (learned, before)
    again.close()


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_labels_that_never_come_leave_answers_and_memory_as_they_are(
    bench: Bench, task: str
) -> None:
    model = taught(bench, task, pending={"max_rows": 100})
    samples = stream(task, 400, 1)
    answers = walk(bench, model, samples, np.full(400, -1))
    assert are_finite(answers)
    assert model.pending is not None
    assert (model.pending.rows, model.pending.expired) == (100, 300)
    assert model.published.sequence == 40
    assert predict(bench, model, ["again"], samples.X[:1])[0] == answers[0][0][:1]


def test_delays_that_grow_to_10000_rows_and_end(bench: Bench) -> None:
    """Labels come at once, then 10,000 rows late, then at once again, before the late ones."""
    model = taught(bench, "classification")
    samples = three_classes(10_200, 3)
    X, y = samples.X, samples.y
    at_once = walk(bench, model, Samples(X[:100], y[:100]), np.zeros(100, int))
    ahead = predict(bench, model, list(range(100, 10_100)), X[100:10_100])
    last = Samples(X[10_100:], y[10_100:])
    back = walk(bench, model, last, np.zeros(100, int), first=10_100)
    assert are_finite([*at_once, ahead, *back])
    late = list(range(100, 10_100, 40))
    assert {*label(bench, model, late, [y[i] for i in late])} == {"learned"}
    assert model.published.sequence == 40 + 100 + 100 + 250
    after = predict(bench, model, ["after"], X[:1])
    assert are_finite([after])


def test_a_class_that_comes_inside_the_delay(bench: Bench) -> None:
    """Rows that were predicted before their class was known are learned with it."""
    model = created(bench, "classification")
    random = np.random.default_rng(4)
    codes = np.repeat([0, 1, 2], [60, 60, 80])
    X = random.normal(size=(200, 3)) + 4.0 * np.eye(3)[codes]
    first = random.permutation(120)
    bench.learn(model, Samples(X[first], codes[first].tolist()), "working_set")
    predicted, _ = predict(bench, model, list(range(80)), X[120:])
    assert {*predicted} <= {0, 1}
    assert {*label(bench, model, list(range(80)), [2] * 80)} == {"learned"}
    answer = predict(bench, model, ["later"], 4.0 * np.eye(3)[2:])
    assert answer[0] == [2]
    assert are_finite([answer])


@pytest.mark.parametrize(
    ("task", "value"), [("classification", 7), ("regression", 7.0), ("regression", 0.0)]
)
def test_targets_that_become_constant_are_answered_with_the_constant(
    bench: Bench, task: str, value: Any
) -> None:
    model = taught(bench, task)
    X = stream(task, 400, 5).X
    y: Any = [value] * 400 if task == "classification" else np.full(400, value)
    answers = walk(bench, model, Samples(X, y), np.full(400, 100))
    assert are_finite(answers)
    last = answers[-1][0]
    assert last == [value] * BATCH if task == "classification" else np.allclose(last, value, atol=1)


@pytest.mark.parametrize("what", ["rows", "targets", "both"])
def test_values_as_large_as_are_taken_get_finite_answers(bench: Bench, what: str) -> None:
    """Rows of 1e300; larger targets than LARGEST_TARGET are refused before they come here."""
    model, samples = taught(bench, "regression"), curve(400, 6)
    X, y = samples.X.copy(), np.array(samples.y)
    huge = np.random.default_rng(6).random(400) < 0.05
    if what != "targets":
        X[huge, 0] = 1e300
    if what != "rows":
        y[huge] = -LARGEST_TARGET
    answers = walk(bench, model, Samples(X, y), np.full(400, 100))
    assert are_finite(answers)
