"""Calls about samples as steps: samples are sent batch by batch, and each is learned once."""

import uuid
from collections.abc import Callable
from typing import Any

from wolfstream.service.client.batches import (
    MAX_BYTES,
    Batch,
    Batches,
    as_ids,
    as_rows,
    late_labels,
    row_fields,
    rows_and_ids,
    split_roles,
)
from wolfstream.service.client.errors import ClientError, Refused
from wolfstream.service.client.results import (
    Labelled,
    Learned,
    Predictions,
    join_labelled,
    join_learned,
    join_predictions,
)
from wolfstream.service.client.sender import Sender, if_match_header
from wolfstream.service.client.steps import Steps
from wolfstream.service.client.wire import IDEMPOTENCY_KEY, learning_call, pack, request_of

_TOO_LARGE = 413


class SampleCalls(Sender):
    """The calls that learn, predict and label."""

    def learn(
        self,
        name: str,
        X: Any,
        y: Any = None,
        *,
        head: str = "samples",
        batch: int = 1024,
        idempotency_key: str | None = None,
        if_match: str | None = None,
        weight: Any = None,
        label: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Steps[Learned]:
        """Send samples to a model; return once they are durable and learned.

        Samples are learned in order and exactly once, also when the call is repeated.

            client.learn("rooms", X, y, batch=256)
            client.learn("rooms", "rooms.csv", label="occupied")

        Args:
            name: of the model.
            X: rows: an array (n, d), nested lists, a table, a sparse matrix, dicts of named
                values, or an iterable of rows; or one row.
            y: n labels or numbers, or the label of the one row. Omit it if X has a column of
                labels, is the path of a data file, or yields (row, label) pairs.
            head: "samples", or "asset" for the head of this name.
            batch: samples per request at most. Each request is learned as a whole or not at all.
            idempotency_key: repeat a call with its key to continue it without learning anything
                twice. By default each call makes its own key.
            if_match: the revision (a result's `state`) or the epoch that the model must be at;
                otherwise the call is refused with status 412.
            weight: of the samples: a number for all, one for each, or the name of a column of X.
            label: name of the column of X with the labels; by default the one named y, label,
                target or class.
            id: name of a column of X that is not a feature.

        Raises ClientError, whose `acknowledged` says how many samples the server has; ValueError
        and TypeError for anything that is not samples.
        """
        call = learning_call(head)
        key = uuid.uuid4().hex if idempotency_key is None else idempotency_key
        roles, weight = split_roles(label, id, weight)
        responses: list[dict[str, Any]] = []
        done = 0

        def send(piece: Batch) -> Steps[None]:
            nonlocal done
            body = pack(piece.fields())
            if len(body) > MAX_BYTES and len(piece.y) > 1:
                raise Refused(_TOO_LARGE, {"title": "Larger than this client sends"})
            # Each batch has a key, with the number of samples before, so that a call can go on.
            batch_key = f"{key}.{done}" if done else key
            # Later batches are for the revision that the batch before has led to.
            headers = {IDEMPOTENCY_KEY: batch_key, **if_match_header(if_match, responses)}
            request = request_of(call, name, body, headers=headers)
            responses.append((yield from self.ask(request)))
            done += len(piece.y)

        try:
            batches = Batches(X, y, batch, weight, roles)
            while whole := batches.take():
                batches.size = yield from _send_halving(whole, send, batches.size)
        except ClientError as error:
            error.acknowledged, error.idempotency_key = done, key
            raise
        except Exception as error:  # raised by the caller's samples
            error.add_note(f"{done:,} samples were acknowledged, under idempotency key {key!r}")
            raise
        if not responses:
            raise ValueError("there are no samples")
        return join_learned(responses)

    def predict(
        self,
        name: str,
        X: Any,
        *,
        head: str | None = None,
        min_sequence: int | str | None = None,
        ids: Any = None,
        label: str | None = None,
        id: str | None = None,  # noqa: A002
        weight: str | None = None,
        costs: Any = None,
        max_lag: float | None = None,
    ) -> Steps[Predictions]:
        """Return predictions for rows, or for one row.

            client.predict("rooms", X).predictions

        Args:
            name: of the model.
            X: rows, as for `learn`.
            head: that predicts; by default the one that serves.
            min_sequence: wait until the model has learned at least this many samples. With
                "EPOCH:SEQUENCE", any other epoch is refused with status 412.
            ids: an id for each row, a text or a whole number, or "auto" for new ones. The rows are
                durable when this returns, and wait for their labels (`label`). A repeated call with
                the same rows and ids gets its first result. Only the head that serves takes ids.
            label: name of a column of X that is not a feature.
            id: name of the column of X with the ids.
            weight: name of a column of X that is not a feature.
            costs: of predictions, {true label: {predicted label: cost}}, such as
                {"fraud": {"ok": 50}}; a mistake without a cost costs 1. The labels of the least
                expected cost are predicted, by the head's probabilities.
            max_lag: accept predictions that lack up to this many recent seconds if nothing newer
                can be had, for example while a server replays a long log. Otherwise, or with ids,
                the call waits as for any 503.

        Raises ClientError, ValueError, TypeError.
        """
        rows, column_ids = rows_and_ids(X, split_roles(label, id, weight)[0])
        ids = column_ids if ids is None else ids
        if ids is not None:
            return self._predict_later(name, rows, head, ids, min_sequence, costs)
        return self._predict(name, rows, head, min_sequence, costs, max_lag=max_lag)

    def label(
        self, name: str, ids: Any, y: Any, *, batch: int = 1024, if_match: str | None = None
    ) -> Steps[Labelled]:
        """Send the labels of rows that were predicted with ids; return once they are learned.

        The rows are learned in the order of their labels. A label that was learned is not learned
        again, so the call may be repeated. `status` of the result says what happened to each.

            ids = client.predict("rooms", X, ids="auto").ids
            client.label("rooms", ids, y)

        Args:
            name: of the model.
            ids: of rows from any calls; or one id.
            y: a label or number for each; or that of the one id.
            batch: labels per request at most.
            if_match: see `learn`.

        Raises ClientError, ValueError.
        """
        if batch < 1:
            raise ValueError(f"a batch must have at least one label, not {batch}")
        whole = late_labels(ids, y)
        responses: list[dict[str, Any]] = []

        def send(piece: Batch) -> Steps[None]:
            body = pack({"ids": piece.X, "y": piece.y})
            headers = if_match_header(if_match, responses)
            request = request_of("label", name, body, headers=headers)
            responses.append((yield from self.ask(request)))

        try:
            for start in range(0, len(whole.y), batch):
                part = Batch(whole.X[start : start + batch], whole.y[start : start + batch])
                yield from _send_halving(part, send)
        except ClientError as error:
            error.acknowledged = sum(response.get("learned", 0) for response in responses)
            raise
        return join_labelled(responses)

    def predict_proba(
        self,
        name: str,
        X: Any,
        *,
        head: str | None = None,
        min_sequence: int | None = None,
        label: str | None = None,
        id: str | None = None,  # noqa: A002
        weight: str | None = None,
    ) -> Steps[Predictions]:
        """Return predictions with probabilities, or with standard deviations for a regression.

        Args are those of `predict`. Raises Refused while no label has tested the head's
        calibration.
        """
        rows, _ = rows_and_ids(X, split_roles(label, id, weight)[0])
        return self._predict(name, rows, head, min_sequence, probability=True)

    def predict_set(
        self,
        name: str,
        X: Any,
        *,
        confidence: float = 0.9,
        head: str | None = None,
        min_sequence: int | None = None,
        label: str | None = None,
        id: str | None = None,  # noqa: A002
        weight: str | None = None,
    ) -> Steps[Predictions]:
        """Return predictions with sets of classes that contain the label with some probability.

        Args:
            name: of the model.
            X: rows, as for `learn`.
            confidence: the probability.
            head: see `predict`.
            min_sequence: see `predict`.
            label: see `predict`.
            id: name of a column of X that is not a feature.
            weight: see `predict`.

        Raises Refused as `predict_proba` does.
        """
        rows, _ = rows_and_ids(X, split_roles(label, id, weight)[0])
        return self._predict(name, rows, head, min_sequence, confidence=confidence)

    def predict_interval(
        self,
        name: str,
        X: Any,
        *,
        confidence: float = 0.9,
        head: str | None = None,
        min_sequence: int | None = None,
        label: str | None = None,
        id: str | None = None,  # noqa: A002
        weight: str | None = None,
    ) -> Steps[Predictions]:
        """Return predictions with intervals that contain the target with some probability.

        Args are those of `predict_set`.
        """
        return self.predict_set(
            name,
            X,
            confidence=confidence,
            head=head,
            min_sequence=min_sequence,
            label=label,
            id=id,
            weight=weight,
        )

    def explain(
        self,
        name: str,
        X: Any,
        *,
        most: int = 5,
        head: str | None = None,
        min_sequence: int | None = None,
        label: str | None = None,
        id: str | None = None,  # noqa: A002
        weight: str | None = None,
    ) -> Steps[Predictions]:
        """Return predictions with explanations.

        They name the features that move a prediction and, for the head "working_set", the samples
        that pull for and against it.

        Args:
            name: of the model.
            X: rows, as for `learn`.
            most: how many features, and samples, an explanation names at most.
            head: see `predict`.
            min_sequence: see `predict`.
            label: see `predict`.
            id: name of a column of X that is not a feature.
            weight: see `predict`.

        Raises Refused for rows that the head cannot explain.
        """
        rows, _ = rows_and_ids(X, split_roles(label, id, weight)[0])
        return self._predict(name, rows, head, min_sequence, explain=most)

    def _predict(
        self,
        name: str,
        X: Any,
        head: str | None,
        min_sequence: int | str | None,
        costs: Any = None,
        **options: Any,
    ) -> Steps[Predictions]:
        """Predict batch by batch; start over if a class appeared between two batches.

        Args:
            name: of the model.
            X: rows; see `predict`, as for the following.
            head: that predicts.
            min_sequence: to wait for.
            costs: of predictions.
            options: `probability`, `confidence`, `explain` and `max_lag` of the server's query;
                None leaves one out.
        """
        query = {} if head is None else {"head": head}
        if min_sequence is not None:
            query["min_sequence"] = str(min_sequence)
        query |= {what: str(value).lower() for what, value in options.items() if value is not None}
        rows = as_rows(X)
        size = len(rows)
        if not size:
            raise ValueError("there are no rows")
        while True:
            responses = []
            batches = Batches(rows, range(len(rows)), size)
            try:
                while piece := batches.take():
                    body = pack({**row_fields(piece.X), **_cost_fields(costs)})
                    request = request_of("predict", name, body, query)
                    responses.append((yield from self.ask(request)))
                    if responses[0].get("classes") != responses[-1].get("classes"):
                        break
                else:
                    return join_predictions(responses)
            except Refused as refused:
                if refused.status != _TOO_LARGE or size <= 1:
                    raise
                size = -(-size // 2)

    def _predict_later(
        self,
        name: str,
        X: Any,
        head: str | None,
        ids: Any,
        min_sequence: int | str | None,
        costs: Any = None,
    ) -> Steps[Predictions]:
        """Predict rows that wait for their labels, batch by batch, each once."""
        if head is not None:
            raise ValueError("rows wait for labels under the head that serves: leave head out")
        query = {} if min_sequence is None else {"min_sequence": str(min_sequence)}
        rows = as_rows(X)
        if isinstance(ids, str):
            if ids != "auto":
                raise ValueError('ids must be "auto", or an id for each row')
            # Made by the client, so that a request whose response is lost can be sent again.
            prefix = uuid.uuid4().hex
            ids = [f"{prefix}.{row}" for row in range(len(rows))]
        row_ids = as_ids(ids)
        if len(row_ids) != len(rows):
            raise ValueError(f"there are {len(rows)} rows in X and {len(row_ids)} ids")
        responses: list[dict[str, Any]] = []

        def send(piece: Batch) -> Steps[None]:
            body = pack({**row_fields(piece.X), "ids": piece.y, **_cost_fields(costs)})
            responses.append((yield from self.ask(request_of("predict", name, body, query))))

        batches = Batches(rows, row_ids, max(1, len(rows)))
        while whole := batches.take():
            yield from _send_halving(whole, send)
        if not responses:
            raise ValueError("there are no rows")
        return join_predictions(responses)


def _cost_fields(costs: Any) -> dict[str, Any]:
    return {} if costs is None else {"costs": costs}


def _send_halving(batch: Batch, send: Callable[[Batch], Steps[None]], size: int = 0) -> Steps[int]:
    """Send a batch, divided into halves as often as it is too large.

    Args:
        batch: to send.
        send: sends a piece; raises Refused if it is too large.
        size: of batches so far.

    Returns the size for the next batches.
    """
    pieces = [batch]
    while pieces:
        piece = pieces.pop()
        try:
            yield from send(piece)
        except Refused as refused:
            if refused.status != _TOO_LARGE or len(piece.y) == 1:
                raise
            size = max(1, len(piece.y) // 2)
            pieces += piece.halves()[::-1]
    return size
