"""A blocking websocket that carries out the steps of a stream."""

import time
from contextlib import ExitStack
from typing import Any, TypeVar
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from wolfstream.service.client.errors import AnswerLost
from wolfstream.service.client.steps import Connect, Effect, Pause, Receive, Steps, Transmit, run
from wolfstream.service.client.stream_address import Address, check_subprotocol, lost, not_opened

T = TypeVar("T")


class Socket:
    """Carries a session's steps out over a blocking websocket."""

    def __init__(self, at: Address) -> None:
        self._at = at
        self._stack = ExitStack()
        self._open: ClientConnection | None = None

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
                return self._connect(f"{self._at.url}?{urlencode(query)}")
            case Transmit(message):
                return self._transmit(message)
            case Receive():
                return self._receive()
        raise AssertionError(f"a stream does not do {effect}")

    def _connect(self, url: str) -> str | bytes:
        self.close()
        try:
            self._open = self._stack.enter_context(connect(url, **self._at.options))
        except (OSError, InvalidHandshake, EOFError, ConnectionClosed) as error:
            raise not_opened(self._at.url, error) from None
        check_subprotocol(self._at.url, self._open.subprotocol)
        return self._receive()

    def _transmit(self, message: bytes) -> None:
        assert self._open is not None
        try:
            self._open.send(message)
        except ConnectionClosed as error:
            raise lost(self._at.url, error) from None

    def _receive(self) -> str | bytes:
        assert self._open is not None
        try:
            return self._open.recv(timeout=self._at.timeout)
        except ConnectionClosed as error:
            raise lost(self._at.url, error) from None
        except TimeoutError:
            raise AnswerLost(f"{self._at.url} sent nothing for {self._at.timeout:g} s") from None
