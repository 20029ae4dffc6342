"""The snapshots of a fleet: messages with chunks of a snapshot's bytes, then a manifest.

A snapshot exists once its manifest is stored. Chunks without a manifest are left over from an
interrupted save.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Collection, Coroutine
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import msgpack

from wolfstream.service.fleet.batches import EXPECTED
from wolfstream.service.fleet.connection import (
    NatsConnection,
    NatsDisconnected,
    NatsRefusal,
    NatsTimeout,
)
from wolfstream.service.fleet.streams import STATES, states_subject
from wolfstream.service.storage.interfaces import (
    SnapshotDescription,
    SnapshotFault,
    Snapshots,
    matches_pinned_name,
    new_pinned_name,
)
from wolfstream.service.storage.snapshot_format import (
    DamagedSnapshot,
    State,
    UnreadableSnapshot,
    encode_state,
)

T = TypeVar("T")

_SECONDS = 600.0
# How long to try to read a missing chunk, and the time between two attempts.
_CHUNK_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
# Number of chunks that are sent or read concurrently.
_CONCURRENT_CHUNKS = 8
_HEADER_BYTES = 2048
# A manifest repeats the plain part of its snapshot only up to this size.
_MAX_PLAIN_BYTES = 256 << 10


class _NotStored(OSError):
    """A message was refused or never sent: it is not stored, and never will be."""


class _Manifest(NamedTuple):
    """The content of a snapshot's last message."""

    chunks: str  # id of its chunks
    n_chunks: int
    n_bytes: int  # size of the snapshot
    written: str  # when, in ISO 8601
    plain: bytes  # its plain part in JSON; empty if that is too large


