"""Calls about models as steps: requests, when they are sent again, what responses mean."""

from collections.abc import Mapping
from typing import Any

from wolfstream.service.client.errors import ClientError, NotDone, Refused
from wolfstream.service.client.sender import Sender, if_match_header
from wolfstream.service.client.steps import Backoff, Pause, Steps
from wolfstream.service.client.wire import OCTETS, decode_octets, decode_reply, pack, request_of

_TASKS = ("classification", "regression")
# Seconds between two looks at a job; they grow by half each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Calls(Sender):
    """The calls about models."""

    def read(self, call: str, name: str = "", job: str = "") -> Steps[dict[str, Any]]:
        """Return the response to a call without a body. name, job: see `wire.call_path`."""
        return self.ask(request_of(call, name, job=job))

    def models(self) -> Steps[list[dict[str, Any]]]:
        """List all models."""
        response = yield from self.read("list_models")
        return list(response.get("models", []))

    def create(
        self, name: str, spec: Mapping[str, Any] | str | None, fields: Mapping[str, Any]
    ) -> Steps[dict[str, Any]]:
        """Create a model and return its description.

        Args:
            name: of the model.
            spec: a dict, a task, or None.
            fields: of the spec, which replace those in `spec`.

        Raises ValueError, TypeError.
        """
        body = pack({**_read_spec(spec), **fields})
        return self.ask(request_of("create_model", name, body))

    def upload(self, name: str, content: bytes) -> Steps[dict[str, Any]]:
        """Create a model from the bytes of a model file; safe to send again."""
        headers = {"content-type": OCTETS}
        return self.ask(request_of("upload_state", name, content, headers=headers))

    def download(self, name: str) -> Steps[bytes]:
        """Return a model as the bytes of a model file."""
        headers = {"accept": f"{OCTETS}, application/problem+json"}
        request = request_of("download_state", name, headers=headers)
        return self.send(request, decode_octets)

    def delete(self, name: str, if_match: str | None = None) -> Steps[None]:
        """Delete a model. After a lost response, 404 means that the first attempt succeeded."""
        request = request_of("delete_model", name, headers=if_match_header(if_match))
        backoff, tries = Backoff(self.retry), 0
        while True:
            tries += 1
            try:
                reply = yield request
                backoff.record_answer()
                decode_reply(request, reply)
                return
            except ClientError as error:
                if tries > 1 and isinstance(error, Refused) and error.status == 404:
                    return
                pause = backoff.pause(error)
            yield pause

    def refit(self, name: str, wait_seconds: float) -> Steps[dict[str, Any]]:
        """Refit and return the job once it is done. Raises Refused if it failed, and NotDone."""
        job = yield from self.read("refit", name)
        pause, waited = _FIRST_PAUSE, 0.0
        while job["status"] not in ("done", "failed"):
            if waited >= wait_seconds:
                raise NotDone(job)
            yield Pause(pause)
            waited, pause = waited + pause, min(_LONGEST_PAUSE, 1.5 * pause)
            job = yield from self.read("describe_job", name, job=job["job"])
        if job["error"]:
            raise Refused(job["error"].get("status", 0), job["error"])
        return job

    def rollback(
        self, name: str, sequence: int, if_match: str | None = None
    ) -> Steps[dict[str, Any]]:
        """Roll back and return the outcome. Never sent twice: the model may have learned since."""
        body, headers = pack({"sequence": sequence}), if_match_header(if_match)
        return self.ask(request_of("roll_back_model", name, body, headers=headers))

    def promote(
        self, name: str, challenger: str, if_match: str | None = None
    ) -> Steps[dict[str, Any]]:
        """Promote a challenger. Never sent twice: the second time would exchange the two back."""
        body, headers = pack({"model": challenger}), if_match_header(if_match)
        return self.ask(request_of("promote_model", name, body, headers=headers))


def _read_spec(spec: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    if isinstance(spec, str):
        if spec not in _TASKS:
            tasks = " or ".join(map(repr, _TASKS))
            raise ValueError(f"{spec!r:.60} is no task: say {tasks}, or give a spec as a dict")
        return {"task": spec}
    if spec is not None and not isinstance(spec, Mapping):
        raise TypeError(f'a spec is a dict, such as {{"task": "regression"}}, not {spec!r:.60}')
    return spec or {}
