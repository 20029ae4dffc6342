"""The calls of a client as steps: the requests, when they are retried, what responses mean."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from service.client.batches import (
    MOST_BYTES,
    Batch,
    Batches,
    fields_of,
    ids_of,
    late_labels,
    rows_of,
)
from service.client.errors import ClientError, NotDone, Refused
from service.client.results import Labelled, Learned, Predictions, labelled, learned, predicted
from service.client.steps import Patience, Pause, Reply, Request, Steps
from service.client.wire import (
    IDEMPOTENCY_KEY,
    OCTETS,
    decode_reply,
    learning_call,
    model_path,
    octets_of,
    packed,
)

T = TypeVar("T")

_FIRST_LOOK, _LONGEST_LOOK = 0.05, 1.0


class Calls:
    """All calls of a client. patience: seconds for which a failing call is tried again."""

    def __init__(self, patience: float) -> None:
        self._patience = patience

    def ask(self, request: Request) -> Steps[dict[str, Any]]:
        """Send a request, retry it while that may help, return the response. Raises ClientError."""
        return self._tried(request, decode_reply)

    def _tried(self, request: Request, decode: Callable[[Request, Reply], T]) -> Steps[T]:
        patience = Patience(self._patience)
        while True:
            try:
                return decode(request, (yield request))
            except ClientError as error:
                if not request.again and not isinstance(error, Refused):
                    raise
                pause = patience.pause(error)
            yield pause

    def get(self, path: str) -> Steps[dict[str, Any]]:
        """Return the response to GET."""
        return self.ask(Request("GET", path))

    def models(self) -> Steps[list[dict[str, Any]]]:
        """List all models."""
        response = yield from self.get("/v1/models")
        return list(response.get("models", []))

    def create(
        self, name: str, spec: Mapping[str, Any] | None, fields: Mapping[str, Any]
    ) -> Steps[dict[str, Any]]:
        """Create a model from a spec, and return its description."""
        body = packed({**(spec or {}), **fields})
        return self.ask(Request("PUT", model_path(name), body))

    def upload(self, name: str, content: bytes) -> Steps[dict[str, Any]]:
        """Make a model of the bytes of a model file; sent again, they find it made."""
        headers = {"content-type": OCTETS}
        return self.ask(Request("PUT", model_path(name, "state"), content, headers=headers))

    def download(self, name: str) -> Steps[bytes]:
        """Return a model as the bytes of a model file."""
        headers = {"accept": f"{OCTETS}, application/problem+json"}
        request = Request("GET", model_path(name, "state"), headers=headers)
        return self._tried(request, octets_of)

    def delete(self, name: str, if_match: str | None = None) -> Steps[None]:
        """Delete a model. A 404 after a lost response means that the first attempt succeeded."""
        request = Request("DELETE", model_path(name), headers=_matching(if_match))
        patience, tries = Patience(self._patience), 0
        while True:
            tries += 1
            try:
                decode_reply(request, (yield request))
                return
            except ClientError as error:
                if tries > 1 and isinstance(error, Refused) and error.status == 404:
                    return
                pause = patience.pause(error)
            yield pause

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
    ) -> Steps[Learned]:
        """Learn samples batch by batch, each under a key of its own.

        if_match: the state for the first batch; each other one is for that after the one before.
        """
        path = model_path(name, learning_call(head))
        key = uuid.uuid4().hex if key is None else key
        responses: list[dict[str, Any]] = []
        done = 0
        try:
            batches = Batches(X, y, batch, weight)
            while part := batches.take():
                parts = [part]
                while parts:
                    part = parts.pop()
                    try:
                        headers = _matching(if_match, responses)
                        answer = yield from self._learn_once(path, part, key, done, headers)
                        responses.append(answer)
                    except Refused as refused:
                        if refused.status != 413 or len(part.y) == 1:
                            raise
                        batches.most = max(1, len(part.y) // 2)
                        parts += part.halves()[::-1]
                    else:
                        done += len(part.y)
        except ClientError as error:
            error.acknowledged, error.idempotency_key = done, key
            raise
        except Exception as error:  # raised by the caller's samples
            error.add_note(f"{done:,} samples were acknowledged, under idempotency key {key!r}")
            raise
        if not responses:
            raise ValueError("there are no samples")
        return learned(responses)

    def _learn_once(
        self, path: str, part: Any, key: str, first: int, matching: Mapping[str, str]
    ) -> Steps[dict[str, Any]]:
        """Learn a batch. first: samples of the call before it, which make its key another one."""
        body = packed(part.fields())
        if len(body) > MOST_BYTES and len(part.y) > 1:
            raise Refused(413, {"title": "Larger than this client sends"})
        headers = {IDEMPOTENCY_KEY: f"{key}.{first}" if first else key, **matching}
        return (yield from self.ask(Request("POST", path, body, headers=headers)))

    def predict(
        self,
        name: str,
        X: Any,
        head: str | None,
        min_sequence: int | str | None,
        **asked: Any,
    ) -> Steps[Predictions]:
        """Predict batch by batch; again from the start if a class appeared between two batches.

        asked: `probability`, `confidence`, `explain`, as the server's query takes them.
        """
        query = {} if head is None else {"head": head}
        if min_sequence is not None:
            query["min_sequence"] = str(min_sequence)
        query |= {what: str(value).lower() for what, value in asked.items()}
        path = model_path(name, "predict")
        rows = rows_of(X)
        size = len(rows)
        if not size:
            raise ValueError("there are no rows")
        while True:
            responses = []
            batches = Batches(rows, range(len(rows)), size)
            try:
                while part := batches.take():
                    body = packed(fields_of(part.X))
                    responses.append((yield from self.ask(Request("POST", path, body, query))))
                    if responses[0].get("classes") != responses[-1].get("classes"):
                        break
                else:
                    return predicted(responses)
            except Refused as refused:
                if refused.status != 413 or size <= 1:
                    raise
                size = -(-size // 2)

    def predict_later(
        self, name: str, X: Any, head: str | None, ids: Any, min_sequence: int | str | None
    ) -> Steps[Predictions]:
        """Predict rows that wait for their labels, batch by batch, each once."""
        if head is not None:
            raise ValueError("rows wait for labels under the head that serves: leave head out")
        query = {} if min_sequence is None else {"min_sequence": str(min_sequence)}
        path, rows = model_path(name, "predict"), rows_of(X)
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
        batches = Batches(rows, given, max(1, len(rows)))
        while part := batches.take():
            parts = [part]
            while parts:
                part = parts.pop()
                body = packed({**fields_of(part.X), "ids": part.y})
                try:
                    responses.append((yield from self.ask(Request("POST", path, body, query))))
                except Refused as refused:
                    if refused.status != 413 or len(part.y) == 1:
                        raise
                    parts += part.halves()[::-1]
        if not responses:
            raise ValueError("there are no rows")
        return predicted(responses)

    def label(
        self, name: str, ids: Any, y: Any, batch: int, if_match: str | None = None
    ) -> Steps[Labelled]:
        """Label predicted rows batch by batch; the server learns none of them twice."""
        if batch < 1:
            raise ValueError(f"a batch must have at least one label, not {batch}")
        path, whole = model_path(name, "labels"), late_labels(ids, y)
        starts = range(0, len(whole.y), batch)
        parts = [Batch(whole.X[at : at + batch], whole.y[at : at + batch]) for at in starts][::-1]
        responses: list[dict[str, Any]] = []
        try:
            while parts:
                part = parts.pop()
                body = packed({"ids": part.X, "y": part.y})
                headers = _matching(if_match, responses)
                try:
                    answer = yield from self.ask(Request("POST", path, body, headers=headers))
                except Refused as refused:
                    if refused.status != 413 or len(part.y) == 1:
                        raise
                    parts += part.halves()[::-1]
                else:
                    responses.append(answer)
        except ClientError as error:
            error.acknowledged = sum(answer.get("learned", 0) for answer in responses)
            raise
        return labelled(responses)

    def refit(self, name: str, wait_seconds: float) -> Steps[dict[str, Any]]:
        """Refit, and return the job when it is done. Raises Refused if it failed, and NotDone."""
        job = yield from self.ask(Request("POST", model_path(name, "refit")))
        pause, waited = _FIRST_LOOK, 0.0
        while job["status"] not in ("done", "failed"):
            if waited >= wait_seconds:
                raise NotDone(job)
            yield Pause(pause)
            waited, pause = waited + pause, min(_LONGEST_LOOK, 1.5 * pause)
            job = yield from self.get(model_path(name, "jobs", job["job"]))
        if job["error"]:
            raise Refused(job["error"].get("status", 0), job["error"])
        return job

    def rollback(
        self, name: str, sequence: int, if_match: str | None = None
    ) -> Steps[dict[str, Any]]:
        """Roll back, and return the outcome. Never sent twice: others may have learned since."""
        body, headers = packed({"sequence": sequence}), _matching(if_match)
        path = model_path(name, "rollback")
        return self.ask(Request("POST", path, body, headers=headers, again=False))

    def promote(
        self, name: str, challenger: str, if_match: str | None = None
    ) -> Steps[dict[str, Any]]:
        """Promote a challenger. Never sent twice: that would exchange the two back."""
        body, headers = packed({"model": challenger}), _matching(if_match)
        path = model_path(name, "promote")
        return self.ask(Request("POST", path, body, headers=headers, again=False))

    def snapshot(self, name: str) -> Steps[dict[str, Any]]:
        """Have the server write a snapshot of the model."""
        return self.ask(Request("POST", model_path(name, "snapshot")))


def _matching(if_match: str | None, responses: Sequence[Mapping[str, Any]] = ()) -> dict[str, str]:
    """The header for a state: `if_match`, or where that has a sequence, after the last response."""
    if if_match is None:
        return {}
    if responses and ":" in if_match:
        if_match = f"{responses[-1]['epoch']}:{responses[-1]['sequence']}"
    return {"if-match": f'"{if_match}"'}
