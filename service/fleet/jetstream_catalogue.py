"""The catalogue of a fleet: a bucket with an entry for each model, which every replica watches.

A model's number is a revision of the bucket, so no number is given twice. The number also says in
which stream the model's log is; a model that follows another one gets a number whose stream is that
of the other one's log, because only one stream can store one commit for both.
"""

import asyncio
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import nats.errors
from nats.js.errors import APIError
from nats.js.kv import KeyValue

from wolfstream.service.errors import InDoubt, StartupError, StorageFailed
from wolfstream.service.fleet.bucket_watch import follow, watching
from wolfstream.service.fleet.connection import NatsConnection, Refused, Unanswered
from wolfstream.service.fleet.entries import PATIENCE_SECONDS, EntryTaken, create_entry, open_bucket
from wolfstream.service.fleet.jetstream_journal import JetStreamJournal
from wolfstream.service.fleet.jetstream_term import JetStreamTerm
from wolfstream.service.fleet.known_models import NOTHING_KNOWN, KnownModels, known
from wolfstream.service.fleet.streams import MODELS_BUCKET, STATES, log_of, shares_stream, states_of
from wolfstream.service.storage.catalogue import NameTaken
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.term import Term

logger = logging.getLogger(__name__)

_SECONDS = 15.0
# The key whose revisions are the numbers of models, and the prefix of the models' keys.
_NUMBER, _MODEL = "number", "model."
_STREAM = f"KV_{MODELS_BUCKET}"
# Of models and their partitions. Anybody may ask for any name, and the subject of another one could
# match, or be that of, some model.
_NAME = re.compile(r"[A-Za-z0-9._:-]{1,80}")
# The code of a server that knows another revision than the one to be deleted.
_ANOTHER_REVISION = 10071
# How long the watch may report nothing before the entries are read.
_LOOK_SECONDS = 2.0
# A copy of the bucket that is behind is read again after this time.
_PAUSE_SECONDS = 0.05


def encoded(name: str) -> str:
    """Return a model's name as a token of a subject, which has no dots and no colons.

    No name contains `=` or `/`.
    """
    return name.replace(".", "=").replace(":", "/")


