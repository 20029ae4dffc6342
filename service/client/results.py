"""The results of calls, made from the server's responses."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.client.errors import ClientError

Array: TypeAlias = NDArray[Any]


class Learned(NamedTuple):
    """The result of learning n samples, which are durable.

    sequence: of the model after the last of them.
    learned: n.
    predictions: (n,) what the model predicted for each just before it learned it: labels, or
        float64 for a regression. None, for a regression NaN, while it could not predict yet.
    decisions: float64, (n,) or one for each class, (n, classes), NaN where there was none; an
        object array if new classes came between.
        Of samples that were learned long ago, in a call with the same key, the server may know
        neither predictions nor decisions any longer: None and NaN.
    admitted: (n,) whether each sample entered the working set; None from other heads.
    steps: the name of the step that each sample took; None from other heads.
    head: the description of the head after the last of them.
    replayed: whether the server had learned some of them before, under the same key.
    epoch: of the sequence; it changes when the model is rolled back or created again. It is empty
        in answers of older servers.
    warnings: what to look at, of columns and labels: `slug`, `column` and `message` of each.
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
        """The model's state, as `min_sequence` and `if_match` take it."""
        return f"{self.epoch}:{self.sequence}"


class Predictions(NamedTuple):
    """The predictions of a head for n rows.

    sequence: of the model that predicted; over several requests the lowest.
    head: the name of the head.
    classes: the order of the decisions; of two classes the second has the positive ones. None for
        a regression.
    predictions: (n,) labels, or float64 for a regression.
    decisions: float64, (n,) or (n, classes).
    epoch: of the sequence; over several requests that of the last.
    probabilities: (n, classes) float64 of classes, None if they were not asked for.
    deviations: (n,) float64 standard deviations of targets, as probabilities of a regression.
    sets: of each row the classes in its prediction set; None if they were not asked for.
    intervals: (n, 2) float64 the ends of each row's prediction interval, infinite where nothing
        bounds it yet; None if they were not asked for.
    explanations: of each row why, as plain data of the server; None if it was not asked.
    ids: under which the rows wait for their labels; None of a call without. decisions are NaN
        where the server gave an answer that it had given before.
    warnings: such as names of columns that the model does not know; as those of `Learned`.
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
        """The model's state, as `min_sequence` and `if_match` take it."""
        return f"{self.epoch}:{self.sequence}"


class Labelled(NamedTuple):
    """The result of n labels for rows that were predicted before.

    sequence: of the model after the last of them.
    learned: how many of the rows were learned, which are durable.
    status: of each label: "learned"; "replayed", it was before, with this label; "conflict", with
        another one; "expired", its row waited too long, or there were too many; "unknown".
    predictions: (n,) what was predicted for each row when it came; None, for a regression NaN,
        where that is not known.
    epoch: of the sequence.
    """

    sequence: int
    learned: int
    status: list[str]
    predictions: Array
    epoch: str = ""

    @property
    def state(self) -> str:
        """The model's state, as `min_sequence` and `if_match` take it."""
        return f"{self.epoch}:{self.sequence}"


def learned(responses: Sequence[Mapping[str, Any]]) -> Learned:
    """Join the responses to the batches of a learning call. Raises ClientError."""
    try:
        results = [response["results"] for response in responses]
        return Learned(
            sequence=responses[-1]["sequence"],
            learned=sum(response["learned"] for response in responses),
            predictions=_labels(_of_samples(responses, "prediction")),
            decisions=_decisions(_of_samples(responses, "decision")),
            admitted=_maybe(results, "admitted"),
            steps=_joined(results, "step") if all("step" in one for one in results) else None,
            head=responses[-1]["head"],
            replayed=any(response.get("replayed", False) for response in responses),
            epoch=responses[-1].get("epoch", ""),
            warnings=_warnings(responses),
        )
    except (KeyError, TypeError) as error:
        raise ClientError(f"a response to learning lacks {error}: is this wolfstream?") from None


def _warnings(responses: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the warnings of all responses, each once."""
    given = [warning for response in responses for warning in response.get("warnings", ())]
    return list({(one["slug"], one["column"]): one for one in given}.values())


def predicted(responses: Sequence[Mapping[str, Any]]) -> Predictions:
    """Join the responses to the batches of a prediction. Raises ClientError."""
    try:
        return Predictions(
            sequence=min(response["sequence"] for response in responses),
            head=responses[-1]["head"],
            classes=responses[-1].get("classes"),
            predictions=_labels(_joined(responses, "prediction")),
            decisions=_decisions(_joined(responses, "decision")),
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


def labelled(responses: Sequence[Mapping[str, Any]]) -> Labelled:
    """Join the responses to the batches of a call with labels. Raises ClientError."""
    try:
        results = [response["results"] for response in responses]
        return Labelled(
            sequence=responses[-1]["sequence"],
            learned=sum(response["learned"] for response in responses),
            status=_joined(results, "status"),
            predictions=_labels(_joined(results, "prediction")),
            epoch=responses[-1]["epoch"],
        )
    except (KeyError, TypeError) as error:
        raise ClientError(f"a response to labels lacks {error}: is this wolfstream?") from None


def result_of(response: Mapping[str, Any]) -> Learned | Labelled | Predictions:
    """Return the result in one response, of whichever kind it is. Raises ClientError."""
    results = response.get("results")
    if isinstance(results, Mapping) and "status" in results:
        return labelled([response])
    return learned([response]) if "results" in response else predicted([response])


def _of_samples(responses: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return what the responses say of each sample; None if they say nothing any longer."""
    return [
        value
        for response in responses
        for value in response["results"].get(name, [None] * response["learned"])
    ]


def _joined(results: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [value for result in results for value in result[name]]


def _maybe(results: Sequence[Mapping[str, Any]], name: str) -> NDArray[np.bool_] | None:
    if not all(name in one for one in results):
        return None
    return np.array(_joined(results, name), np.bool_)


def _numbers(results: Sequence[Mapping[str, Any]], name: str) -> Array | None:
    return np.array(_joined(results, name), np.float64) if name in results[-1] else None


def _lists(results: Sequence[Mapping[str, Any]], name: str) -> list[Any] | None:
    return _joined(results, name) if name in results[0] else None


def _intervals(results: Sequence[Mapping[str, Any]]) -> Array | None:
    """Return (n, 2) ends; those that nothing bounds are infinite."""
    ends = _numbers(results, "prediction_interval")
    return None if ends is None else np.where(np.isnan(ends), [-np.inf, np.inf], ends)


def _labels(values: list[Any]) -> Array:
    """Put labels of one type, or numbers, into an array of that type; others into objects."""
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
