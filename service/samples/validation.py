"""Reads and checks requests of samples and of predictions in decoded bodies."""

from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wolfstream.service.errors import MOST_ERRORS, Invalid, SampleError, pointer_to, refuse
from wolfstream.service.samples.ids import RowId, read_ids
from wolfstream.service.samples.rows import read_body_rows
from wolfstream.service.samples.tasks import TASKS, Targets
from wolfstream.service.samples.weights import read_weight
from wolfstream.service.spec.heads import TaskName
from wolfstream.service.spec.refusals import listed
from wolfstream.solver.prepare.named_rows import Rows, n_rows, rows_between
from wolfstream.solver.rows.sample_weights import Weights, weights_of

# Fields of a prediction request besides its rows.
_ASKED = {"probability", "confidence", "explain", "costs", "ids"}
MOST_REASONS = 100
MOST_COSTS = 10_000
LARGEST_COST = 1e12
# true label -> predicted label -> cost
Costs: TypeAlias = dict[str, dict[str, float]]
# The reasons for one row take as long as thousands of predictions.
MOST_EXPLAINED = 1000


class Samples(NamedTuple):
    """Rows, and the label or target of each.

    Attributes:
        X: n rows: an array (n, d) float64, rows by name, or a table. Numbers are finite, or NaN for
            a missing one, if the model prepares its rows.
        y: labels or targets, (n,).
        weight: of each sample, (n,) float64; None if all are 1.
    """

    X: Rows
    y: Targets
    weight: Weights = None

    def part(self, start: int, stop: int) -> "Samples":
        """Return the samples from one index to another."""
        if start == 0 and stop == len(self.y):
            return self
        weight = weights_of(self.weight, slice(start, stop))
        return Samples(rows_between(self.X, start, stop), self.y[start:stop], weight)


def read_samples(
    body: Any, task: TaskName = "classification", *, prepared: bool = False
) -> Samples:
    """Return samples for a model of this task.

    Args:
        body: decoded.
        task: of the model.
        prepared: whether the model prepares its rows, which may then have texts and missing values.

    Raises Invalid, and InvalidSamples with a pointer to each invalid value, up to a limit.
    """
    fields = _fields(body, ("x", "y"), ("names", "weight"))
    X, single = read_body_rows(fields, prepared)
    y = TASKS[task].read(fields["y"], single)
    n = len(X) if isinstance(X, np.ndarray) else n_rows(X)
    if len(y) != n:
        refuse("/y", f"x and y must be equally long; x has {n} and y has {len(y)}")
    weight = read_weight(fields["weight"], len(y)) if "weight" in fields else None
    return Samples(X, y, weight)


def read_rows(body: Any, *, prepared: bool = False) -> Rows:
    """Return the rows of a prediction request.

    prepared: whether the model prepares rows; see `read_samples`.

    Raises Invalid, InvalidSamples.
    """
    return read_body_rows(_fields(body, ("x",), ("names",)), prepared)[0]


class Question(NamedTuple):
    """Rows to predict, and what is asked about them.

    Attributes:
        rows: to predict.
        probability: whether probabilities are asked for.
        confidence: of sets or intervals, in (0, 1); None if none are asked for.
        explain: how many reasons for and against are asked for; 0 for none.
        costs: by which to choose the prediction; None for the head's own.
        ids: of the rows, if they are to wait for labels.
    """

    rows: Rows
    probability: bool = False
    confidence: float | None = None
    explain: int = 0
    costs: Costs | None = None
    ids: list[RowId] | None = None


def read_question(body: Any, *, prepared: bool = False) -> Question:
    """Return a prediction request.

    prepared: whether the model prepares rows; see `read_samples`.

    Raises Invalid, InvalidSamples.
    """
    if not isinstance(body, dict) or _ASKED.isdisjoint(body):
        return Question(read_rows(body, prepared=prepared))
    probability = body.get("probability", False)
    if type(probability) is not bool:
        refuse("/probability", "must be true or false")
    confidence = read_confidence(body["confidence"]) if "confidence" in body else None
    explain = read_explain(body["explain"]) if "explain" in body else 0
    costs = read_costs(body["costs"]) if "costs" in body else None
    rows = read_rows({name: body[name] for name in body.keys() - _ASKED}, prepared=prepared)
    ids = read_ids(body["ids"], n_rows(rows)) if "ids" in body else None
    return Question(rows, probability, confidence, explain, costs, ids)


def read_confidence(value: Any) -> float:
    """Return the confidence of sets or intervals. Raises InvalidSamples."""
    if type(value) not in (int, float) or not 0.0 < value < 1.0:
        refuse("/confidence", "must be a number between 0 and 1, such as 0.9")
    return float(value)


def read_explain(value: Any) -> int:
    """Return how many reasons are asked for each way. Raises InvalidSamples."""
    if type(value) is not int or not 1 <= value <= MOST_REASONS:
        refuse("/explain", f"must be a whole number from 1 to {MOST_REASONS}")
    return int(value)


def read_costs(value: Any) -> Costs:
    """Return the costs of mistakes. Raises InvalidSamples."""
    shape = 'must be costs by true label and predicted label, such as {"fraud": {"ok": 50}}'
    if not isinstance(value, dict) or not value:
        refuse("/costs", shape)
    if not all(isinstance(row, dict) and row for row in value.values()):
        refuse("/costs", shape)
    if sum(map(len, value.values())) > MOST_COSTS:
        refuse("/costs", f"has more than {MOST_COSTS} costs")
    for true, row in value.items():
        for predicted, cost in row.items():
            if type(cost) not in (int, float) or not 0.0 <= cost <= LARGEST_COST:
                pointer = f"/costs{pointer_to(true)}{pointer_to(predicted)}"
                refuse(pointer, f"must be a number from 0 to {LARGEST_COST:g}")
    return {true: {j: float(cost) for j, cost in row.items()} for true, row in value.items()}


def check_explained(question: Question) -> None:
    """Raise InvalidSamples if reasons are asked for too many rows."""
    if question.explain and n_rows(question.rows) > MOST_EXPLAINED:
        refuse("/explain", f"takes at most {MOST_EXPLAINED} rows; ask for some of them")


def _fields(body: Any, names: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    wanted = " and ".join(names)
    if not isinstance(body, dict):
        raise Invalid(f"the body must be an object with {wanted}")
    if body.keys() == set(names):
        return body
    unknown = (name for name in body if name not in names + optional)
    problems: list[SampleError] = [
        {"pointer": pointer_to(name), "detail": f"unknown field; the body has {wanted}"}
        for name in islice(unknown, MOST_ERRORS)
    ]
    problems += [{"pointer": f"/{n}", "detail": "field is missing"} for n in names if n not in body]
    if problems:
        others = listed(optional, "and")
        raise Invalid(f"the body must have {wanted} and nothing else but {others}", problems)
    return body
