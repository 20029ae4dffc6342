"""The endpoints that download and upload the whole state of a model, as a model file."""

import asyncio
from itertools import chain
from typing import Any

from fastapi import Request, Response

from wolfstream.service.calls.models import Created
from wolfstream.service.engine.admission import model_limits
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import TooLarge, UnsupportedFormat
from wolfstream.service.recovery.uploads import read_uploaded, usable
from wolfstream.service.settings import Settings
from wolfstream.service.storage.snapshot_format import encode_state
from wolfstream.service.web.formats.body import decode_or_offload, read_body, respond
from wolfstream.service.web.formats.chunks import ChunkedResponse, byte_chunks
from wolfstream.service.web.formats.memory import Lease, MemoryBudget
from wolfstream.service.web.formats.revisions import etag_header
from wolfstream.service.web.formats.wire import JSON, OCTETS
from wolfstream.service.web.routes.creation import check_name, created
from wolfstream.service.web.routes.endpoints import Endpoints, by_name

# A download takes this many times the memory of a state: for the copied arrays, and for the archive
# of their bytes, which is copied as it grows.
_COPIES = 3


def state_endpoints(engine: Engine, settings: Settings, memory: MemoryBudget) -> Endpoints:
    """Return the endpoints of a model's state."""

    async def download_state(name: str) -> Response:
        """Return the whole model: spec, sequence, scores, and what each head has learned.

        The response is a model file. `PUT` of its bytes makes a model that answers as this one
        does, on this server under another name or on another server. `wolfstream serve --load`,
        `predict` and `snapshot inspect` read it, and so does `wolfstream.load` in Python. It
        contains samples.
        """
        with memory.lease() as lease:
            parts, revision = await _download(engine, name, lease)
            held = lease.hand_over()
        headers = {
            "Content-Length": str(sum(map(len, parts))),
            "Content-Disposition": f'attachment; filename="{name}.model"',
            **etag_header(revision),
        }
        chunks = chain(byte_chunks(parts[0]), byte_chunks(parts[1]))
        return ChunkedResponse(chunks, 200, headers, OCTETS, held)

    async def upload_state(request: Request, name: str) -> Response:
        """Create a new model from a model file; it continues to learn from there.

        The file is one that `wolfstream.save`, `wolfstream train` or a server wrote. The model has
        the sequence in the file, and an epoch of its own. If the file is sent again while the model
        is in this state, the response is 200; a model in any other state is left as it is.
        """
        _check_type(request)
        with memory.lease() as lease:
            try:
                data = await read_body(request, settings.state_bytes, lease)
            except TooLarge:
                most = settings.state_bytes
                raise TooLarge(
                    f"a model file may have at most {most} bytes here (WOLFSTREAM_STATE_BYTES)"
                ) from None
            uploaded, new = await _upload(engine, settings, name, data, lease)
        return respond(request, JSON, uploaded, 201 if new else 200)

    return by_name(download_state, upload_state)


async def _upload(
    engine: Engine, settings: Settings, name: str, content: bytes, lease: Lease
) -> tuple[Created, bool]:
    """Create a model from a model file; return a short description, and whether the model is new.

    Args:
        engine: the engine.
        settings: the server's settings.
        name: the name of the new model.
        content: the bytes of the file.
        lease: holds the memory of the file and of its decoded state.

    Raises Invalid, UnusableState, StateExists, TooManyModels, MemoryFull, ModelsFull, NotReady,
    StorageFailed.
    """
    check_name(name)
    limits, most = model_limits(settings), settings.body_bytes
    state, spec = await decode_or_offload(
        lambda: read_uploaded(content, limits, most), len(content), lease
    )
    await engine.readiness.compiled_for(spec, sparse="names" in state.plain)
    model, new = await engine.orders.add(
        name, await asyncio.to_thread(usable, name, state, spec, limits)
    )
    return created(model), new


async def _download(
    engine: Engine, name: str, lease: Lease
) -> tuple[tuple[bytes, bytes], dict[str, Any]]:
    """Return the bytes of a model file, in two parts, and the revision of the model in it.

    Args:
        engine: the engine.
        name: the model's name.
        lease: holds the memory of the copied state and of the bytes.

    Raises UnknownModel, ModelBroken, MemoryFull, NotReady.
    """
    model = engine.model(name)
    heads = model.published.heads.values()
    lease.hold(_COPIES * sum(view.stats.get("bytes", 0) for view in heads))
    state = await engine.orders.state(model)
    n_bytes = sum(array.nbytes for array in state.arrays.values())
    lease.hold(_COPIES * n_bytes)
    parts = await asyncio.to_thread(encode_state, state)
    revision = {"model": name, **{key: state.plain[key] for key in ("sequence", "epoch")}}
    return parts, revision


def _check_type(request: Request) -> None:
    """Raise UnsupportedFormat if the content type is not that of a model file."""
    given = request.headers.get("content-type", OCTETS).partition(";")[0].strip().lower()
    if given != OCTETS:
        raise UnsupportedFormat(f"the body is a model file: its content type is {OCTETS}")
