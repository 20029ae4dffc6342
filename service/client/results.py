"""The results of calls, made from the server's responses."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.client.errors import ClientError

Array: TypeAlias = NDArray[Any]


class Learned(NamedTuple):
    """The result of learning n samples, which are durable.

    If they were learned long ago, in a call with the same key, the server may have forgotten
    predictions and decisions: they are None and NaN.

    Attributes:
        sequence: of the model after the last sample.
        learned: n.
        predictions: (n,), what the model predicted for each sample just before it learned it:
            labels, or float64 for a regression; None or NaN while it could not predict yet.
        decisions: (n,) or (n, classes) float64; NaN while there was none; an object array if new
            classes came in between.
        admitted: (n,), whether each sample entered the working set; None for other heads.
        steps: (n,), name of the step that each sample took; None for other heads.
        head: description of the head after the last sample.
        replayed: whether some samples had been learned before, under the same key.
        epoch: of the sequence. It changes when the model is rolled back or created again; empty if
            the server is older.
        warnings: about columns and labels, each with `slug`, `column` and `message`.
    """

    sequence: int
    learned: int
    predictions: Array
    decisions: Array
    admitted: NDArray[np.bool_] | None
    steps: list[str] | None
    head: dict[str, Any]
    replayed: bool
    epoch: str = ""
    warnings: Sequence[Mapping[str, Any]] = ()

    @property
    def state(self) -> str:
        """The model's revision, as `min_sequence` and `if_match` take it."""
        return f"{self.epoch}:{self.sequence}"


class Predictions(NamedTuple):
    """The predictions of a head for n rows.

    Attributes:
        sequence: of the model that predicted; the lowest of several requests.
        head: name of the head.
        classes: order of the columns of decisions and probabilities; with two classes, positive
            decisions are for the second. None for a regression.
        predictions: (n,), labels, or float64 for a regression.
        decisions: (n,) or (n, classes) float64; NaN in a response that repeats an earlier one.
        epoch: of the sequence; that of the last of several requests.
        probabilities: (n, classes) float64; None if not requested.
        deviations: (n,) float64 standard deviations, for a regression; None if not requested.
        ids: (n,), under which the rows wait for their labels; None for a call without ids.
        sets: (n,), the classes in the prediction set of each row; None if not requested.
        intervals: (n, 2) float64 ends of prediction intervals, infinite while nothing bounds them;
            None if not requested.
        explanations: (n,), plain data of the server; None if not requested.
        warnings: for example about unknown columns; see `Learned`.
    """

    sequence: int
    head: str
    classes: list[Any] | None
    predictions: Array
    decisions: Array
    epoch: str = ""
    probabilities: Array | None = None
    deviations: Array | None = None
    ids: list[Any] | None = None
    sets: list[list[Any]] | None = None
    intervals: Array | None = None
    explanations: list[dict[str, Any]] | None = None
    warnings: Sequence[Mapping[str, Any]] = ()

    @property
    def state(self) -> str:
        """The model's revision, as `min_sequence` and `if_match` take it."""
        return f"{self.epoch}:{self.sequence}"


class Labelled(NamedTuple):
    """The result of n labels for rows that were predicted before.

    Attributes:
        sequence: of the model after the last label.
        learned: how many rows were learned; they are durable.
        status: (n,): "learned"; "replayed" if the row was learned before with this label;
            "conflict" if it was learned with another; "expired" if it waited too long, or too many
            rows waited; "unknown" for any other id.
        predictions: (n,), what was predicted for each row; None, or NaN for a regression, if that
            is not known.
        epoch: of the sequence.
    """

    sequence: int
    learned: int
    status: list[str]
    predictions: Array
    epoch: str = ""

    @property
    def state(self) -> str:
        """The model's revision, as `min_sequence` and `if_match` take it."""
        return f"{self.epoch}:{self.sequence}"


