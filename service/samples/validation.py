"""Samples, and rows to predict, out of decoded bodies, checked."""

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.errors import MOST_ERRORS, Invalid, SampleError, pointer_to, refuse
from wolfstream.service.samples.ids import RowId, read_ids
from wolfstream.service.samples.rows import rows_of
from wolfstream.service.samples.targets import Targets, read_labels, read_targets
from wolfstream.service.samples.weights import read_weight
from wolfstream.service.spec.heads import Task
from wolfstream.service.spec.refusals import listed
from wolfstream.solver.prepare.named_rows import Rows, n_rows, rows_between
from wolfstream.solver.rows.sample_weights import Weights, weights_of

# Fields of a prediction request besides its rows.
_ASKED = {"probability", "confidence", "explain", "ids"}
MOST_REASONS = 100
# A row's reasons take as long as thousands of predictions.
MOST_EXPLAINED = 1000


class Samples(NamedTuple):
    """Rows, arrays (n, d) float64, by name or of a table, and the labels or targets of all n.

    Numbers are finite; NaN where one is missing, if the model prepares its rows. weight: (n,)
    float64, how much each sample counts; None if all count 1.
    """

    X: Rows
    y: Targets
    weight: Weights = None

    def part(self, start: int, stop: int) -> "Samples":
        """Return some of the samples."""
        if start == 0 and stop == len(self.y):
            return self
        weight = weights_of(self.weight, slice(start, stop))
        return Samples(rows_between(self.X, start, stop), self.y[start:stop], weight)


def read_samples(body: Any, task: Task = "classification", *, prepared: bool = False) -> Samples:
    """Return samples for a model of this task; raises InvalidSamples naming every wrong place.

    prepared: whether the model prepares its rows, which may then have texts and missing values.
    """
    fields = _fields(body, ("x", "y"), ("names", "weight"))
    X, single = rows_of(fields, prepared)
    y: Targets
    if task == "regression":
        y = read_targets(fields["y"], single)
    else:
        y = read_labels(fields["y"], single)
    n = len(X) if isinstance(X, np.ndarray) else n_rows(X)
    if len(y) != n:
        refuse("/y", f"x and y must be equally long; x has {n} and y has {len(y)}")
    weight = read_weight(fields["weight"], len(y)) if "weight" in fields else None
    return Samples(X, y, weight)


def read_rows(body: Any, *, prepared: bool = False) -> Rows:
    """Return rows of a prediction request; prepared: as of `read_samples`."""
    return rows_of(_fields(body, ("x",), ("names",)), prepared)[0]


class Question(NamedTuple):
    """Rows to predict, and what is asked of them.

    probability: whether probabilities are asked for, too. confidence: how often sets or intervals
    are to have the truth; None for none. explain: how many reasons are asked for each way.
    ids: of the rows, if they are to wait for their labels.
    """

    rows: Rows
    probability: bool = False
    confidence: float | None = None
    explain: int = 0
    ids: list[RowId] | None = None


def read_question(body: Any, *, prepared: bool = False) -> Question:
    """Return a prediction request; see `read_rows`. Raises Invalid, InvalidSamples."""
    if not isinstance(body, dict) or _ASKED.isdisjoint(body):
        return Question(read_rows(body, prepared=prepared))
    probability = body.get("probability", False)
    if type(probability) is not bool:
        refuse("/probability", "must be true or false")
    confidence = read_confidence(body["confidence"]) if "confidence" in body else None
    explain = read_explain(body["explain"]) if "explain" in body else 0
    rows = read_rows({name: body[name] for name in body.keys() - _ASKED}, prepared=prepared)
    ids = read_ids(body["ids"], n_rows(rows)) if "ids" in body else None
    return Question(rows, probability, confidence, explain, ids)


def read_confidence(given: Any) -> float:
    """Return the confidence of sets or intervals. Raises InvalidSamples."""
    if type(given) not in (int, float) or not 0.0 < given < 1.0:
        refuse("/confidence", "must be a number between 0 and 1, such as 0.9")
    return float(given)


def read_explain(given: Any) -> int:
    """Return how many reasons are asked for each way. Raises InvalidSamples."""
    if type(given) is not int or not 1 <= given <= MOST_REASONS:
        refuse("/explain", f"must be a whole number from 1 to {MOST_REASONS}")
    return int(given)


def check_explained(question: Question) -> None:
    """Refuse to give reasons for more rows than there is time for. Raises InvalidSamples."""
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
