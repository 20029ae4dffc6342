"""Reads and checks requests of samples and of predictions in decoded bodies."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from pydantic import FailFast, Field, TypeAdapter, ValidationError

from wolfstream.service.errors import (
    MOST_ERRORS,
    Invalid,
    InvalidSamples,
    SampleError,
    pointer_to,
    refuse,
    refuse_all,
)
from wolfstream.service.files.nested_values import flat_rows
from wolfstream.service.samples.ids import RowId, read_ids
from wolfstream.service.samples.raw_arrays import has_fields_of_raw, read_raw, read_weight
from wolfstream.service.samples.tasks import TASKS, Targets
from wolfstream.service.samples.values import (
    NUMERIC,
    VALUES,
    name_problem,
    number_problem,
    uneven,
    value_problem,
    wrong_in_rows,
    wrong_named,
    wrong_numbers,
    wrong_values,
)
from wolfstream.service.spec.heads import TaskName
from wolfstream.service.spec.refusals import listed
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import Cells, cells_of_numbers
from wolfstream.solver.prepare.named_rows import (
    NamedRows,
    Rows,
    n_rows,
    named_values,
    rows_between,
    table_of,
    without_zeros,
)
from wolfstream.solver.rows.sample_weights import Weights, weights_of

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Row = Annotated[list[_Number], FailFast()]
_ROWS = TypeAdapter(Annotated[list[_Row], FailFast()])


def read_body_rows(fields: Mapping[str, Any], prepared: bool) -> tuple[Rows, bool]:
    """Return the rows of a body, and whether its `x` is a single row, not a list of rows.

    Args:
        fields: `x`, and `names` if these are separate from the rows.
        prepared: whether the model prepares its rows, which may then have texts and missing values.

    Raises InvalidSamples.
    """
    X, single = _read_x(fields["x"], prepared)
    if fields.get("names") is None:
        return X, single
    table = X if isinstance(X, Cells | NamedRows) else cells_of_numbers(None, X)
    if isinstance(table, NamedRows):
        refuse("/names", "belong to rows that are arrays; these have their own")
    return table._replace(names=_read_names(fields["names"], table.numbers.shape[1])), single


def _read_names(names: Any, width: int) -> tuple[str, ...]:
    if not isinstance(names, list):
        refuse("/names", "must be an array, a name for each column of x")
    if len(names) != width:
        refuse("/names", f"has {len(names)} names, the rows of x have {width} values")
    wrong: Iterator[SampleError] = (
        {"pointer": f"/names/{k}", "detail": detail}
        for k, name in enumerate(names)
        if (detail := name_problem(name))
    )
    refuse_all("some names are not valid", wrong)
    (most_frequent, times), *_ = Counter(names).most_common(1)
    if times > 1:
        refuse("/names", f"has {most_frequent[:40]!r} twice")
    return tuple(names)


def _read_x(x: Any, prepared: bool) -> tuple[Rows, bool]:
    if isinstance(x, dict):
        if _is_raw(x):
            return _read_raw_rows(x, prepared)
        return _read_named_rows([x], ["/x"], prepared), True
    if not isinstance(x, list):
        refuse("/x", "must be an array of rows, or one row")
    if not x:
        refuse("/x", "is empty")
    if isinstance(x[0], dict):
        pointers = (f"/x/{i}" for i in range(len(x)))
        return _read_named_rows(x, pointers, prepared), False
    single = not isinstance(x[0], list)
    try:
        rows = _ROWS.validate_python([x] if single else x)
    except ValidationError:
        if prepared:
            return _read_values([x] if single else x, single), single
        wrong = wrong_numbers(x, 0, "/x") if single else wrong_in_rows(x)
        refuse_all("some rows are not arrays of finite numbers", wrong)
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        refuse_all("rows differ in length", uneven(rows, width))
    return _two_dimensional(np.array(rows)), single


def _read_values(x: list[Any], single: bool) -> Rows:
    """Return the rows of arrays that may have booleans, texts and missing values."""
    wrong = wrong_values(x[0], 0, "/x") if single else wrong_in_rows(x, wrong_values)
    refuse_all("some values in rows are not valid", wrong)
    width = len(x[0])
    refuse_all("rows differ in length", uneven(x, width))
    try:
        table = table_of(None, x)
    except OverflowError:
        refuse("/x", "has a number that is too large for a 64-bit floating-point number")
    numbers = _two_dimensional(table.numbers)
    return table if table.texts else numbers


def _is_raw(x: dict[Any, Any]) -> bool:
    """Return whether an object is a raw array, and not a row of numbers with the same names."""
    return has_fields_of_raw(x) and not all(type(value) in NUMERIC for value in x.values())


def _read_named_rows(x: list[Any], pointers: Iterable[str], prepared: bool) -> NamedRows:
    """Return rows of values by name.

    pointers: to each row in the body.
    """
    problem = value_problem if prepared else number_problem
    sent, are_objects = x, all(type(row) is dict for row in x)
    named = are_objects and _are_named_values(x, prepared)
    if are_objects and prepared and not named:
        x = list(flat_rows(x))
        named = _are_named_values(x, prepared)
    if named:
        try:
            rows = named_values(x)
        except OverflowError:
            pass  # a whole number beyond float64; reported below
        else:
            if prepared and not np.isinf(rows.value).any():
                return rows
            if np.isfinite(rows.value).all():
                return without_zeros(rows)
    wrong = (
        wrong_named(row, i, at, problem, sent[i])
        for i, (row, at) in enumerate(zip(x, pointers, strict=True))
    )
    what = "values" if prepared else "finite numbers"
    refuse_all(f"some rows are not objects of named {what}", chain.from_iterable(wrong))
    raise AssertionError("rows were refused, but each of them is valid")


def _are_named_values(x: list[dict[Any, Any]], prepared: bool) -> bool:
    """Return whether all names are valid, and all values are numbers, or fit for preparation."""
    kinds = {type(value) for row in x for value in row.values()}
    if not kinds <= (VALUES if prepared else NUMERIC):
        return False
    if str in kinds:
        values = chain.from_iterable(row.values() for row in x)
        if any(value_problem(value) for value in values if type(value) is str):
            return False
    return not any(name_problem(name) for name in set(chain.from_iterable(x)))


def _read_raw_rows(x: dict[str, Any], prepared: bool) -> tuple[Float64Array, bool]:
    with np.errstate(invalid="ignore"):  # a signalling NaN is refused below like any other
        values = read_raw(x, "/x").astype(np.float64)
    single = values.ndim == 1
    rows = _two_dimensional(values[None, :] if single else values)
    wrong = np.argwhere(np.isinf(rows) if prepared else ~np.isfinite(rows))[:MOST_ERRORS]
    if len(wrong):
        raise InvalidSamples(
            "some numbers are not finite",
            [
                {"row": int(i), "pointer": f"/x/{i}/{k}", "detail": "is NaN or infinite"}
                for i, k in wrong
            ],
        )
    return rows, single


def _two_dimensional(rows: Float64Array) -> Float64Array:
    if rows.shape[0] == 0:
        refuse("/x", "is empty")
    if rows.shape[1] == 0:
        refuse("/x/0", "has no numbers")
    return np.ascontiguousarray(rows, np.float64)


ASKED = {"probability", "confidence", "explain", "costs", "ids"}
"""Fields of a prediction request besides its rows."""

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
    if not isinstance(body, dict) or ASKED.isdisjoint(body):
        return Question(read_rows(body, prepared=prepared))
    probability = body.get("probability", False)
    if type(probability) is not bool:
        refuse("/probability", "must be true or false")
    confidence = read_confidence(body["confidence"]) if "confidence" in body else None
    explain = read_explain(body["explain"]) if "explain" in body else 0
    costs = read_costs(body["costs"]) if "costs" in body else None
    rows = read_rows({name: body[name] for name in body.keys() - ASKED}, prepared=prepared)
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
