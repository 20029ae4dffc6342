"""A client of a running server, and of its stream, for programs in Python.

    with Client("http://127.0.0.1:8000") as client:
        client.create("rooms")
        client.learn("rooms", X, y)
        print(client.predict("rooms", X).predictions)

`AsyncClient` has the same methods to be awaited. What a call does is written once, as steps
(`client_calls`, `client_session`); the clients carry them out. Everything that teaches goes out
under a key (Idempotency-Key), so a call whose connection broke, whose answer was lost or that the
server had no room for is tried again, and still learned once. `client_errors` has what remains.
"""

import time
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from service.client_async import AsyncClient
from service.client_calls import Calls
from service.client_errors import AnswerLost, ClientError, NotDone, Refused, Unreachable
from service.client_results import Learned, Predictions
from service.client_steps import Effect, Pause, Reply, Request, Steps, run
from service.client_wire import (
    ANSWER_SECONDS,
    RETRY_SECONDS,
    Verify,
    check_url,
    connection_options,
    failed,
    headers_of,
    model_path,
    trusted,
)

# websockets is imported when there is a stream.
if TYPE_CHECKING:
    from service.client_stream import Stream

__all__ = [
    "AnswerLost",
    "AsyncClient",
    "Client",
    "ClientError",
    "Learned",
    "NotDone",
    "Predictions",
    "Refused",
    "Unreachable",
]

T = TypeVar("T")


class Client:
    """A server. Threads may share it; `close` it, or use it in a `with` statement.

    url: such as http://127.0.0.1:8000, or https://...
    key: where the server asks for one.
    timeout: seconds for which an answer is waited for before its connection counts as lost.
    retry_seconds: for which a call that fails is tried again, counted from its first failure
        (for a stream or a call of many batches, from the first since something succeeded).
    verify: for https: the certificates to trust, as a file, a folder or an SSLContext; False for
        any. True trusts public authorities.
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
        self.url = check_url(url)
        self._key, self._timeout, self._retry_seconds = key, timeout, retry_seconds
        self._trusted = trusted(self.url, verify)
        self._calls = Calls(retry_seconds)
        self._http = httpx.Client(**connection_options(self.url, key, timeout, self._trusted))

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
        """All models: name, sequence, number of features. Raises ClientError, as all calls do."""
        return self._run(self._calls.models())

    def create(
        self, name: str, spec: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Create a model of a spec, or of its fields, or find it with this spec; its description.

        Raises Refused with status 409 where the name belongs to a model of another spec.
        """
        return self._run(self._calls.create(name, spec, fields))

    def describe(self, name: str) -> dict[str, Any]:
        """A model: its spec, its sequence and how each head stands."""
        return self._run(self._calls.get(model_path(name)))

    def delete(self, name: str) -> None:
        """Forget a model and all that it learned."""
        self._run(self._calls.delete(name))

    def learn(
        self,
        name: str,
        X: Any,
        y: Any = None,
        *,
        head: str = "samples",
        batch: int = 1024,
        idempotency_key: str | None = None,
    ) -> Learned:
        """Let a model learn samples, in order, each once; durable when this returns.

        X, y: an array (n, d) or nested lists, or a list of rows of named numbers, and n labels
            or numbers; one row and its label; or two iterables. Without y, pairs of both.
        head: "samples" feeds the working set, or the window of a semiparametric model; "asset".
        batch: samples in a request at most. Each is learned as a whole or not at all.
        idempotency_key: a call with the key of an earlier one goes on with it, and learns
            nothing twice; made up where there is none.

        Raises ClientError, which says how many samples were `acknowledged`; ValueError and
        TypeError for what is no samples.
        """
        return self._run(self._calls.learn(name, X, y, head, batch, idempotency_key))

    def predict(
        self, name: str, X: Any, *, head: str | None = None, min_sequence: int | None = None
    ) -> Predictions:
        """What a head says of rows, or of one; by default the head that serves.

        min_sequence: the model has learned at least so many samples, or the server waits.
        """
        return self._run(self._calls.predict(name, X, head, min_sequence))

    def refit(self, name: str, *, wait_seconds: float = 600.0) -> dict[str, Any]:
        """Refit a semiparametric model and wait; the job once it is done.

        Raises Refused where the refit failed, NotDone after `wait_seconds`.
        """
        return self._run(self._calls.refit(name, wait_seconds))

    def history(self, name: str) -> dict[str, Any]:
        """The states that a model can go back to."""
        return self._run(self._calls.get(model_path(name, "history")))

    def rollback(self, name: str, sequence: int) -> dict[str, Any]:
        """Take a model back to a sequence. It is not tried again where the answer is lost."""
        return self._run(self._calls.rollback(name, sequence))

    def snapshot(self, name: str) -> dict[str, Any]:
        """Have the server write a snapshot of a model."""
        return self._run(self._calls.snapshot(name))

    def stream(self, name: str, producer: str | None = None, *, first: int = 1) -> "Stream":
        """A stream to a model, to be used in a `with` statement.

        producer, first: a name for this source of samples, and the number of its first request.
            A source that begins again gives its name and the number of the request up to which
            it knows to be acknowledged, plus one: what was learned already is answered again.
            Without a name it is one of its own.
        """
        from service.client_session import Session
        from service.client_stream import Stream, address

        at = address(self.url, name, self._key, self._timeout, self._trusted)
        return Stream(at, Session(producer or uuid.uuid4().hex, first, self._retry_seconds))

    def ask(self, request: Request, retry_seconds: float | None = None) -> dict[str, Any]:
        """The answer to a request that has no method of its own. Raises ClientError."""
        calls = self._calls if retry_seconds is None else Calls(retry_seconds)
        return self._run(calls.ask(request))

    def _run(self, steps: Steps[T]) -> T:
        return run(steps, self._do)

    def _do(self, effect: Effect) -> Reply | None:
        if isinstance(effect, Pause):
            time.sleep(effect.seconds)
            return None
        assert isinstance(effect, Request)
        try:
            response = self._http.request(
                effect.method,
                effect.path,
                content=effect.body,
                params=effect.query,
                headers=headers_of(effect),
            )
        except httpx.RequestError as error:
            raise failed(self.url, error) from None
        reason, headers = response.reason_phrase, response.headers
        return Reply(response.status_code, reason, headers, response.content)
