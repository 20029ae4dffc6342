"""The client of a running server for asyncio."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from service.client.calls import Calls
from service.client.events import EventReader
from service.client.portable import content_of, made_of
from service.client.results import Labelled, Learned, Predictions
from service.client.sample_calls import SampleCalls
from service.client.steps import Request
from service.client.transport import AsyncTransport
from service.client.wire import ANSWER_SECONDS, RETRY_SECONDS, Verify, model_path

# websockets is imported when a stream is opened.
if TYPE_CHECKING:
    from service.client.aio_stream import AsyncStream


class AsyncClient:
    """The connection to a server; `client.sync.Client` describes the methods, awaited here.

    Tasks of one event loop may share it.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = ANSWER_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        verify: Verify = True,
    ) -> None:
        self._http = AsyncTransport(url, key, timeout, verify)
        self.url = self._http.url
        self._key, self._timeout, self._retry_seconds = key, timeout, retry_seconds
        self._calls, self._samples = Calls(retry_seconds), SampleCalls(retry_seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def models(self) -> list[dict[str, Any]]:
        """List all models: name, sequence, number of features."""
        return await self._http.run(self._calls.models())

    async def create(
        self, name: str, spec: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Create a model from a spec, or from its fields, and return its description."""
        return await self._http.run(self._calls.create(name, spec, fields))

    async def describe(self, name: str) -> dict[str, Any]:
        """Return a model's description: spec, sequence, and the size and scores of each head."""
        return await self._http.run(self._calls.get(model_path(name)))

    async def delete(self, name: str, *, if_match: str | None = None) -> None:
        """Delete a model and everything that it has learned. if_match: see `learn`."""
        await self._http.run(self._calls.delete(name, if_match))

    async def upload(self, name: str, source: Any) -> dict[str, Any]:
        """Make a new model that answers as a fitted estimator does, and goes on learning."""
        content = await asyncio.to_thread(content_of, source)
        return await self._http.run(self._calls.upload(name, content))

    async def download(self, name: str, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a model as an estimator, or write it into a model file."""
        content = await self._http.run(self._calls.download(name))
        return await asyncio.to_thread(made_of, content, name, path)

    async def learn(
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
    ) -> Learned:
        """Let a model learn samples, in order, each once; they are durable when this returns."""
        steps = self._samples.learn(name, X, y, head, batch, idempotency_key, if_match, weight)
        return await self._http.run(steps)

    async def predict(
        self,
        name: str,
        X: Any,
        *,
        head: str | None = None,
        min_sequence: int | str | None = None,
        ids: Any = None,
    ) -> Predictions:
        """Return predictions for rows, or for one row; with ids the rows wait for their labels."""
        if ids is not None:
            return await self._http.run(
                self._samples.predict_later(name, X, head, ids, min_sequence)
            )
        return await self._http.run(self._samples.predict(name, X, head, min_sequence))

    async def label(
        self, name: str, ids: Any, y: Any, *, batch: int = 1024, if_match: str | None = None
    ) -> Labelled:
        """Let a model learn rows that were predicted with ids, in the order of their labels."""
        return await self._http.run(self._samples.label(name, ids, y, batch, if_match))

    async def predict_proba(
        self, name: str, X: Any, *, head: str | None = None, min_sequence: int | None = None
    ) -> Predictions:
        """Return predictions as `predict` does, with probabilities or standard deviations.

        Raises Refused for a head whose calibration no label has tested yet.
        """
        return await self._http.run(
            self._samples.predict(name, X, head, min_sequence, probability=True)
        )

    async def predict_set(
        self,
        name: str,
        X: Any,
        *,
        confidence: float = 0.9,
        head: str | None = None,
        min_sequence: int | None = None,
    ) -> Predictions:
        """Return predictions as `predict` does, with sets that have the label so often.

        Raises Refused as `predict_proba` does.
        """
        steps = self._samples.predict(name, X, head, min_sequence, confidence=confidence)
        return await self._http.run(steps)

    async def predict_interval(
        self,
        name: str,
        X: Any,
        *,
        confidence: float = 0.9,
        head: str | None = None,
        min_sequence: int | None = None,
    ) -> Predictions:
        """Return predictions as `predict` does, with intervals that have the target so often."""
        return await self.predict_set(
            name, X, confidence=confidence, head=head, min_sequence=min_sequence
        )

    async def explain(
        self,
        name: str,
        X: Any,
        *,
        most: int = 5,
        head: str | None = None,
        min_sequence: int | None = None,
    ) -> Predictions:
        """Return predictions as `predict` does, each with a limited number of reasons.

        They are features that move the prediction and, of the head "working_set", the samples that
        pull for and against it. Raises Refused for rows that the head cannot explain.
        """
        return await self._http.run(
            self._samples.predict(name, X, head, min_sequence, explain=most)
        )

    async def refit(self, name: str, *, wait_seconds: float = 600.0) -> dict[str, Any]:
        """Refit a semiparametric model, wait, and return the job when it is done."""
        return await self._http.run(self._calls.refit(name, wait_seconds))

    async def history(self, name: str) -> dict[str, Any]:
        """Return the states that a model can be rolled back to."""
        return await self._http.run(self._calls.get(model_path(name, "history")))

    async def rollback(
        self, name: str, sequence: int, *, if_match: str | None = None
    ) -> dict[str, Any]:
        """Roll a model back to a sequence. The call is not retried after a lost response.

        if_match: see `learn`.
        """
        return await self._http.run(self._calls.rollback(name, sequence, if_match))

    async def challengers(self, name: str) -> dict[str, Any]:
        """Compare the models that follow this one with it, on the same samples."""
        return await self._http.run(self._calls.get(model_path(name, "challengers")))

    async def promote(
        self, name: str, challenger: str, *, if_match: str | None = None
    ) -> dict[str, Any]:
        """Exchange spec and state of a model and its challenger; the model's description.

        if_match: see `learn`. The call is not retried after a lost response.
        """
        return await self._http.run(self._calls.promote(name, challenger, if_match))

    async def metrics_history(self, name: str) -> dict[str, Any]:
        """Return a model's numbers over the last hours: `time`, and `numbers` by their names."""
        return await self._http.run(self._calls.get(model_path(name, "metrics", "history")))

    def events(self, name: str) -> AsyncIterator[dict[str, Any]]:
        """Yield a model's state once a second, from now on, until the model is deleted."""
        return self._http.events(EventReader(name, self._retry_seconds))

    async def snapshot(self, name: str) -> dict[str, Any]:
        """Have the server write a snapshot of a model."""
        return await self._http.run(self._calls.snapshot(name))

    def stream(
        self, name: str, producer: str | None = None, *, first: int | None = None
    ) -> "AsyncStream":
        """Return a stream to a model, to be used in an `async with` statement."""
        from service.client.aio_stream import AsyncStream
        from service.client.session import Session
        from service.client.stream_address import address

        at = address(self.url, name, self._key, self._timeout, self._http.trusted)
        session = Session.of(producer, first, self._retry_seconds)
        return AsyncStream(at, session)

    async def ask(self, request: Request, retry_seconds: float | None = None) -> dict[str, Any]:
        """Return the response to any other request."""
        calls = self._calls if retry_seconds is None else Calls(retry_seconds)
        return await self._http.run(calls.ask(request))
