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
from wolfstream.service.files.roles import NO_ROLES, Roles

_TOO_LARGE = 413


class SampleCalls(Sender):
    """The calls that learn, predict and label."""

    def learn(
        self,
        name: str,
        X: Any,
        y: Any,
        head: str,
        batch: int,
        key: str | None,
        if_match: str | None = None,
        weight: Any = None,
        roles: Roles = NO_ROLES,
    ) -> Steps[Learned]:
        """Learn samples batch by batch, each batch with a key of its own.

        See `client.sync.Client.learn`. The revision in `if_match` is for the first batch; each
        later one is for the revision that the batch before has led to.
        """
        call = learning_call(head)
        key = uuid.uuid4().hex if key is None else key
        responses: list[dict[str, Any]] = []
        done = 0

        def send(piece: Batch) -> Steps[None]:
            nonlocal done
            body = pack(piece.fields())
            if len(body) > MAX_BYTES and len(piece.y) > 1:
                raise Refused(_TOO_LARGE, {"title": "Larger than this client sends"})
            # A key with the number of samples before, so that the call can be continued.
            batch_key = f"{key}.{done}" if done else key
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
        head: str | None,
        min_sequence: int | str | None,
        costs: Any = None,
        **options: Any,
    ) -> Steps[Predictions]:
        """Predict batch by batch; start over if a class appeared between two batches.

        Args:
            name: of the model.
            X: rows; see `client.sync.Client.predict`, as for the following.
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

    def predict_later(
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

    def label(
        self, name: str, ids: Any, y: Any, batch: int, if_match: str | None = None
    ) -> Steps[Labelled]:
        """Label predicted rows batch by batch; the server learns no row twice."""
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