def join_learned(responses: Sequence[Mapping[str, Any]]) -> Learned:
    """Join the responses to the batches of a learning call. Raises ClientError."""
    try:
        results = [response["results"] for response in responses]
        return Learned(
            sequence=responses[-1]["sequence"],
            learned=sum(response["learned"] for response in responses),
            predictions=_labels(_sample_values(responses, "prediction")),
            decisions=_decisions(_sample_values(responses, "decision")),
            admitted=_flags(results, "admitted"),
            steps=_join(results, "step") if all("step" in part for part in results) else None,
            head=responses[-1]["head"],
            replayed=any(response.get("replayed", False) for response in responses),
            epoch=responses[-1].get("epoch", ""),
            warnings=_warnings(responses),
        )
    except (KeyError, TypeError) as error:
        raise ClientError(f"a response to learning lacks {error}: is this wolfstream?") from None


def _warnings(responses: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the warnings of all responses, each once."""
    warnings = [warning for response in responses for warning in response.get("warnings", ())]
    return list({(each["slug"], each["column"]): each for each in warnings}.values())


def join_predictions(responses: Sequence[Mapping[str, Any]]) -> Predictions:
    """Join the responses to the batches of a prediction. Raises ClientError."""
    try:
        return Predictions(
            sequence=min(response["sequence"] for response in responses),
            head=responses[-1]["head"],
            classes=responses[-1].get("classes"),
            predictions=_labels(_join(responses, "prediction")),
            decisions=_decisions(_join(responses, "decision")),
            epoch=responses[-1].get("epoch", ""),
            warnings=_warnings(responses),
            probabilities=_numbers(responses, "probability"),
            deviations=_numbers(responses, "standard_deviation"),
            ids=_lists(responses, "ids"),
            sets=_lists(responses, "prediction_set"),
            intervals=_intervals(responses),
            explanations=_lists(responses, "explanation"),
        )
    except (KeyError, TypeError) as error:
        raise ClientError(f"a response to predict lacks {error}: is this wolfstream?") from None


def join_labelled(responses: Sequence[Mapping[str, Any]]) -> Labelled:
    """Join the responses to the batches of a call with labels. Raises ClientError."""
    try:
        results = [response["results"] for response in responses]
        return Labelled(
            sequence=responses[-1]["sequence"],
            learned=sum(response["learned"] for response in responses),
            status=_join(results, "status"),
            predictions=_labels(_join(results, "prediction")),
            epoch=responses[-1]["epoch"],
        )
    except (KeyError, TypeError) as error:
        raise ClientError(f"a response to labels lacks {error}: is this wolfstream?") from None


def read_result(response: Mapping[str, Any]) -> Learned | Labelled | Predictions:
    """Return the result in a response of a stream. Raises ClientError."""
    results = response.get("results")
    if isinstance(results, Mapping) and "status" in results:
        return join_labelled([response])
    return join_learned([response]) if "results" in response else join_predictions([response])


def _sample_values(responses: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return a value for each sample; None where the server has forgotten it."""
    return [
        value
        for response in responses
        for value in response["results"].get(name, [None] * response["learned"])
    ]


def _join(results: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [value for result in results for value in result[name]]


def _flags(results: Sequence[Mapping[str, Any]], name: str) -> NDArray[np.bool_] | None:
    if not all(name in result for result in results):
        return None
    return np.array(_join(results, name), np.bool_)


def _numbers(results: Sequence[Mapping[str, Any]], name: str) -> Array | None:
    return np.array(_join(results, name), np.float64) if name in results[-1] else None


def _lists(results: Sequence[Mapping[str, Any]], name: str) -> list[Any] | None:
    return _join(results, name) if name in results[0] else None


def _intervals(results: Sequence[Mapping[str, Any]]) -> Array | None:
    """Return the ends of intervals, (n, 2); those that nothing bounds are infinite."""
    ends = _numbers(results, "prediction_interval")
    return None if ends is None else np.where(np.isnan(ends), [-np.inf, np.inf], ends)


def _labels(values: list[Any]) -> Array:
    """Return labels, or numbers and None, as an array; of mixed types as an array of objects."""
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
