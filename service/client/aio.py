"""The client of a running server for asyncio."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from wolfstream.service.client.batches import rows_and_ids, split_roles
from wolfstream.service.client.model_methods import AsyncModelMethods
from wolfstream.service.client.results import Labelled, Learned, Predictions
from wolfstream.service.client.sample_calls import SampleCalls
from wolfstream.service.client.transport import AsyncTransport
from wolfstream.service.client.wire import ANSWER_SECONDS, Verify
from wolfstream.service.files.roles import Roles

# websockets is imported when a stream is opened.
if TYPE_CHECKING:
    from wolfstream.service.client.aio_stream import AsyncStream


class AsyncClient(AsyncModelMethods):
    """The connection to a server; `client.sync.Client` describes the methods, awaited here.

    Tasks of one event loop may share it.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = ANSWER_SECONDS,
        retry: float | None = None,
        verify: Verify = True,
    ) -> None:
        super().__init__(AsyncTransport(url, key, timeout, verify), retry)
        self.url = self._http.url
        self._key, self._timeout = key, timeout
        self._samples = SampleCalls(self._retry)

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
        label: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Learned:
        """Send samples to a model; return once they are durable and learned."""
        roles, weight = split_roles(label, id, weight)
        steps = self._samples.learn(
            name, X, y, head, batch, idempotency_key, if_match, weight, roles
        )
        return await self._http.run(steps)

    async def predict(
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
    ) -> Predictions:
        """Return predictions for rows, or for one row; with ids the rows wait for their labels."""
        rows, column_ids = rows_and_ids(X, Roles(label, id, weight))
        ids = column_ids if ids is None else ids
        if ids is not None:
            steps = self._samples.predict_later(name, rows, head, ids, min_sequence, costs)
        else:
            steps = self._samples.predict(name, rows, head, min_sequence, costs, max_lag=max_lag)
        return await self._http.run(steps)

    async def label(
        self, name: str, ids: Any, y: Any, *, batch: int = 1024, if_match: str | None = None
    ) -> Labelled:
        """Send the labels of rows that were predicted with ids; return once they are learned."""
        return await self._http.run(self._samples.label(name, ids, y, batch, if_match))

    async def predict_proba(
        self,
        name: str,
        X: Any,
        *,
        head: str | None = None,
        min_sequence: int | None = None,
        label: str | None = None,
        id: str | None = None,  # noqa: A002
        weight: str | None = None,
    ) -> Predictions:
        """Return predictions as `predict` does, with probabilities or standard deviations.

        Raises Refused for a head whose calibration no label has tested yet.
        """
        rows, _ = rows_and_ids(X, Roles(label, id, weight))
        return await self._http.run(
            self._samples.predict(name, rows, head, min_sequence, probability=True)
        )

    async def predict_set(
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
    ) -> Predictions:
        """Return predictions with sets of classes that contain the label with some probability."""
        rows, _ = rows_and_ids(X, Roles(label, id, weight))
        steps = self._samples.predict(name, rows, head, min_sequence, confidence=confidence)
        return await self._http.run(steps)

    async def predict_interval(
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
    ) -> Predictions:
        """Return predictions with intervals that contain the target with some probability."""
        return await self.predict_set(
            name,
            X,
            confidence=confidence,
            head=head,
            min_sequence=min_sequence,
            label=label,
            id=id,
            weight=weight,
        )

    async def explain(
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
    ) -> Predictions:
        """Return predictions with explanations."""
        rows, _ = rows_and_ids(X, Roles(label, id, weight))
        return await self._http.run(
            self._samples.predict(name, rows, head, min_sequence, explain=most)
        )

    def stream(
        self, name: str, producer: str | None = None, *, first: int | None = None
    ) -> "AsyncStream":
        """Return a stream to a model, for an `async with` statement."""
        from wolfstream.service.client.aio_stream import AsyncStream
        from wolfstream.service.client.session import Session
        from wolfstream.service.client.stream_address import stream_address

        address = stream_address(self.url, name, self._key, self._timeout, self._http.tls_context)
        session = Session.begin(producer, first, self._retry)
        return AsyncStream(address, session)