class JetStreamCatalogue:
    """`storage.catalogue.Catalogue` in a bucket; any thread may use it.

    Raises StartupError if the bucket cannot be read.
    """

    def __init__(self, connection: NatsConnection, journal: JetStreamJournal) -> None:
        self._nats, self._journal = connection, journal
        try:
            self._bucket: KeyValue = connection.run(
                open_bucket(connection, MODELS_BUCKET), 2 * PATIENCE_SECONDS
            )
        except (nats.errors.Error, Unanswered) as error:
            raise StartupError(f"the bucket {MODELS_BUCKET} cannot be read: {error}") from None
        self._known = NOTHING_KNOWN

    def watch(self) -> None:
        """Read the catalogue, and again whenever it changes, from now on. Raises StartupError."""
        self.made()
        asyncio.run_coroutine_threadsafe(self._watch(), self._nats.loop)

    async def _watch(self) -> None:
        await follow(self._bucket, f"{_MODEL}>", self._take, self._is_behind, _LOOK_SECONDS)

    def _take(self, entry: KeyValue.Entry) -> None:
        """Apply one change, which comes after all that is known."""
        if (revision := entry.revision or 0) > self._known.revision:
            others = [one for one in self._known.made if _key(one[0].name) != entry.key]
            self._known = known(revision, [*others, *_model_in(entry)])

    async def _is_behind(self) -> bool:
        """Read what has changed, and return whether anything has."""
        before = self._known.revision
        return (await self._look()).revision > before

    @property
    def names(self) -> list[str]:
        """The names of all models, oldest first, as of the last read."""
        return [entry.name for entry, _ in self._known.made]

    @property
    def champions(self) -> Mapping[str, str]:
        """Whom each model follows that follows another one, by name, as of the last read."""
        return self._known.champions

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of all models, as of the last read."""
        return self._known.numbers

    @property
    def learners(self) -> Mapping[str, int]:
        """The models with several learners, and how many they have, as of the last read."""
        return self._known.learners

    def is_followed(self, model: int) -> bool:
        """Return whether another model follows this one, as of the last read."""
        return any(entry.follows == model for entry, _ in self._known.made)

    def models(self) -> list[CatalogueEntry]:
        """Return all models, oldest first."""
        return [entry for entry, _ in self.made()]

    def made(self) -> list[tuple[CatalogueEntry, datetime]]:
        """Return all models, oldest first, and when each was created. Raises StartupError."""
        try:
            return list(self._nats.run(self._look(), 4 * _SECONDS).made)
        except (nats.errors.Error, Refused, Unanswered, ValueError) as error:
            raise StartupError(f"the bucket {MODELS_BUCKET} cannot be read: {error}") from None

    async def _look(self) -> KnownModels:
        """Return all models, which are read again only if one was added or deleted since.

        The bucket's leader says whether one was, since a copy may lag behind what was written here.
        """
        last = await self._nats.last_of_leader(_STREAM, f"$KV.{MODELS_BUCKET}.{_MODEL}>")
        while last is not None and last.sequence > self._known.revision:
            found = await self._all()
            if last.sequence > found.revision:  # a copy that is behind, or a part of the entries
                await asyncio.sleep(_PAUSE_SECONDS)
            elif found.revision > self._known.revision:
                self._known = found
        return self._known

    async def _all(self) -> KnownModels:
        """Return the models by a copy of the bucket, oldest changes first.

        The client may say that all entries have come before the last ones have: it looks at what
        is pending when the server has sent entries that the client has not read.
        """
        found, revision = list[tuple[CatalogueEntry, Any]](), 0
        async with watching(self._bucket, f"{_MODEL}>") as watcher:
            async for entry in watcher:
                if entry is None:  # all entries have come
                    break
                revision = max(revision, entry.revision or 0)
                found += _model_in(entry)
        return known(revision, found)

    def find(self, name: str) -> CatalogueEntry | None:
        """Return the model of a name; None if there is none.

        The bucket's leader answers: of a model that was just deleted, a copy may have the entry.
        """
        found = self._entry(name)
        return None if found is None else found[0]

    def _entry(self, name: str) -> tuple[CatalogueEntry, int] | None:
        """Return the model of a name, and the revision of its entry. Raises StorageFailed."""
        if not _NAME.fullmatch(name):
            return None
        subject = f"$KV.{MODELS_BUCKET}.{_key(name)}"
        try:
            found = self._nats.run(self._nats.last_of_leader(_STREAM, subject), _SECONDS)
        except (Refused, Unanswered) as error:
            raise StorageFailed(f"the catalogue could not be read: {error}") from None
        return (_read(found.body), found.sequence) if found and found.body else None

    @contextmanager
    def creating(
        self,
        name: str,
        spec: dict[str, Any],
        epoch: str,
        follows: int | None = None,
        sequence: int = 0,
    ) -> Iterator[Term]:
        """Add a model, which exists once the block has ended without an error.

        Its log has a first row by then. So no log of a model is empty, and an append that names
        the end 0 is never right by chance, after all of a log was purged.
        """
        if self.find(name) is not None:
            raise NameTaken(f"the fleet has a model {name!r} already")
        number = self._new_number()
        while follows is not None and not shares_stream(number, follows):
            number = self._new_number()
        term = self._journal.new_log(number).begin_new(sequence, epoch)
        try:
            yield term
            self._add(CatalogueEntry(number, name, spec, epoch, follows))
            term.note_durable(sequence)
        except InDoubt:
            raise  # it may exist
        except BaseException:
            term.end()
            self.discard(number)
            raise

    def _new_number(self) -> int:
        try:
            return self._nats.run(self._bucket.put(_NUMBER, b""), _SECONDS)
        except (nats.errors.Error, Unanswered) as error:
            raise StorageFailed(f"the catalogue could not be written: {error}") from None

    def _add(self, entry: CatalogueEntry) -> None:
        value = json.dumps(entry._asdict()).encode()
        try:
            work = create_entry(self._nats, MODELS_BUCKET, _key(entry.name), value)
            self._nats.run(work, _SECONDS)
        except EntryTaken:
            raise NameTaken(f"the fleet has a model {entry.name!r} already") from None
        except Refused as error:
            raise StorageFailed(f"the catalogue could not be written: {error}") from None
        except Unanswered as error:
            # The entry may exist, or may still be written.
            if not self._has(entry):
                raise InDoubt(
                    f"the catalogue has not answered: {error}; look at the model before you go on"
                ) from None

    def _has(self, entry: CatalogueEntry) -> bool:
        """Return whether an entry was found; also False where that cannot be known now."""
        try:
            return self.find(entry.name) == entry
        except StorageFailed:
            return False

    def delete(self, term: Term) -> None:
        """Remove the model of a term, then its log and its snapshots.

        Its log says so first, and takes nothing more: what another replica has learned meanwhile
        makes that row refused, and so the model stays.
        """
        assert isinstance(term, JetStreamTerm)
        term.write_deletion()
        entry = next((one for one in self._all_models() if one.number == term.model), None)
        if entry is None:
            self.discard(term.model)
            return
        try:
            self.finish_deletion(entry)
        except InDoubt:
            raise
        except StorageFailed as error:  # the log says that the model is deleted
            raise InDoubt(f"{error.detail}; the model is deleted once it can be read") from None

    def _all_models(self) -> list[CatalogueEntry]:
        try:
            return self.models()
        except StartupError as error:
            raise InDoubt(f"{error}; the model is deleted once it can be read") from None

    def finish_deletion(self, entry: CatalogueEntry) -> None:
        """Remove a model whose log says that it was deleted.

        Only the entry that was read is deleted: a model that was made since under the same name
        has another one.
        """
        found = self._entry(entry.name)
        if found is not None and found[0].number == entry.number:
            work = self._bucket.delete(_key(entry.name), last=found[1])
            try:
                self._nats.run(work, _SECONDS)
            except (nats.errors.Error, APIError, Unanswered) as error:
                if getattr(error, "err_code", None) != _ANOTHER_REVISION:
                    raise InDoubt(
                        f"the catalogue could not be written: {error}; the model learns nothing "
                        "more, and is deleted once the catalogue answers"
                    ) from None
                # Another replica was quicker.
        self.discard(entry.number)

    def discard(self, model: int) -> None:
        """Purge the log and the snapshots of a model that is not, or no longer, in the bucket.

        No other model has its number, so this may come late.
        """
        log, subject = log_of(model)
        for stream, of_model in ((log, subject), (STATES, states_of(model, ">"))):
            try:
                work = self._nats.call(f"STREAM.PURGE.{stream}", {"filter": of_model})
                self._nats.run(work, _SECONDS)
            except (Refused, Unanswered) as error:  # the model is deleted anyway
                logger.warning("%s keeps messages of a deleted model: %s", stream, error)


def _key(name: str) -> str:
    return _MODEL + encoded(name)


def _model_in(entry: KeyValue.Entry) -> list[tuple[CatalogueEntry, Any]]:
    """Return a model and when it was created; nothing for an entry that says it was deleted."""
    return [(_read(entry.value), entry.created)] if entry.operation is None else []


def _read(value: bytes | None) -> CatalogueEntry:
    return CatalogueEntry(**json.loads(value or b""))
