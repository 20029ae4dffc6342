"""The clients' methods about whole models: create, describe, roll back, promote, delete."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from wolfstream.service.client.calls import Calls
from wolfstream.service.client.events import EventReader
from wolfstream.service.client.steps import Request, Retry
from wolfstream.service.client.transport import AsyncTransport, Transport


class ModelMethods:
    """The methods of `client.sync.Client` about whole models."""

    def __init__(self, transport: Transport, retry: float | None) -> None:
        """Make calls over a transport; see `client.sync.Client` for `retry`."""
        self._http, self._retry = transport, Retry(retry)
        self._calls = Calls(self._retry)

    def models(self) -> list[dict[str, Any]]:
        """List all models: name, sequence, number of features. Raises ClientError, as all calls do.

        print([model["name"] for model in client.models()])
        """
        return self._http.run(self._calls.models())

    def create(
        self, name: str, spec: Mapping[str, Any] | str | None = None, **fields: Any
    ) -> dict[str, Any]:
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
        return self._http.run(self._calls.create(name, spec, fields))

    def describe(self, name: str) -> dict[str, Any]:
        """Return a model's description: spec, sequence, and the size and scores of each head."""
        return self._http.run(self._calls.read("describe_model", name))

    def delete(self, name: str, *, if_match: str | None = None) -> None:
        """Delete a model and everything that it has learned.

        Args:
            name: of the model.
            if_match: see `learn`.
        """
        self._http.run(self._calls.delete(name, if_match))

    def upload(self, name: str, source: Any) -> dict[str, Any]:
        """Create a model that predicts as a fitted estimator does, and goes on learning.

        Args:
            name: of the model.
            source: the estimator, or the path or bytes of a model file (`wolfstream.save`).

        Raises Refused with status 409 if the name belongs to a model in another state, and 422 for
        a file that cannot be used; and what `wolfstream.save` raises.
        """
        return self._http.run(self._calls.upload(name, _model_bytes(source)))

    def download(self, name: str, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a model as an estimator that can go on learning in this process.

        Args:
            name: of the model.
            path: write a model file there instead, and return None. Every model can be written.

        Raises what `wolfstream.load` raises for a model that is not an estimator.
        """
        return _save_or_load(self._http.run(self._calls.download(name)), name, path)

    def refit(self, name: str, *, wait_seconds: float = 600.0) -> dict[str, Any]:
        """Refit a semiparametric model; return the job once it is done.

        Args:
            name: of the model.
            wait_seconds: how long to wait.

        Raises Refused if the refit failed, and NotDone after `wait_seconds`.
        """
        return self._http.run(self._calls.refit(name, wait_seconds))

    def history(self, name: str) -> dict[str, Any]:
        """Return the states that a model can be rolled back to."""
        return self._http.run(self._calls.read("list_snapshots", name))

    def rollback(self, name: str, sequence: int, *, if_match: str | None = None) -> dict[str, Any]:
        """Roll a model back to a sequence. The call is not repeated after a lost response.

        Args:
            name: of the model.
            sequence: of one of the states in `history`.
            if_match: see `learn`.
        """
        return self._http.run(self._calls.rollback(name, sequence, if_match))

    def challengers(self, name: str) -> dict[str, Any]:
        """Compare the models that follow this one with it, on the same samples."""
        return self._http.run(self._calls.read("list_challengers", name))

    def promote(self, name: str, challenger: str, *, if_match: str | None = None) -> dict[str, Any]:
        """Exchange the specs and states of a model and its challenger; return its description.

        The call is not repeated after a lost response.

        Args:
            name: of the model.
            challenger: name of a model that follows it.
            if_match: see `learn`.
        """
        return self._http.run(self._calls.promote(name, challenger, if_match))

    def metrics_history(self, name: str) -> dict[str, Any]:
        """Return a model's numbers over the last hours: `time`, and `numbers` by their names."""
        return self._http.run(self._calls.read("metrics_history", name))

    def events(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield a model's state once a second, as GET .../events does, until it is deleted.

        A lost connection is opened again, for at most `retry` seconds. States that were missed
        within the last half minute come first.
        """
        return self._http.events(EventReader(name, self._retry))

    def snapshot(self, name: str) -> dict[str, Any]:
        """Have the server write a snapshot of a model."""
        return self._http.run(self._calls.read("take_snapshot", name))

    def ask(self, request: Request, retry: float | None = None) -> dict[str, Any]:
        """Return the response to any other request.

        Args:
            request: to send.
            retry: as of the client; None for the client's own.
        """
        calls = self._calls if retry is None else Calls(Retry(retry))
        return self._http.run(calls.ask(request))


class AsyncModelMethods:
    """The methods of `client.aio.AsyncClient` about whole models; see `ModelMethods`."""

    def __init__(self, transport: AsyncTransport, retry: float | None) -> None:
        """Make calls over a transport; see `client.sync.Client` for `retry`."""
        self._http, self._retry = transport, Retry(retry)
        self._calls = Calls(self._retry)

    async def models(self) -> list[dict[str, Any]]:
        """List all models: name, sequence, number of features."""
        return await self._http.run(self._calls.models())

    async def create(
        self, name: str, spec: Mapping[str, Any] | str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Create a model and return its description; leave one with the same spec as it is."""
        return await self._http.run(self._calls.create(name, spec, fields))

    async def describe(self, name: str) -> dict[str, Any]:
        """Return a model's description: spec, sequence, and the size and scores of each head."""
        return await self._http.run(self._calls.read("describe_model", name))

    async def delete(self, name: str, *, if_match: str | None = None) -> None:
        """Delete a model and everything that it has learned."""
        await self._http.run(self._calls.delete(name, if_match))

    async def upload(self, name: str, source: Any) -> dict[str, Any]:
        """Create a model that predicts as a fitted estimator does, and goes on learning."""
        content = await asyncio.to_thread(_model_bytes, source)
        return await self._http.run(self._calls.upload(name, content))

    async def download(self, name: str, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a model as an estimator, or write a model file."""
        content = await self._http.run(self._calls.download(name))
        return await asyncio.to_thread(_save_or_load, content, name, path)

    async def refit(self, name: str, *, wait_seconds: float = 600.0) -> dict[str, Any]:
        """Refit a semiparametric model; return the job once it is done."""
        return await self._http.run(self._calls.refit(name, wait_seconds))

    async def history(self, name: str) -> dict[str, Any]:
        """Return the states that a model can be rolled back to."""
        return await self._http.run(self._calls.read("list_snapshots", name))

    async def rollback(
        self, name: str, sequence: int, *, if_match: str | None = None
    ) -> dict[str, Any]:
        """Roll a model back to a sequence. The call is not repeated after a lost response."""
        return await self._http.run(self._calls.rollback(name, sequence, if_match))

    async def challengers(self, name: str) -> dict[str, Any]:
        """Compare the models that follow this one with it, on the same samples."""
        return await self._http.run(self._calls.read("list_challengers", name))

    async def promote(
        self, name: str, challenger: str, *, if_match: str | None = None
    ) -> dict[str, Any]:
        """Exchange the specs and states of a model and its challenger; return its description.

        The call is not repeated after a lost response.
        """
        return await self._http.run(self._calls.promote(name, challenger, if_match))

    async def metrics_history(self, name: str) -> dict[str, Any]:
        """Return a model's numbers over the last hours: `time`, and `numbers` by their names."""
        return await self._http.run(self._calls.read("metrics_history", name))

    def events(self, name: str) -> AsyncIterator[dict[str, Any]]:
        """Yield a model's state once a second until it is deleted."""
        return self._http.events(EventReader(name, self._retry))

    async def snapshot(self, name: str) -> dict[str, Any]:
        """Have the server write a snapshot of a model."""
        return await self._http.run(self._calls.read("take_snapshot", name))

    async def ask(self, request: Request, retry: float | None = None) -> dict[str, Any]:
        """Return the response to any other request."""
        calls = self._calls if retry is None else Calls(Retry(retry))
        return await self._http.run(calls.ask(request))


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
    from wolfstream.service.notebook.files import encode

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
        partial.write_bytes(content)
        partial.replace(path)
        return None
    from wolfstream.service.notebook.files import decode

    return decode(content, f"the model {name!r}")
