"""The snapshots of a fleet: messages with parts of their bytes, then one that describes them.

A snapshot exists once that last message is stored; parts without it are from an interrupted save.
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
from wolfstream.service.fleet.connection import NatsConnection, NotConnected, Refused, Unanswered
from wolfstream.service.fleet.streams import STATES, states_of
from wolfstream.service.storage.snapshot_format import (
    DamagedSnapshot,
    State,
    UnreadableSnapshot,
    decode_state,
    encode_state,
)
from wolfstream.service.storage.snapshots import SnapshotDescription, is_content_of, pinned_name

T = TypeVar("T")

_SECONDS = 600.0
# How long a missing part is retried, and how often.
_PART_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
# The number of parts that are sent at the same time.
_AT_A_TIME = 8
_HEADER_BYTES = 2048
# A larger plain part is read from the snapshot itself.
_PLAIN_BYTES = 256 << 10


class _NotStored(OSError):
    """A server has refused a message, or none was asked: it is not stored, and never will be."""


class _Manifest(NamedTuple):
    """The content of a snapshot's last message. plain: JSON; empty if it is too large."""

    parts: str
    n_parts: int
    n_bytes: int
    written: str
    plain: bytes


class JetStreamSnapshots:
    """`storage.snapshots.Snapshots` in a stream; any thread may use it.

    kept: the number of snapshots that are kept for each model.
    """

    def __init__(self, nats: NatsConnection, kept: int = 4) -> None:
        self._nats, self._kept = nats, kept

    def sequences(self, model: int) -> list[int]:
        """Return the sequences of a model's snapshots, newest first."""
        return sorted(map(int, self._listed(model, "at")), reverse=True)

    def name(self, model: int, sequence: int) -> str:
        """Return the subject of a snapshot."""
        return states_of(model, "at", sequence)

    def save(self, model: int, state: State) -> None:
        """Store a snapshot durably, and delete the oldest if there are too many."""
        head, body = encode_state(state)
        plain = json.dumps(state.plain).encode()
        self._put(model, ("at", state.plain["sequence"]), head + bytes(body), plain)
        for sequence in self.sequences(model)[self._kept :]:
            self._remove(model, "at", sequence)

    def load(self, model: int, sequence: int) -> State:
        """Return a snapshot's state. Raises DamagedSnapshot."""
        return decode_state(self.content(model, sequence), self.name(model, sequence))

    def content(self, model: int, sequence: int) -> bytes:
        """Return the bytes of a snapshot. Raises UnreadableSnapshot."""
        return self._content(model, ("at", sequence))

    def written(self, model: int, sequence: int) -> datetime | None:
        """Return when a snapshot was stored; None if there is none."""
        manifest = self._manifest(states_of(model, "at", sequence))
        return None if manifest is None else datetime.fromisoformat(manifest.written)

    def describe(self, model: int, sequence: int) -> SnapshotDescription | None:
        """Return size, time and plain part of a snapshot; None if there is none."""
        manifest = self._manifest(states_of(model, "at", sequence))
        if manifest is None:
            return None
        try:
            encoded = manifest.plain
            plain = json.loads(encoded) if encoded else self.load(model, sequence).plain
        except DamagedSnapshot:
            plain = None
        written = datetime.fromisoformat(manifest.written)
        return SnapshotDescription(manifest.n_bytes, written, plain)

    def set_aside(self, model: int, sequence: int) -> None:
        """Remove a damaged snapshot from the list; its parts are kept."""
        subject = states_of(model, "at", sequence)
        found = self._call(lambda: self._nats.last(STATES, subject))
        if found is not None:
            aside = states_of(model, "damaged", sequence)
            self._call(lambda: self._nats.ask(aside, found.body))
            self._purge(subject)

    def pin(self, model: int, content: bytes, name: str | None = None) -> str:
        """Keep the bytes of a snapshot until `unpin`, and return their name."""
        name = pinned_name(content) if name is None else name
        self._put(model, ("pinned", name), content, b"")
        return name

    def pinned(self, model: int, name: str) -> State:
        """Return the state in pinned bytes. Raises DamagedSnapshot."""
        return decode_state(self.pinned_content(model, name), states_of(model, "pinned", name))

    def pinned_content(self, model: int, name: str) -> bytes:
        """Return the bytes that were pinned under a name. Raises DamagedSnapshot."""
        content = self._content(model, ("pinned", name))
        if not is_content_of(name, content):
            raise DamagedSnapshot(states_of(model, "pinned", name), "does not match its digest")
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
        self._purge(states_of(model, ">"))

    def set_others_aside(self, models: set[int]) -> None:
        """Do nothing: a new model has a number that no model had before."""

    def _listed(self, model: int, kind: str) -> list[str]:
        """Return the last tokens of the subjects of a kind."""
        request = {"subjects_filter": states_of(model, kind, "*")}
        info = self._call(lambda: self._nats.call(f"STREAM.INFO.{STATES}", request))
        return [name.rpartition(".")[2] for name in info["state"].get("subjects") or {}]

    def _put(self, model: int, at: tuple[str, object], content: bytes, plain: bytes) -> None:
        parts = secrets.token_hex(8)
        size = self._nats.max_payload - _HEADER_BYTES
        pieces = [content[start : start + size] for start in range(0, len(content), size)]
        subject = states_of(model, *at)
        before = self._call(lambda: self._nats.last_of_leader(STATES, subject))
        manifest = _Manifest(
            parts,
            len(pieces),
            len(content),
            datetime.now(UTC).isoformat(),
            plain if len(plain) <= _PLAIN_BYTES else b"",
        )
        try:
            self._call(lambda: self._put_parts(states_of(model, "parts", parts), pieces))
            self._store_manifest(subject, manifest, 0 if before is None else before.sequence)
        except _NotStored:
            self._forget_parts(model, parts)
            raise
        if before is not None:
            self._forget_parts(model, _decoded(before.body).parts)

    def _store_manifest(self, subject: str, manifest: _Manifest, after: int) -> None:
        """Store a snapshot's last message, after which the snapshot exists.

        Raises _NotStored where it certainly is not stored. Without an answer it may be stored, now
        or later: its parts must stay, or a whole snapshot would be replaced by one without parts.
        It names the message that it replaces, so it never comes after another save of this kind.

        Args:
            subject: of the snapshot.
            manifest: the content.
            after: the last message of the subject; 0 if there is none.
        """
        body, headers = msgpack.packb(manifest), {EXPECTED: str(after)}
        try:
            self._call(lambda: self._nats.ask(subject, body, headers))
        except _NotStored:
            raise
        except OSError:
            found = self._manifest(subject)
            if found is None or found.parts != manifest.parts:
                raise

    async def _put_parts(self, subject: str, pieces: list[bytes]) -> None:
        for start in range(0, len(pieces), _AT_A_TIME):
            await asyncio.gather(
                *(
                    self._nats.ask(f"{subject}.{start + i}", piece)
                    for i, piece in enumerate(pieces[start : start + _AT_A_TIME])
                )
            )

    def _content(self, model: int, at: tuple[str, object]) -> bytes:
        name = states_of(model, *at)
        try:
            manifest = self._manifest(name)
            if manifest is None:
                raise UnreadableSnapshot(name, "cannot be read: there is no such snapshot")
            subject = states_of(model, "parts", manifest.parts)
            pieces = self._call(lambda: self._get_parts(subject, manifest.n_parts))
        except OSError as error:
            raise UnreadableSnapshot(name, f"cannot be read: {error}") from error
        return b"".join(pieces)

    async def _get_parts(self, subject: str, n_parts: int) -> list[bytes]:
        pieces = list[bytes]()
        for start in range(0, n_parts, _AT_A_TIME):
            asked = [f"{subject}.{i}" for i in range(start, min(n_parts, start + _AT_A_TIME))]
            pieces += await asyncio.gather(*(self._get_part(one) for one in asked))
        return pieces

    async def _get_part(self, subject: str) -> bytes:
        """Return a part, which a lagging copy of the stream may not have yet."""
        deadline = time.monotonic() + _PART_SECONDS
        while not (found := await self._nats.get(STATES, {"last_by_subj": subject})):
            if time.monotonic() > deadline:
                raise Unanswered(f"there is nothing of {subject}")
            await asyncio.sleep(_PAUSE_SECONDS)
        return found[0].body

    def _manifest(self, subject: str) -> _Manifest | None:
        found = self._call(lambda: self._nats.last(STATES, subject))
        return None if found is None else _decoded(found.body)

    def _remove(self, model: int, kind: str, token: object) -> None:
        subject = states_of(model, kind, token)
        manifest = self._manifest(subject)
        self._purge(subject)
        if manifest is not None:
            self._forget_parts(model, manifest.parts)

    def _forget_parts(self, model: int, parts: str) -> None:
        self._purge(states_of(model, "parts", parts, "*"))

    def _purge(self, subject: str) -> None:
        self._call(lambda: self._nats.call(f"STREAM.PURGE.{STATES}", {"filter": subject}))

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the connection's loop and return its result.

        Raises OSError, and _NotStored where a server has refused it.
        """
        try:
            return self._nats.run(work(), _SECONDS)
        except (Refused, NotConnected) as error:
            raise _NotStored(str(error)) from None
        except Unanswered as error:
            raise OSError(str(error)) from None


def _decoded(body: bytes) -> _Manifest:
    return _Manifest._make(msgpack.unpackb(body))
