"""The blocking client of a running server.

    with Client("http://127.0.0.1:8000") as client:
        client.create("rooms")
        client.learn("rooms", X, y)
        print(client.predict("rooms", X).predictions)

`client.aio.AsyncClient` has the same methods, to be awaited. Each call is written once, as steps
(`client.calls`, `client.sample_calls`, `client.session`), which both clients carry out
(`client.transport`).

Samples are sent with an Idempotency-Key. So a call is repeated if its connection broke, its
response was lost or the server had no room, and each sample is still learned once. `client.errors`
has the errors that remain.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from wolfstream.service.client.batches import rows_and_ids, split_roles
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

    Args:
        url: such as http://127.0.0.1:8000, or https://...
        key: an API key, if the server needs one.
        timeout: seconds without a response after which a connection counts as lost.
        retry: seconds for which a failing call is repeated, from its first failure, also while
            there is no server yet. For a stream, or a call of many batches, from the first failure
            since something succeeded. By default 60, but the first call fails at once if there is
            no server. Retrying for more than a second logs a warning that says until when.
        verify: for https: a file or folder of certificates to trust, or an SSLContext. True trusts
            public authorities, False trusts any certificate.

    Attributes:
        url: of the server.
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
        roles, weight = split_roles(label, id, weight)
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
        rows, column_ids = rows_and_ids(X, Roles(label, id, weight))
        ids = column_ids if ids is None else ids
        if ids is not None:
            steps = self._samples.predict_later(name, rows, head, ids, min_sequence, costs)
        else:
            steps = self._samples.predict(name, rows, head, min_sequence, costs, max_lag=max_lag)
        return self._http.run(steps)

    def label(
        self, name: str, ids: Any, y: Any, *, batch: int = 1024, if_match: str | None = None
    ) -> Labelled:
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
        return self._http.run(self._samples.label(name, ids, y, batch, if_match))

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
    ) -> Predictions:
        """Return predictions with probabilities, or with standard deviations for a regression.

        Args are those of `predict`. Raises Refused while no label has tested the head's
        calibration.
        """
        rows, _ = rows_and_ids(X, Roles(label, id, weight))
        return self._http.run(
            self._samples.predict(name, rows, head, min_sequence, probability=True)
        )

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
    ) -> Predictions:
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
        rows, _ = rows_and_ids(X, Roles(label, id, weight))
        steps = self._samples.predict(name, rows, head, min_sequence, confidence=confidence)
        return self._http.run(steps)

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
    ) -> Predictions:
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
    ) -> Predictions:
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
        rows, _ = rows_and_ids(X, Roles(label, id, weight))
        return self._http.run(self._samples.predict(name, rows, head, min_sequence, explain=most))

    def stream(
        self, name: str, producer: str | None = None, *, first: int | None = None
    ) -> "Stream":
        """Return a stream to a model, for a `with` statement.

            with client.stream("rooms") as stream:
                for result in stream.learn_each(samples):
                    print(result.sequence)

        Args:
            name: of the model.
            producer: a name for this source of samples, which makes the numbers of its requests
                idempotency keys. By default the stream makes its own name.
            first: number of the first request, from 1. A source that restarts and continues gives
                its name and the number after the last request that it knows to be acknowledged:
                requests that were learned get their first response, and are not learned again. By
                default the numbers are new each time.
        """
        from wolfstream.service.client.session import Session
        from wolfstream.service.client.stream import Stream
        from wolfstream.service.client.stream_address import stream_address

        address = stream_address(self.url, name, self._key, self._timeout, self._http.tls_context)
        return Stream(address, Session.begin(producer, first, self._retry))
