"""Reads a model's events, without the connection: lines in, states out."""

import json
from typing import Any

from wolfstream.service.client.errors import AnswerLost, ClientError
from wolfstream.service.client.steps import Backoff, Pause, Reply, Request, Retry
from wolfstream.service.client.wire import call_path, decode_reply, plain, request_of

# The reason that a stopping server gives; after a restart the events go on.
_STOPPING = "stopping"


class EventReader:
    """The events of one model, over as many connections as it takes.

    Attributes:
        ended: whether there will be no more events: the model was deleted, or the key revoked.
    """

    def __init__(self, name: str, retry: Retry) -> None:
        """Begin with the newest event.

        Args:
            name: of the model.
            retry: how long a lost connection is tried again.
        """
        self.ended = False
        self._name = name
        self._backoff = Backoff(retry)
        self._last_id: str | None = None  # of the last event
        self._event: dict[str, str] = {}  # fields of the event that is being read

    def request(self) -> Request:
        """Return the request for the events after the last one."""
        self._event = {}
        headers = {} if self._last_id is None else {"last-event-id": self._last_id}
        return request_of("events", self._name, headers=headers)

    def check(self, reply: Reply) -> None:
        """Handle a reply other than 200, whose body was read. Raises Refused.

        If the model has had events before and is not found now, it was deleted: that is the end.
        """
        self._backoff.record_answer()
        if reply.status == 404 and self._last_id is not None:
            self.ended = True
        else:
            decode_reply(request_of("events", self._name), reply)

    def take(self, line: str) -> dict[str, Any] | None:
        """Take a line; return the state that it completes, or None."""
        if line:
            name, _, value = line.partition(": ")
            self._event[name] = value
            return None
        event, self._event = self._event, {}
        data = plain(json.loads, event.get("data", ""))
        if data is None:
            return None
        if event.get("event") == "end":
            self.ended = data.get("reason") != _STOPPING
            return None
        self._last_id = event.get("id", self._last_id)
        self._backoff.reset()
        return data if event.get("event") == "state" else None

    def pause(self, error: ClientError | None = None) -> Pause:
        """Return the pause before the next connection; raise the error if there is to be none."""
        return self._backoff.pause(error or AnswerLost(f"{call_path('events', self._name)} ended"))
