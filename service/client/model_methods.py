"""The methods of clients on whole models: create, describe, go back, promote, delete."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from wolfstream.service.client.calls import Calls
from wolfstream.service.client.events import EventReader
from wolfstream.service.client.portable import content_of, made_of
from wolfstream.service.client.steps import Request, Retry
from wolfstream.service.client.transport import AsyncTransport, Transport


class ModelMethods:
    """The methods of `client.sync.Client` on whole models."""

    def __init__(self, transport: Transport, retry: float | None) -> None:
        self._http, self._retry = transport, Retry(retry)
        self._calls = Calls(self._retry)

    def models(self) -> list[dict[str, Any]]:
        """List all models: name, sequence, number of features. Raises ClientError, as all calls."""
        return self._http.run(self._calls.models())

    def create(
        self, name: str, spec: Mapping[str, Any] | str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Create a model from a spec, or from its fields, and return its description.

        spec: a dict; or a task, "regression", for the default model of that task.

        A model that exists with the same spec is left as it is. Raises Refused with status 409
        where the name belongs to a model of another spec.
        """
        return self._http.run(self._calls.create(name, spec, fields))

    def describe(self, name: str) -> dict[str, Any]:
        """Return a model's description: spec, sequence, and the size and scores of each head."""
        return self._http.run(self._calls.read("describe_model", name))

    def delete(self, name: str, *, if_match: str | None = None) -> None:
        """Delete a model and everything that it has learned. if_match: see `learn`."""
        self._http.run(self._calls.delete(name, if_match))

    def upload(self, name: str, source: Any) -> dict[str, Any]:
        """Make a new model that answers as a fitted estimator does, and goes on learning.

        source: the estimator, or the path or the bytes of a model file (`wolfstream.save`).

        Raises Refused with status 409 where the name belongs to a model in another state, 422 for
        a file that cannot be used, and what `wolfstream.save` raises for the estimator.
        """
        return self._http.run(self._calls.upload(name, content_of(source)))

    def download(self, name: str, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a model as an estimator, which goes on learning in this process.

        path: of a model file to be written instead; nothing is returned then, and every model
            has a file. Raises what `wolfstream.load` raises for a model that is no estimator.
        """
        return made_of(self._http.run(self._calls.download(name)), name, path)

    def refit(self, name: str, *, wait_seconds: float = 600.0) -> dict[str, Any]:
        """Refit a semiparametric model, wait, and return the job when it is done.

        Raises Refused if the refit failed, and NotDone after `wait_seconds`.
        """
        return self._http.run(self._calls.refit(name, wait_seconds))

    def history(self, name: str) -> dict[str, Any]:
        """Return the states that a model can be rolled back to."""
        return self._http.run(self._calls.read("list_snapshots", name))

    def rollback(self, name: str, sequence: int, *, if_match: str | None = None) -> dict[str, Any]:
        """Roll a model back to a sequence. The call is not retried after a lost response.

        if_match: see `learn`.
        """
        return self._http.run(self._calls.rollback(name, sequence, if_match))

    def challengers(self, name: str) -> dict[str, Any]:
        """Compare the models that follow this one with it, on the same samples."""
        return self._http.run(self._calls.read("list_challengers", name))

    def promote(self, name: str, challenger: str, *, if_match: str | None = None) -> dict[str, Any]:
        """Exchange spec and state of a model and its challenger; the model's description.

        if_match: see `learn`. The call is not retried after a lost response.
        """
        return self._http.run(self._calls.promote(name, challenger, if_match))

    def metrics_history(self, name: str) -> dict[str, Any]:
        """Return a model's numbers over the last hours: `time`, and `numbers` by their names."""
        return self._http.run(self._calls.read("metrics_history", name))

    def events(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield a model's state once a second, from now on, as GET .../events describes it.

        A lost connection is opened again, for at most `retry` seconds; what came meanwhile
        comes first, if it was within half a minute. It ends when the model is deleted.
        """
        return self._http.events(EventReader(name, self._retry))

    def snapshot(self, name: str) -> dict[str, Any]:
        """Have the server write a snapshot of a model."""
        return self._http.run(self._calls.snapshot(name))

    def ask(self, request: Request, retry: float | None = None) -> dict[str, Any]:
        """Return the response to any other request. Raises ClientError."""
        calls = self._calls if retry is None else Calls(Retry(retry))
        return self._http.run(calls.ask(request))


class AsyncModelMethods:
    """The methods of `client.aio.AsyncClient` on whole models; see `ModelMethods`."""

    def __init__(self, transport: AsyncTransport, retry: float | None) -> None:
        self._http, self._retry = transport, Retry(retry)
        self._calls = Calls(self._retry)

    async def models(self) -> list[dict[str, Any]]:
        """List all models: name, sequence, number of features."""
        return await self._http.run(self._calls.models())

    async def create(
        self, name: str, spec: Mapping[str, Any] | str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Create a model from a spec, or from its fields, and return its description."""
        return await self._http.run(self._calls.create(name, spec, fields))

    async def describe(self, name: str) -> dict[str, Any]:
        """Return a model's description: spec, sequence, and the size and scores of each head."""
        return await self._http.run(self._calls.read("describe_model", name))

    async def delete(self, name: str, *, if_match: str | None = None) -> None:
        """Delete a model and everything that it has learned. if_match: see `learn`."""
        await self._http.run(self._calls.delete(name, if_match))

    async def upload(self, name: str, source: Any) -> dict[str, Any]:
        """Make a new model that answers as a fitted estimator does, and goes on learning."""
        content = await asyncio.to_thread(content_of, source)
        return await self._http.run(self._calls.upload(name, content))

    async def download(self, name: str, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a model as an estimator, or write it into a model file."""
        content = await self._http.run(self._calls.download(name))
        return await asyncio.to_thread(made_of, content, name, path)

    async def refit(self, name: str, *, wait_seconds: float = 600.0) -> dict[str, Any]:
        """Refit a semiparametric model, wait, and return the job when it is done."""
        return await self._http.run(self._calls.refit(name, wait_seconds))

    async def history(self, name: str) -> dict[str, Any]:
        """Return the states that a model can be rolled back to."""
        return await self._http.run(self._calls.read("list_snapshots", name))

    async def rollback(
        self, name: str, sequence: int, *, if_match: str | None = None
    ) -> dict[str, Any]:
        """Roll a model back to a sequence. The call is not retried after a lost response.

        if_match: see `learn`.
        """
        return await self._http.run(self._calls.rollback(name, sequence, if_match))

    async def challengers(self, name: str) -> dict[str, Any]:
        """Compare the models that follow this one with it, on the same samples."""
        return await self._http.run(self._calls.read("list_challengers", name))

    async def promote(
        self, name: str, challenger: str, *, if_match: str | None = None
    ) -> dict[str, Any]:
        """Exchange spec and state of a model and its challenger; the model's description.

        if_match: see `learn`. The call is not retried after a lost response.
        """
        return await self._http.run(self._calls.promote(name, challenger, if_match))

    async def metrics_history(self, name: str) -> dict[str, Any]:
        """Return a model's numbers over the last hours: `time`, and `numbers` by their names."""
        return await self._http.run(self._calls.read("metrics_history", name))

    def events(self, name: str) -> AsyncIterator[dict[str, Any]]:
        """Yield a model's state once a second, from now on, until the model is deleted."""
        return self._http.events(EventReader(name, self._retry))

    async def snapshot(self, name: str) -> dict[str, Any]:
        """Have the server write a snapshot of a model."""
        return await self._http.run(self._calls.snapshot(name))

    async def ask(self, request: Request, retry: float | None = None) -> dict[str, Any]:
        """Return the response to any other request."""
        calls = self._calls if retry is None else Calls(Retry(retry))
        return await self._http.run(calls.ask(request))
