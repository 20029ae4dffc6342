"""The blocking client of a running server.

    with Client("http://127.0.0.1:8000") as client:
        client.create("rooms")
        client.learn("rooms", X, y)
        print(client.predict("rooms", X).predictions)

`client.aio.AsyncClient` has the same methods to be awaited. Each call is written once, as steps
(`client.calls`, `client.sample_calls`, `client.session`), which both clients carry out
(`client.transport`). Samples are sent under a key (Idempotency-Key), so a call is sent again when
its connection broke, its response was lost or the server had no room, and each sample is still
learned once. The errors that remain are in `client.errors`.
"""

import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from service.client.calls import Calls
from service.client.events import EventReader
from service.client.portable import content_of, made_of
from service.client.results import Labelled, Learned, Predictions
from service.client.sample_calls import SampleCalls
from service.client.steps import Request
from service.client.transport import Transport
from service.client.wire import ANSWER_SECONDS, RETRY_SECONDS, Verify, model_path

# websockets is imported when a stream is opened.
if TYPE_CHECKING:
    from service.client.stream import Stream


class Client:
    """The connection to a server. Threads may share it; `close` it, or use a `with` statement.

    url: such as http://127.0.0.1:8000, or https://...
    key: an API key, where the server asks for one.
    timeout: seconds without a response after which a connection counts as lost.
    retry_seconds: how long a call that fails is tried again, counted from its first failure
        (for a stream or a call of many batches, from the first one since something succeeded).
    verify: for https: the certificates to trust, as a file, a folder or an SSLContext. True
        trusts public authorities, False trusts any certificate.
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
        self._http = Transport(url, key, timeout, verify)
        self.url = self._http.url
        self._key, self._timeout, self._retry_seconds = key, timeout, retry_seconds
        self._calls, self._samples = Calls(retry_seconds), SampleCalls(retry_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def models(self) -> list[dict[str, Any]]:
        """List all models: name, sequence, number of features. Raises ClientError, as all calls."""
        return self._http.run(self._calls.models())

    def create(
        self, name: str, spec: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Create a model from a spec, or from its fields, and return its description.

        A model that exists with the same spec is left as it is. Raises Refused with status 409
        where the name belongs to a model of another spec.
        """
        return self._http.run(self._calls.create(name, spec, fields))

    def describe(self, name: str) -> dict[str, Any]:
        """Return a model's description: spec, sequence, and the size and scores of each head."""
        return self._http.run(self._calls.get(model_path(name)))

    def delete(self, name: str, *, if_match: str | None = None) -> None:
        """Delete a model and everything that it has learned. if_match: see `learn`."""
        self._http.run(self._calls.delete(name, if_match))

    def upload(self, name: str, source: Any) -> dict[str, Any]:
        """Make a new model that answers as a fitted estimator does, and goes on learning.

        source: the estimator, or the path or the bytes of a model file (`wolfstream.save`).

        Raises Refused with status 409 where the name belongs to a model in another state, 422 for
        a file that cannot be used, and what `wolfstream.save` raises for the estimator.
        """
        return self._http.run(self._calls.upload(name, content_of(source)))

    def download(self, name: str, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a model as an estimator, which goes on learning in this process.

        path: of a model file to be written instead; nothing is returned then, and every model
            has a file. Raises what `wolfstream.load` raises for a model that is no estimator.
        """
        return made_of(self._http.run(self._calls.download(name)), name, path)

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
    ) -> Learned:
        """Let a model learn samples, in order, each once; they are durable when this returns.

        X, y: an array (n, d) or nested lists, or a list of rows of named numbers, and n labels
            or numbers; one row and its label; or two iterables. Without y, X gives pairs.
        head: "samples" for the working set, or the window of a semiparametric model; "asset".
        batch: samples in a request at most. Each request is learned as a whole or not at all.
        idempotency_key: a call with the key of an earlier call continues it, and learns nothing
            twice. Without one the call makes its own key.
        if_match: learn only if the model is in this state, a result's `state`, or in this epoch;
            otherwise the call is refused with status 412.
        weight: how much the samples count in what is learned: a number for all, or one for each.

        Raises ClientError, which says how many samples were `acknowledged`; ValueError and
        TypeError for anything that is not samples.
        """
        steps = self._samples.learn(name, X, y, head, batch, idempotency_key, if_match, weight)
        return self._http.run(steps)

    def predict(
        self,
        name: str,
        X: Any,
        *,
        head: str | None = None,
        min_sequence: int | str | None = None,
        ids: Any = None,
    ) -> Predictions:
        """Return predictions for rows, or for one row; by default of the head that serves.

        min_sequence: the server waits until the model has learned at least so many samples; with
            an epoch, "EPOCH:SEQUENCE", it refuses any other epoch with status 412.
        ids: an id for each row, a text or a whole number, or "auto" for new ones: the rows are
            durable when this returns, and wait for their labels (`label`). A call that comes again
            with the same rows and ids gets its first result. Only the head that serves takes ids.
        """
        if ids is not None:
            return self._http.run(self._samples.predict_later(name, X, head, ids, min_sequence))
        return self._http.run(self._samples.predict(name, X, head, min_sequence))

    def label(
        self, name: str, ids: Any, y: Any, *, batch: int = 1024, if_match: str | None = None
    ) -> Labelled:
        """Let a model learn rows that were predicted with ids, in the order of their labels.

        ids, y: of any number of rows, from any calls; or one id and its label. A label that comes
            again is not learned again, so the call can be repeated; `status` of the result says
            what became of each.
        batch: labels in a request at most.
        if_match: see `learn`.
        """
        return self._http.run(self._samples.label(name, ids, y, batch, if_match))

    def predict_proba(
        self, name: str, X: Any, *, head: str | None = None, min_sequence: int | None = None
    ) -> Predictions:
        """Return predictions as `predict` does, with probabilities or standard deviations.

        Raises Refused for a head whose calibration no label has tested yet.
        """
        return self._http.run(self._samples.predict(name, X, head, min_sequence, probability=True))

    def predict_set(
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
        return self._http.run(steps)

    def predict_interval(
        self,
        name: str,
        X: Any,
        *,
        confidence: float = 0.9,
        head: str | None = None,
        min_sequence: int | None = None,
    ) -> Predictions:
        """Return predictions as `predict` does, with intervals that have the target so often."""
        return self.predict_set(
            name, X, confidence=confidence, head=head, min_sequence=min_sequence
        )

    def explain(
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
        return self._http.run(self._samples.predict(name, X, head, min_sequence, explain=most))

    def refit(self, name: str, *, wait_seconds: float = 600.0) -> dict[str, Any]:
        """Refit a semiparametric model, wait, and return the job when it is done.

        Raises Refused if the refit failed, and NotDone after `wait_seconds`.
        """
        return self._http.run(self._calls.refit(name, wait_seconds))

    def history(self, name: str) -> dict[str, Any]:
        """Return the states that a model can be rolled back to."""
        return self._http.run(self._calls.get(model_path(name, "history")))

    def rollback(self, name: str, sequence: int, *, if_match: str | None = None) -> dict[str, Any]:
        """Roll a model back to a sequence. The call is not retried after a lost response.

        if_match: see `learn`.
        """
        return self._http.run(self._calls.rollback(name, sequence, if_match))

    def challengers(self, name: str) -> dict[str, Any]:
        """Compare the models that follow this one with it, on the same samples."""
        return self._http.run(self._calls.get(model_path(name, "challengers")))

    def promote(self, name: str, challenger: str, *, if_match: str | None = None) -> dict[str, Any]:
        """Exchange spec and state of a model and its challenger; the model's description.

        if_match: see `learn`. The call is not retried after a lost response.
        """
        return self._http.run(self._calls.promote(name, challenger, if_match))

    def metrics_history(self, name: str) -> dict[str, Any]:
        """Return a model's numbers over the last hours: `time`, and `numbers` by their names."""
        return self._http.run(self._calls.get(model_path(name, "metrics", "history")))

    def events(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield a model's state once a second, from now on, as GET .../events describes it.

        A lost connection is opened again, for at most `retry_seconds`; what came meanwhile
        comes first, if it was within half a minute. It ends when the model is deleted.
        """
        return self._http.events(EventReader(name, self._retry_seconds))

    def snapshot(self, name: str) -> dict[str, Any]:
        """Have the server write a snapshot of a model."""
        return self._http.run(self._calls.snapshot(name))

    def stream(
        self, name: str, producer: str | None = None, *, first: int | None = None
    ) -> "Stream":
        """Return a stream to a model, to be used in a `with` statement.

        producer: a name for this source of samples, which makes the numbers of its requests
            idempotency keys. Without one the stream makes its own name.
        first: the number of the first request, from 1 on. A source that starts again and goes on
            where it stopped gives its name and the number after the last request that it knows
            to be acknowledged: requests that were learned already get their first response and
            are not learned again. Without it the numbers are new ones each time.
        """
        from service.client.session import Session
        from service.client.stream import Stream
        from service.client.stream_address import address

        at = address(self.url, name, self._key, self._timeout, self._http.trusted)
        return Stream(at, Session.of(producer, first, self._retry_seconds))

    def ask(self, request: Request, retry_seconds: float | None = None) -> dict[str, Any]:
        """Return the response to any other request. Raises ClientError."""
        calls = self._calls if retry_seconds is None else Calls(retry_seconds)
        return self._http.run(calls.ask(request))
