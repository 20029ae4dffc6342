"""The calls about samples as steps: they are sent batch by batch, and each is learned once."""

import uuid
from collections.abc import Callable
from typing import Any

from wolfstream.service.client.asking import Asking, matching
from wolfstream.service.client.batches import (
    MOST_BYTES,
    Batch,
    Batches,
    fields_of,
    ids_of,
    late_labels,
    rows_of,
)
from wolfstream.service.client.errors import ClientError, Refused
from wolfstream.service.client.results import (
    Labelled,
    Learned,
    Predictions,
    labelled,
    learned,
    predicted,
)
from wolfstream.service.client.steps import Steps
from wolfstream.service.client.wire import IDEMPOTENCY_KEY, learning_call, packed, request_of
from wolfstream.service.files.roles import NO_ROLES, Roles

_TOO_LARGE = 413


class SampleCalls(Asking):
    """The calls that learn, predict and label. retry: as of `Asking`."""

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
        """Learn samples batch by batch, each batch under its own key.

        if_match: the state for the first batch; each other one is for that after the one before.
        """
        call = learning_call(head)
        key = uuid.uuid4().hex if key is None else key
        responses: list[dict[str, Any]] = []
        done = 0

        def send(part: Batch) -> Steps[None]:
            nonlocal done
            body = packed(part.fields())
            if len(body) > MOST_BYTES and len(part.y) > 1:
                raise Refused(_TOO_LARGE, {"title": "Larger than this client sends"})
            # Each batch has its own key, so that the call can be continued.
            own = f"{key}.{done}" if done else key
            headers = {IDEMPOTENCY_KEY: own, **matching(if_match, responses)}
            request = request_of(call, name, body, headers=headers)
            responses.append((yield from self.ask(request)))
            done += len(part.y)

        try:
            batches = Batches(X, y, batch, weight, roles)
            while part := batches.take():
                batches.most = yield from _in_parts(part, send, batches.most)
        except ClientError as error:
            error.acknowledged, error.idempotency_key = done, key
            raise
        except Exception as error:  # raised by the caller's samples
            error.add_note(f"{done:,} samples were acknowledged, under idempotency key {key!r}")
            raise
        if not responses:
            raise ValueError("there are no samples")
        return learned(responses)

    def predict(
        self,
        name: str,
        X: Any,
        head: str | None,
        min_sequence: int | str | None,
        costs: Any = None,
        **asked: Any,
    ) -> Steps[Predictions]:
        """Predict batch by batch; again from the start if a class appeared between two batches.

        costs: of mistakes, as the server's body takes them. asked: `probability`, `confidence`,
        `explain`, `max_lag`, as its query does; None for what is not asked.
        """
        query = {} if head is None else {"head": head}
        if min_sequence is not None:
            query["min_sequence"] = str(min_sequence)
        query |= {what: str(value).lower() for what, value in asked.items() if value is not None}
        rows = rows_of(X)
        size = len(rows)
        if not size:
            raise ValueError("there are no rows")
        while True:
            responses = []
            batches = Batches(rows, range(len(rows)), size)
            try:
                while part := batches.take():
                    body = packed({**fields_of(part.X), **_with(costs)})
                    request = request_of("predict", name, body, query)
                    responses.append((yield from self.ask(request)))
                    if responses[0].get("classes") != responses[-1].get("classes"):
                        break
                else:
                    return predicted(responses)
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
        rows = rows_of(X)
        if isinstance(ids, str):
            if ids != "auto":
                raise ValueError('ids must be "auto", or an id for each row')
            # Made here, so that a request whose response is lost can be sent again.
            own = uuid.uuid4().hex
            ids = [f"{own}.{row}" for row in range(len(rows))]
        given = ids_of(ids)
        if len(given) != len(rows):
            raise ValueError(f"there are {len(rows)} rows in X and {len(given)} ids")
        responses: list[dict[str, Any]] = []

        def send(part: Batch) -> Steps[None]:
            body = packed({**fields_of(part.X), "ids": part.y, **_with(costs)})
            responses.append((yield from self.ask(request_of("predict", name, body, query))))

        batches = Batches(rows, given, max(1, len(rows)))
        while part := batches.take():
            yield from _in_parts(part, send)
        if not responses:
            raise ValueError("there are no rows")
        return predicted(responses)

    def label(
        self, name: str, ids: Any, y: Any, batch: int, if_match: str | None = None
    ) -> Steps[Labelled]:
        """Label predicted rows batch by batch; the server learns none of them twice."""
        if batch < 1:
            raise ValueError(f"a batch must have at least one label, not {batch}")
        whole = late_labels(ids, y)
        responses: list[dict[str, Any]] = []

        def send(part: Batch) -> Steps[None]:
            body, headers = packed({"ids": part.X, "y": part.y}), matching(if_match, responses)
            request = request_of("label", name, body, headers=headers)
            responses.append((yield from self.ask(request)))

        try:
            for at in range(0, len(whole.y), batch):
                part = Batch(whole.X[at : at + batch], whole.y[at : at + batch])
                yield from _in_parts(part, send)
        except ClientError as error:
            error.acknowledged = sum(answer.get("learned", 0) for answer in responses)
            raise
        return labelled(responses)


def _with(costs: Any) -> dict[str, Any]:
    return {} if costs is None else {"costs": costs}


def _in_parts(batch: Batch, send: Callable[[Batch], Steps[None]], most: int = 0) -> Steps[int]:
    """Send a batch, in halves of halves where it is too large; return the size to go on with.

    most: the size of batches so far.
    """
    parts = [batch]
    while parts:
        part = parts.pop()
        try:
            yield from send(part)
        except Refused as refused:
            if refused.status != _TOO_LARGE or len(part.y) == 1:
                raise
            most = max(1, len(part.y) // 2)
            parts += part.halves()[::-1]
    return most
