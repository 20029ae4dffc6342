"""A model's events as a listener reads them: lines in, states out, without the connection."""

import json
from typing import Any

from wolfstream.service.client.errors import AnswerLost, ClientError
from wolfstream.service.client.steps import Patience, Pause, Reply, Request, Retry
from wolfstream.service.client.wire import call_path, decode_reply, plain, request_of

# The reason of a stopping server; another one, or the restarted one, may continue.
_STOPPING = "stopping"


class EventReader:
    """The events of one model, over as many connections as it takes.

    ended: whether nothing more comes: the model was deleted, or the key is no longer in force.
    retry: see `client.session.Session`.
    """

    def __init__(self, name: str, retry: Retry) -> None:
        self.ended = False
        self._name = name
        self._patience = Patience(retry)
        self._last_id: str | None = None
        self._event: dict[str, str] = {}

    def request(self) -> Request:
        """Return the request that goes on after the last event."""
        self._event = {}
        headers = {} if self._last_id is None else {"last-event-id": self._last_id}
        return request_of("events", self._name, headers=headers)

    def check(self, reply: Reply) -> None:
        """Raise Refused for a reply other than 200, which has been read whole.

        A model that was there and is no longer was deleted in the meantime: that is the end.
        """
        self._patience.answered()
        if reply.status == 404 and self._last_id is not None:
            self.ended = True
        else:
            decode_reply(request_of("events", self._name), reply)

    def take(self, line: str) -> dict[str, Any] | None:
        """Return the state that a line completes, if it does."""
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
        self._patience.renew()
        return data if event.get("event") == "state" else None

    def again(self, error: ClientError | None = None) -> Pause:
        """Return the pause before the next connection; raise the error if there will be none."""
        return self._patience.pause(error or AnswerLost(f"{call_path('events', self._name)} ended"))
