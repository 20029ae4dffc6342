"""Calls about models as steps: requests, when they are sent again, what responses mean."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wolfstream.service.client.errors import ClientError, NotDone, Refused
from wolfstream.service.client.sender import Sender, if_match_header
from wolfstream.service.client.steps import Backoff, Pause, Steps, Work
from wolfstream.service.client.wire import OCTETS, decode_octets, decode_reply, pack, request_of

_TASKS = ("classification", "regression")
# Seconds between two looks at a job; they grow by half each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class ModelCalls(Sender):
    """The calls that create, describe, roll back, promote and delete models."""

    def models(self) -> Steps[list[dict[str, Any]]]:
        """List all models, each a dict of `model`, `sequence`, `epoch`, `status` and `features`.

        Raises ClientError, as all calls do.

            print([model["model"] for model in client.models()])

        `model` is the name.
        """
        response = yield from self._read("list_models")
        return list(response.get("models", []))

    def create(
        self, /, name: str, spec: Mapping[str, Any] | str | None = None, **fields: Any
    ) -> Steps[dict[str, Any]]:
        """Create a model and return its description; leave one with the same spec as it is.

            client.create("rooms")
            client.create("prices", "regression")
            client.create("mail", adaptive=None, seed=7)

        Args:
            name: of the model.
            spec: a dict; or a task, such as "regression", for its default model.
            fields: fields of the spec.

        Raises Refused with status 409 if the name belongs to a model with another spec.
        """
        body = pack({**_read_spec(spec), **fields})
        return self.ask(request_of("create_model", name, body))

    def describe(self, name: str) -> Steps[dict[str, Any]]:
        """Return a model's description: spec, sequence, and the size and scores of each head."""
        return self._read("describe_model", name)

    def delete(self, name: str, *, if_match: str | None = None) -> Steps[None]:
        """Delete a model and everything that it has learned.

        Args:
            name: of the model.
            if_match: see `learn`.
        """
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
                # The model is gone, so an earlier attempt succeeded, whose response was lost.
                if tries > 1 and isinstance(error, Refused) and error.status == 404:
                    return
                pause = backoff.pause(error)
            yield pause

    def upload(self, name: str, source: Any) -> Steps[dict[str, Any]]:
        """Create a model that predicts as a fitted estimator does, and goes on learning.

        Args:
            name: of the model.
            source: the estimator, or the path or bytes of a model file (`wolfstream.save`).

        Raises Refused with status 409 if the name belongs to a model in another state, and 422 for
        a file that cannot be used; and what `wolfstream.save` raises.
        """
        content = yield Work(lambda: _model_bytes(source))
        headers = {"content-type": OCTETS}
        request = request_of("upload_state", name, content, headers=headers)
        return (yield from self.ask(request))

    def download(self, name: str, path: str | os.PathLike[str] | None = None) -> Steps[Any]:
        """Return a model as an estimator that can go on learning in this process.

        Args:
            name: of the model.
            path: write a model file there instead, and return None. Every model can be written.

        Raises what `wolfstream.load` raises for a model that is not an estimator.
        """
        headers = {"accept": f"{OCTETS}, application/problem+json"}
        request = request_of("download_state", name, headers=headers)
        content = yield from self.send(request, decode_octets)
        return (yield Work(lambda: _save_or_load(content, name, path)))

    def refit(self, name: str, *, wait_seconds: float = 600.0) -> Steps[dict[str, Any]]:
        """Refit a semiparametric model; return the job once it is done.

        Args:
            name: of the model.
            wait_seconds: how long to wait.

        Raises Refused if the refit failed, and NotDone after `wait_seconds`.
        """
        job = yield from self._read("refit", name)
        pause, waited = _FIRST_PAUSE, 0.0
        while job["status"] not in ("done", "failed"):
            if waited >= wait_seconds:
                raise NotDone(job)
            yield Pause(pause)
            waited, pause = waited + pause, min(_LONGEST_PAUSE, 1.5 * pause)
            job = yield from self._read("describe_job", name, job=job["job"])
        if job["error"]:
            raise Refused(job["error"].get("status", 0), job["error"])
        return job

    def history(self, name: str) -> Steps[dict[str, Any]]:
        """Return the states that a model can be rolled back to."""
        return self._read("list_snapshots", name)

    def rollback(
        self, name: str, sequence: int, *, if_match: str | None = None
    ) -> Steps[dict[str, Any]]:
        """Roll a model back to a sequence. The call is not repeated after a lost response.

        Args:
            name: of the model.
            sequence: of one of the states in `history`.
            if_match: see `learn`.
        """
        body, headers = pack({"sequence": sequence}), if_match_header(if_match)
        return self.ask(request_of("roll_back_model", name, body, headers=headers))

    def challengers(self, name: str) -> Steps[dict[str, Any]]:
        """Compare the models that follow this one with it, on the same samples."""
        return self._read("list_challengers", name)

    def promote(
        self, name: str, challenger: str, *, if_match: str | None = None
    ) -> Steps[dict[str, Any]]:
        """Exchange the specs and states of a model and its challenger; return its description.

        The call is not repeated after a lost response.

        Args:
            name: of the model.
            challenger: name of a model that follows it.
            if_match: see `learn`.
        """
        body, headers = pack({"model": challenger}), if_match_header(if_match)
        return self.ask(request_of("promote_model", name, body, headers=headers))

    def metrics_history(self, name: str) -> Steps[dict[str, Any]]:
        """Return a model's numbers over the last hours: `time`, and `numbers` by their names."""
        return self._read("metrics_history", name)

    def snapshot(self, name: str) -> Steps[dict[str, Any]]:
        """Have the server write a snapshot of a model."""
        return self._read("take_snapshot", name)

    def _read(self, call: str, name: str = "", job: str = "") -> Steps[dict[str, Any]]:
        """Return the response to a call without a body. name, job: see `wire.call_path`."""
        return self.ask(request_of(call, name, job=job))


def _read_spec(spec: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    if isinstance(spec, str):
        if spec not in _TASKS:
            tasks = " or ".join(map(repr, _TASKS))
            raise ValueError(f"{spec!r:.60} is no task: say {tasks}, or give a spec as a dict")
        return {"task": spec}
    if spec is not None and not isinstance(spec, Mapping):
        raise TypeError(f'a spec is a dict, such as {{"task": "regression"}}, not {spec!r:.60}')
    return spec or {}


def _model_bytes(source: Any) -> bytes:
    """Return a model file's bytes.

    Args:
        source: a path, a fitted estimator, or the bytes.

    Raises what `wolfstream.save` raises, OSError.
    """
    if isinstance(source, bytes):
        return source
    if isinstance(source, str | os.PathLike):
        return Path(source).read_bytes()
    # The numerics are imported only for an estimator.
    from wolfstream.service.offline.estimator_files import encode

    return encode(source)


def _save_or_load(content: bytes, name: str, path: str | os.PathLike[str] | None) -> Any:
    """Write a model file, or return the estimator in it.

    Args:
        content: bytes of the model file.
        name: of the model, for messages.
        path: to write to; None returns the estimator.

    Raises what `wolfstream.load` raises, OSError.
    """
    if path is not None:
        partial = Path(f"{os.fspath(path)}.partial")
        try:
            partial.write_bytes(content)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return None
    from wolfstream.service.offline.estimator_files import decode

    return decode(content, f"the model {name!r}")