class JetStreamSnapshots(Snapshots):
    """`storage.interfaces.Snapshots` in a stream; any thread may use it."""

    def __init__(self, nats: NatsConnection, kept: int = 4) -> None:
        """Use a connection.

        Args:
            nats: the connection.
            kept: number of snapshots of each model that are kept; `save` deletes the oldest.
        """
        self._nats, self._kept = nats, kept

    def sequences(self, model: int) -> list[int]:
        """Return the sequences of a model's snapshots, newest first."""
        return sorted(map(int, self._listed(model, "at")), reverse=True)

    def name(self, model: int, sequence: int) -> str:
        """Return the subject of a snapshot."""
        return states_subject(model, "at", sequence)

    def save(self, model: int, state: State) -> None:
        """Store a snapshot, durable on return; delete the oldest if there are too many."""
        head, body = encode_state(state)
        plain = json.dumps(state.plain).encode()
        self._put(model, ("at", state.plain["sequence"]), head + bytes(body), plain)
        for sequence in self.sequences(model)[self._kept :]:
            self._remove(model, "at", sequence)

    def content(self, model: int, sequence: int) -> bytes:
        """Return the bytes of a snapshot. Raises UnreadableSnapshot."""
        return self._content(model, ("at", sequence))

    def written(self, model: int, sequence: int) -> datetime | None:
        """Return when a snapshot was stored; None if there is none."""
        manifest = self._manifest(states_subject(model, "at", sequence))
        return None if manifest is None else datetime.fromisoformat(manifest.written)

    def describe(self, model: int, sequence: int) -> SnapshotDescription | None:
        """Return the size, time and plain part of a snapshot; None if there is none."""
        manifest = self._manifest(states_subject(model, "at", sequence))
        if manifest is None:
            return None
        try:
            encoded = manifest.plain
            plain = json.loads(encoded) if encoded else self.load(model, sequence).plain
        except DamagedSnapshot:
            plain = None
        written = datetime.fromisoformat(manifest.written)
        return SnapshotDescription(manifest.n_bytes, written, plain)

    def set_aside(self, model: int, sequence: int, fault: SnapshotFault) -> None:
        """Move a snapshot's manifest to a subject that names its fault; its chunks stay."""
        subject = states_subject(model, "at", sequence)
        manifest = self._call(lambda: self._nats.last(STATES, subject))
        if manifest is not None:
            aside = states_subject(model, fault, sequence)
            self._call(lambda: self._nats.ask(aside, manifest.body))
            self._purge(subject)

    def pin(self, model: int, content: bytes, name: str | None = None) -> str:
        """Pin the bytes of a snapshot, durable on return; return the name of the pinned state.

        Args:
            model: number of the model.
            content: the bytes.
            name: the name; None makes a new one.
        """
        name = new_pinned_name(content) if name is None else name
        self._put(model, ("pinned", name), content, b"")
        return name

    def pinned_content(self, model: int, name: str) -> bytes:
        """Return the bytes that were pinned under a name. Raises DamagedSnapshot."""
        content = self._content(model, ("pinned", name))
        if not matches_pinned_name(name, content):
            raise DamagedSnapshot(
                states_subject(model, "pinned", name), "does not match its digest"
            )
        return content

    def pinned_names(self, model: int) -> list[str]:
        """Return the names of all pinned states of a model."""
        return sorted(self._listed(model, "pinned"))

    def unpin(self, model: int, names: Collection[str]) -> None:
        """Delete pinned states of a model."""
        for name in names:
            self._remove(model, "pinned", name)

    def delete(self, model: int) -> None:
        """Delete everything that is stored for a model."""
        self._purge(states_subject(model, ">"))

    def _listed(self, model: int, kind: str) -> list[str]:
        """Return the last tokens of all subjects of a kind: sequences or names."""
        request = {"subjects_filter": states_subject(model, kind, "*")}
        info = self._call(lambda: self._nats.call(f"STREAM.INFO.{STATES}", request))
        return [name.rpartition(".")[2] for name in info["state"].get("subjects") or {}]

    def _put(self, model: int, at: tuple[str, object], content: bytes, plain: bytes) -> None:
        """Store chunks and a manifest, which replaces an earlier one of the same subject.

        Args:
            model: number of the model.
            at: the last two tokens of the subject.
            content: the bytes of the snapshot.
            plain: its plain part in JSON, for the manifest.
        """
        chunks_id = secrets.token_hex(8)
        size = self._nats.max_payload - _HEADER_BYTES
        chunks = [content[start : start + size] for start in range(0, len(content), size)]
        subject = states_subject(model, *at)
        before = self._call(lambda: self._nats.last_of_leader(STATES, subject))
        manifest = _Manifest(
            chunks_id,
            len(chunks),
            len(content),
            datetime.now(UTC).isoformat(),
            plain if len(plain) <= _MAX_PLAIN_BYTES else b"",
        )
        try:
            self._call(lambda: self._put_chunks(states_subject(model, "parts", chunks_id), chunks))
            self._store_manifest(subject, manifest, 0 if before is None else before.sequence)
        except _NotStored:
            self._delete_chunks(model, chunks_id)
            raise
        if before is not None:
            self._delete_chunks(model, _read_manifest(before.body).chunks)

    def _store_manifest(self, subject: str, manifest: _Manifest, after: int) -> None:
        """Store a snapshot's manifest; from then on the snapshot exists.

        It names the message that it replaces, so a delayed manifest never replaces a newer one.

        Args:
            subject: subject of the snapshot.
            manifest: the manifest.
            after: the subject's last message; 0 if there is none.

        Raises _NotStored if it is certainly not stored. Any other OSError means that it may be
        stored, now or later. Then its chunks must not be deleted: it could replace a complete
        snapshot by one without chunks.
        """
        body, headers = msgpack.packb(manifest), {EXPECTED: str(after)}
        try:
            self._call(lambda: self._nats.ask(subject, body, headers))
        except _NotStored:
            raise
        except OSError:
            present = self._manifest(subject)
            if present is None or present.chunks != manifest.chunks:
                raise

    async def _put_chunks(self, subject: str, chunks: list[bytes]) -> None:
        for start in range(0, len(chunks), _CONCURRENT_CHUNKS):
            await asyncio.gather(
                *(
                    self._nats.ask(f"{subject}.{start + i}", chunk)
                    for i, chunk in enumerate(chunks[start : start + _CONCURRENT_CHUNKS])
                )
            )

    def _content(self, model: int, at: tuple[str, object]) -> bytes:
        name = states_subject(model, *at)
        try:
            manifest = self._manifest(name)
            if manifest is None:
                raise UnreadableSnapshot(name, "cannot be read: there is no such snapshot")
            subject = states_subject(model, "parts", manifest.chunks)
            chunks = self._call(lambda: self._get_chunks(subject, manifest.n_chunks))
        except OSError as error:
            raise UnreadableSnapshot(name, f"cannot be read: {error}") from error
        return b"".join(chunks)

    async def _get_chunks(self, subject: str, n_chunks: int) -> list[bytes]:
        chunks = list[bytes]()
        for start in range(0, n_chunks, _CONCURRENT_CHUNKS):
            numbers = range(start, min(n_chunks, start + _CONCURRENT_CHUNKS))
            chunks += await asyncio.gather(*(self._get_chunk(f"{subject}.{i}") for i in numbers))
        return chunks

    async def _get_chunk(self, subject: str) -> bytes:
        """Return a chunk; wait for it if a lagging copy of the stream does not have it yet."""
        deadline = time.monotonic() + _CHUNK_SECONDS
        while not (messages := await self._nats.get(STATES, {"last_by_subj": subject})):
            if time.monotonic() > deadline:
                raise NatsTimeout(f"there is nothing of {subject}")
            await asyncio.sleep(_PAUSE_SECONDS)
        return messages[0].body

    def _manifest(self, subject: str) -> _Manifest | None:
        message = self._call(lambda: self._nats.last(STATES, subject))
        return None if message is None else _read_manifest(message.body)

    def _remove(self, model: int, kind: str, token: object) -> None:
        subject = states_subject(model, kind, token)
        manifest = self._manifest(subject)
        self._purge(subject)
        if manifest is not None:
            self._delete_chunks(model, manifest.chunks)

    def _delete_chunks(self, model: int, chunks_id: str) -> None:
        self._purge(states_subject(model, "parts", chunks_id, "*"))

    def _purge(self, subject: str) -> None:
        self._call(lambda: self._nats.call(f"STREAM.PURGE.{STATES}", {"filter": subject}))

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the connection's loop and return its result.

        Raises _NotStored if a server refused it or none was connected, otherwise OSError.
        """
        try:
            return self._nats.run(work(), _SECONDS)
        except (NatsRefusal, NatsDisconnected) as error:
            raise _NotStored(str(error)) from None
        except NatsTimeout as error:
            raise OSError(str(error)) from None


def _read_manifest(body: bytes) -> _Manifest:
    return _Manifest._make(msgpack.unpackb(body))
