"""The calls of a client, as steps: what is asked for, when it is asked for again, what it means."""

import uuid
from collections.abc import Mapping
from typing import Any

from service.client_batches import MOST_BYTES, Batches, rows_of
from service.client_errors import ClientError, NotDone, Refused
from service.client_results import Learned, Predictions, learned, predicted
from service.client_steps import Patience, Pause, Request, Steps
from service.client_wire import (
    IDEMPOTENCY_KEY,
    answer_to,
    learning_call,
    model_path,
    packed,
)

_FIRST_LOOK, _LONGEST_LOOK = 0.05, 1.0


class Calls:
    """What can be asked of a server. patience: seconds for which a failing call is tried again."""

    def __init__(self, patience: float) -> None:
        self._patience = patience

    def ask(self, request: Request) -> Steps[dict[str, Any]]:
        """The answer to a request, sent as often as it takes. Raises ClientError."""
        patience = Patience(self._patience)
        while True:
            try:
                return answer_to(request, (yield request))
            except ClientError as error:
                if not request.again and not isinstance(error, Refused):
                    raise
                pause = patience.pause(error)
            yield pause

    def get(self, path: str) -> Steps[dict[str, Any]]:
        """What a path tells."""
        return self.ask(Request("GET", path))

    def models(self) -> Steps[list[dict[str, Any]]]:
        """All models."""
        answer = yield from self.get("/v1/models")
        return list(answer.get("models", []))

    def create(
        self, name: str, spec: Mapping[str, Any] | None, fields: Mapping[str, Any]
    ) -> Steps[dict[str, Any]]:
        """A model of a spec."""
        body = packed({**(spec or {}), **fields})
        return self.ask(Request("PUT", model_path(name), body))

    def delete(self, name: str) -> Steps[None]:
        """Forget a model. A second attempt may find that the first, whose answer was lost, did."""
        request = Request("DELETE", model_path(name))
        patience, tries = Patience(self._patience), 0
        while True:
            tries += 1
            try:
                answer_to(request, (yield request))
                return
            except ClientError as error:
                if tries > 1 and isinstance(error, Refused) and error.status == 404:
                    return
                pause = patience.pause(error)
            yield pause

    def learn(
        self, name: str, X: Any, y: Any, head: str, batch: int, key: str | None
    ) -> Steps[Learned]:
        """Samples, learned batch by batch, each under a key of its own."""
        path = model_path(name, learning_call(head))
        key = uuid.uuid4().hex if key is None else key
        answers: list[dict[str, Any]] = []
        done = 0
        try:
            batches = Batches(X, y, batch)
            while part := batches.take():
                parts = [part]
                while parts:
                    part = parts.pop()
                    try:
                        answers.append((yield from self._learn_once(path, part, key, done)))
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
        except Exception as error:  # of the caller's samples
            error.add_note(f"{done:,} samples were acknowledged, under idempotency key {key!r}")
            raise
        if not answers:
            raise ValueError("there are no samples")
        return learned(answers)

    def _learn_once(self, path: str, part: Any, key: str, first: int) -> Steps[dict[str, Any]]:
        """first: how many samples of the call come before it, which tells its key from others."""
        body = packed({"x": part.X, "y": part.y})
        if len(body) > MOST_BYTES and len(part.y) > 1:
            raise Refused(413, {"title": "Larger than this client sends"})
        headers = {IDEMPOTENCY_KEY: f"{key}.{first}" if first else key}
        return (yield from self.ask(Request("POST", path, body, headers=headers)))

    def predict(
        self, name: str, X: Any, head: str | None, min_sequence: int | None
    ) -> Steps[Predictions]:
        """Predictions, batch by batch; anew where a class was met between two of them."""
        query = {} if head is None else {"head": head}
        if min_sequence is not None:
            query["min_sequence"] = str(min_sequence)
        path = model_path(name, "predict")
        rows = rows_of(X)
        size = len(rows)
        if not size:
            raise ValueError("there are no rows")
        while True:
            answers = []
            batches = Batches(rows, range(len(rows)), size)
            try:
                while part := batches.take():
                    body = packed({"x": part.X})
                    answers.append((yield from self.ask(Request("POST", path, body, query))))
                    if answers[0].get("classes") != answers[-1].get("classes"):
                        break
                else:
                    return predicted(answers)
            except Refused as refused:
                if refused.status != 413 or size <= 1:
                    raise
                size = -(-size // 2)

    def refit(self, name: str, wait_seconds: float) -> Steps[dict[str, Any]]:
        """A refit's job, once it is done. Raises Refused where it failed, NotDone."""
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

    def rollback(self, name: str, sequence: int) -> Steps[dict[str, Any]]:
        """The model as it was. Never asked for twice: others may have learned in between."""
        body = packed({"sequence": sequence})
        return self.ask(Request("POST", model_path(name, "rollback"), body, again=False))

    def snapshot(self, name: str) -> Steps[dict[str, Any]]:
        """A snapshot of the model, now."""
        return self.ask(Request("POST", model_path(name, "snapshot")))
