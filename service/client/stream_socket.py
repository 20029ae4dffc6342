"""Carries out the steps of a stream over a blocking websocket."""

import time
from contextlib import ExitStack
from typing import Any, TypeVar
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from wolfstream.service.client.errors import AnswerLost
from wolfstream.service.client.first_answer import FirstAnswer
from wolfstream.service.client.steps import Connect, Effect, Pause, Receive, Steps, Transmit, run
from wolfstream.service.client.stream_address import (
    Address,
    check_subprotocol,
    lost_connection,
    opening_error,
)

T = TypeVar("T")


class Socket:
    """A blocking websocket that is opened, and replaced, as the steps of a session say."""

    def __init__(self, address: Address) -> None:
        """Begin without a connection; see `Connect`."""
        self._address = address
        self._first_answer = FirstAnswer(address.url, address.options["open_timeout"])
        self._stack = ExitStack()  # closes the connection
        self._connection: ClientConnection | None = None

    def run(self, steps: Steps[T]) -> T:
        """Carry out the steps and return their result."""
        return run(steps, self._do)

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._stack.close()

    def _do(self, effect: Effect) -> Any:
        match effect:
            case Pause(seconds):
                return time.sleep(seconds)
            case Connect(query):
                return self._connect(f"{self._address.url}?{urlencode(query)}")
            case Transmit(message):
                return self._transmit(message)
            case Receive():
                return self._receive()
        raise AssertionError(f"a stream does not do {effect}")

    def _connect(self, url: str) -> str | bytes:
        self.close()
        try:
            with self._first_answer.awaited():
                opening = connect(url, **self._address.options)
                self._connection = self._stack.enter_context(opening)
        except (OSError, InvalidHandshake, EOFError, ConnectionClosed) as error:
            raise opening_error(self._address.url, error) from None
        check_subprotocol(self._address.url, self._connection.subprotocol)
        return self._receive()

    def _transmit(self, message: bytes) -> None:
        assert self._connection is not None
        try:
            self._connection.send(message)
        except ConnectionClosed as error:
            raise lost_connection(self._address.url, error) from None

    def _receive(self) -> str | bytes:
        assert self._connection is not None
        try:
            return self._connection.recv(timeout=self._address.timeout)
        except ConnectionClosed as error:
            raise lost_connection(self._address.url, error) from None
        except TimeoutError:
            raise AnswerLost(
                f"{self._address.url} sent nothing for {self._address.timeout:g} s"
            ) from None
