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

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from wolfstream.service.client.batches import roles_of, rows_and_ids
from wolfstream.service.client.model_methods import ModelMethods
from wolfstream.service.client.results import Labelled, Learned, Predictions
from wolfstream.service.client.sample_calls import SampleCalls
from wolfstream.service.client.transport import Transport
from wolfstream.service.client.wire import ANSWER_SECONDS, Verify
from wolfstream.service.files.roles import Roles

# websockets is imported when a stream is opened.
if TYPE_CHECKING:
    from wolfstream.service.client.stream import Stream


class Client(ModelMethods):
    """The connection to a server. Threads may share it; `close` it, or use a `with` statement.

    url: such as http://127.0.0.1:8000, or https://...
    key: an API key, where the server asks for one.
    timeout: seconds without a response after which a connection counts as lost.
    retry: how many seconds a call that fails is tried again, counted from its first failure (for a
        stream or a call of many batches, from the first one since something succeeded), also while
        there is no server yet. By default 60, but the first call fails at once if no server is
        there. A client that tries for more than a second logs a warning that says until when.
    verify: for https: the certificates to trust, as a file, a folder or an SSLContext. True
        trusts public authorities, False trusts any certificate.
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
        super().__init__(Transport(url, key, timeout, verify), retry)
        self.url = self._http.url
        self._key, self._timeout = key, timeout
        self._samples = SampleCalls(self._retry)

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
    ) -> Learned:
        """Let a model learn samples, in order, each once; they are durable when this returns.

        X, y: an array (n, d) or nested lists, a table, a sparse matrix, or a list of rows of named
            values, and n labels or numbers; one row and its label; or two iterables. Without y, X
            is a table, the path of a data file, or rows of named values, with the labels in a
            column; or it gives pairs.
        head: "samples" for the working set, or the window of a semiparametric model; "asset".
        batch: samples in a request at most. Each request is learned as a whole or not at all.
        idempotency_key: a call with the key of an earlier call continues it, and learns nothing
            twice. Without one the call makes its own key.
        if_match: learn only if the model is in this state, a result's `state`, or in this epoch;
            otherwise the call is refused with status 412.
        weight: how much the samples count in what is learned: a number for all, one for each, or
            the name of the column of X that says it.
        label: the name of the column of X that has the labels; by default the one named y, label,
            target or class.
        id: the name of a column of X that is no feature.

        Raises ClientError, which says how many samples were `acknowledged`; ValueError and
        TypeError for anything that is not samples.
        """
        roles, weight = roles_of(label, id, weight)
        steps = self._samples.learn(
            name, X, y, head, batch, idempotency_key, if_match, weight, roles
        )
        return self._http.run(steps)

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
    ) -> Predictions:
        """Return predictions for rows, or for one row; by default of the head that serves.

        min_sequence: the server waits until the model has learned at least so many samples; with
            an epoch, "EPOCH:SEQUENCE", it refuses any other epoch with status 412.
        ids: an id for each row, a text or a whole number, or "auto" for new ones: the rows are
            durable when this returns, and wait for their labels (`label`). A call that comes again
            with the same rows and ids gets its first result. Only the head that serves takes ids.
        label, id, weight: names of columns of X that are no features; that of `id` has the ids.
        costs: what predictions cost, {true label: {predicted label: cost}}, such as
            {"fraud": {"ok": 50}}; a mistake that is not named costs 1. Those of the least expected
            cost are predicted, by the head's probabilities.
        max_lag: how many of the last seconds predictions may lack where nothing newer can be had,
            such as while a server replays a long log; otherwise, or with ids, the call waits as
            for any 503.
        """
        rows, in_column = rows_and_ids(X, Roles(label, id, weight))
        ids = in_column if ids is None else ids
        if ids is not None:
            steps = self._samples.predict_later(name, rows, head, ids, min_sequence, costs)
        else:
            steps = self._samples.predict(name, rows, head, min_sequence, costs, max_lag=max_lag)
        return self._http.run(steps)

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
        from wolfstream.service.client.session import Session
        from wolfstream.service.client.stream import Stream
        from wolfstream.service.client.stream_address import address

        at = address(self.url, name, self._key, self._timeout, self._http.trusted)
        return Stream(at, Session.of(producer, first, self._retry))
