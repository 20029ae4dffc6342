"""What calls come back with, out of the server's answers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.client_errors import ClientError

Array: TypeAlias = NDArray[Any]


class Learned(NamedTuple):
    """What learning n samples, which are durable now, came to.

    sequence: the model's, once it had learned them.
    learned: n.
    predictions: (n,) what the model said of each just before it learned it: labels, or float64
        of a regression. None, of a regression NaN, where it could not say anything yet.
    decisions: float64, (n,) or one for each class, (n, classes), NaN where there was none; an
        object array where the classes became more on the way.
    admitted: (n,) whether each sample entered the working set; None from other heads.
    steps: which step each sample took, by name; None from other heads.
    head: how the head stands now.
    replayed: whether the server had learned (some of) them before, under the same key.
    """

    sequence: int
    learned: int
    predictions: Array
    decisions: Array
    admitted: NDArray[np.bool_] | None
    steps: list[str] | None
    head: dict[str, Any]
    replayed: bool


class Predictions(NamedTuple):
    """What a head says of n rows.

    sequence: of the model that said it; over several requests the lowest.
    head: the one that was asked.
    classes: the order of the decisions; of two, the second has positive ones. None of a regression.
    predictions: (n,) labels, or float64 of a regression.
    decisions: float64, (n,) or (n, classes).
    """

    sequence: int
    head: str
    classes: list[Any] | None
    predictions: Array
    decisions: Array


def learned(answers: Sequence[Mapping[str, Any]]) -> Learned:
    """One result of the answers to a call's batches, one or more. Raises ClientError."""
    try:
        results = [answer["results"] for answer in answers]
        return Learned(
            sequence=answers[-1]["sequence"],
            learned=sum(answer["learned"] for answer in answers),
            predictions=_labels(_joined(results, "prediction")),
            decisions=_decisions(_joined(results, "decision")),
            admitted=_maybe(results, "admitted"),
            steps=_joined(results, "step") if "step" in results[0] else None,
            head=answers[-1]["head"],
            replayed=any(answer.get("replayed", False) for answer in answers),
        )
    except (KeyError, TypeError) as error:
        raise ClientError(f"an answer to learning lacks {error}: is this wolfstream?") from None


def predicted(answers: Sequence[Mapping[str, Any]]) -> Predictions:
    """One result of the answers to a call's batches, one or more. Raises ClientError."""
    try:
        return Predictions(
            sequence=min(answer["sequence"] for answer in answers),
            head=answers[-1]["head"],
            classes=answers[-1].get("classes"),
            predictions=_labels(_joined(answers, "prediction")),
            decisions=_decisions(_joined(answers, "decision")),
        )
    except (KeyError, TypeError) as error:
        raise ClientError(f"an answer to predict lacks {error}: is this wolfstream?") from None


def result_of(answer: Mapping[str, Any]) -> Learned | Predictions:
    """What one answer says. Raises ClientError."""
    return learned([answer]) if "results" in answer else predicted([answer])


def _joined(results: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [value for result in results for value in result[name]]


def _maybe(results: Sequence[Mapping[str, Any]], name: str) -> NDArray[np.bool_] | None:
    if name not in results[0]:
        return None
    return np.array(_joined(results, name), np.bool_)


def _labels(values: list[Any]) -> Array:
    """Labels of one kind, or numbers, in an array of this kind; others as objects."""
    kinds = {type(value) for value in values}
    if kinds <= {float, type(None)} and float in kinds:
        return np.array(values, np.float64)
    if len(kinds) == 1 and kinds <= {str, int, bool}:
        return np.array(values)
    return _objects(values)


def _decisions(values: list[Any]) -> Array:
    if all(value is None or isinstance(value, int | float) for value in values):
        return np.array(values, np.float64)
    widths = {len(value) if isinstance(value, list) else -1 for value in values}
    if len(widths) == 1:
        return np.array(values, np.float64)
    return _objects([_decisions(v) if isinstance(v, list) else v for v in values])


def _objects(values: list[Any]) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array
