"""The catalogue of a fleet: a bucket with an entry for each model, which every replica watches.

A model's number is a revision of the bucket, so no number is used twice. It also determines the
stream of the model's log. A challenger gets a number for which this is the stream of its champion's
log, because one batch, which belongs to one stream, has to store a commit for both.
"""

import asyncio
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import nats.errors
from nats.js.errors import APIError
from nats.js.kv import KeyValue

from wolfstream.service.errors import InDoubt, StartupError, StorageFailed
from wolfstream.service.fleet.bucket_watch import (
    RETRY_SECONDS,
    EntryTaken,
    create_entry,
    open_bucket,
    watch_entries,
    watching,
)
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.jetstream_journal import JetStreamJournal
from wolfstream.service.fleet.jetstream_term import JetStreamTerm
from wolfstream.service.fleet.streams import (
    MODELS_BUCKET,
    STATES,
    log_location,
    shares_stream,
    states_subject,
)
from wolfstream.service.storage.catalogue import NameTaken
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.term import Term


class FleetModels(NamedTuple):
    """The models of a fleet at one revision of the catalogue."""

    revision: int
    created: Sequence[tuple[CatalogueEntry, datetime]]  # oldest first
    champions: Mapping[str, str]  # challenger -> champion, if it still exists
    numbers: frozenset[int]  # of all models


def fleet_models(revision: int, created: Sequence[tuple[CatalogueEntry, datetime]]) -> FleetModels:
    """Return the models of a revision.

    Args:
        revision: the catalogue's revision.
        created: (model, when it was created) of each model, in any order.
    """
    created = sorted(created, key=lambda pair: pair[0].number)
    names = {entry.number: entry.name for entry, _ in created}
    champions = {
        entry.name: names[entry.follows]
        for entry, _ in created
        if entry.follows is not None and entry.follows in names
    }
    numbers = frozenset(entry.number for entry, _ in created)
    return FleetModels(revision, created, champions, numbers)


NO_MODELS = fleet_models(0, ())


logger = logging.getLogger(__name__)

_SECONDS = 15.0
# The key whose revisions are the numbers of models, and the prefix of the models' keys.
_NUMBER, _MODEL = "number", "model."
_STREAM = f"KV_{MODELS_BUCKET}"
# Names of models. Clients may ask for any name; without this check, some texts would become
# subjects that match those of models.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,63}")
# JetStream's error code: the last message of the subject is not the expected one.
_WRONG_LAST_SEQUENCE = 10071
# How long the watch may be silent before the catalogue is checked for missed changes.
_SILENT_SECONDS = 2.0
# Pause before a lagging copy of the bucket is read again.
_PAUSE_SECONDS = 0.05


def subject_token(name: str) -> str:
    """Return a model's name as a token of a subject, which must not have dots.

    Different names have different tokens, because no name contains `=`.
    """
    return name.replace(".", "=")


class JetStreamCatalogue:
    """`storage.catalogue.Catalogue` in a bucket; any thread may use it.

    Attributes:
        names: names of all models, oldest first, as last read.
        champions: name of a challenger -> name of its champion, as last read.
        numbers: numbers of all models, as last read.
    """

    def __init__(self, connection: NatsConnection, journal: JetStreamJournal) -> None:
        """Open the bucket. Raises StartupError."""
        self._nats, self._journal = connection, journal
        try:
            self._bucket: KeyValue = connection.run(
                open_bucket(connection, MODELS_BUCKET), 2 * RETRY_SECONDS
            )
        except (nats.errors.Error, NatsTimeout) as error:
            raise StartupError(f"the bucket {MODELS_BUCKET} cannot be read: {error}") from None
        self._models = NO_MODELS  # as last read; replaced, never changed

    def watch(self) -> None:
        """Read the catalogue now, and all changes from now on. Raises StartupError."""
        self.created()
        asyncio.run_coroutine_threadsafe(self._watch(), self._nats.loop)

    async def _watch(self) -> None:
        await watch_entries(
            self._bucket, f"{_MODEL}>", self._take, self._has_changed, _SILENT_SECONDS
        )

    def _take(self, entry: KeyValue.Entry) -> None:
        """Apply a change, unless it has been read before."""
        if (revision := entry.revision or 0) > self._models.revision:
            others = [pair for pair in self._models.created if _key(pair[0].name) != entry.key]
            self._models = fleet_models(revision, [*others, *_model_in(entry)])

    async def _has_changed(self) -> bool:
        """Read the catalogue again; return whether it has changed."""
        before = self._models.revision
        return (await self._refresh()).revision > before

    @property
    def names(self) -> list[str]:
        """The names of all models, oldest first, as last read."""
        return [entry.name for entry, _ in self._models.created]

    @property
    def champions(self) -> Mapping[str, str]:
        """Name of a challenger -> name of its champion, as last read."""
        return self._models.champions

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of all models, as last read."""
        return self._models.numbers

    def is_followed(self, model: int) -> bool:
        """Return whether a challenger follows this model, as last read."""
        return any(entry.follows == model for entry, _ in self._models.created)

    def models(self) -> list[CatalogueEntry]:
        """Return all models, oldest first."""
        return [entry for entry, _ in self.created()]

    def created(self) -> list[tuple[CatalogueEntry, datetime]]:
        """Return (model, when it was created) of all models, oldest first. Raises StartupError."""
        try:
            return list(self._nats.run(self._refresh(), 4 * _SECONDS).created)
        except (nats.errors.Error, NatsRefusal, NatsTimeout, ValueError) as error:
            raise StartupError(f"the bucket {MODELS_BUCKET} cannot be read: {error}") from None

    async def _refresh(self) -> FleetModels:
        """Return all models; read them again only if the bucket's leader has a later revision.

        A copy of the bucket may not have what this replica has written yet.
        """
        last = await self._nats.last_of_leader(_STREAM, f"$KV.{MODELS_BUCKET}.{_MODEL}>")
        while last is not None and last.sequence > self._models.revision:
            models = await self._read_all()
            if last.sequence > models.revision:  # a lagging copy, or only some of the entries
                await asyncio.sleep(_PAUSE_SECONDS)
            elif models.revision > self._models.revision:
                self._models = models
        return self._models

    async def _read_all(self) -> FleetModels:
        """Return the models in a copy of the bucket, perhaps only some of them.

        The client may report the end of the entries too early: it relies on the server's count of
        pending entries, which excludes entries that were sent but not read yet.
        """
        models, revision = list[tuple[CatalogueEntry, Any]](), 0
        async with watching(self._bucket, f"{_MODEL}>") as watcher:
            async for entry in watcher:
                if entry is None:  # the end of the present entries
                    break
                revision = max(revision, entry.revision or 0)
                models += _model_in(entry)
        return fleet_models(revision, models)

    def find(self, name: str) -> CatalogueEntry | None:
        """Return the model with a name; None if there is none.

        It asks the bucket's leader: a copy may still have a model that was just deleted. Raises
        StorageFailed.
        """
        entry = self._entry(name)
        return None if entry is None else entry[0]

    def _entry(self, name: str) -> tuple[CatalogueEntry, int] | None:
        """Return (model, revision of its entry) for a name; None if there is none.

        Raises StorageFailed.
        """
        if not _NAME.fullmatch(name):
            return None
        subject = f"$KV.{MODELS_BUCKET}.{_key(name)}"
        try:
            message = self._nats.run(self._nats.last_of_leader(_STREAM, subject), _SECONDS)
        except (NatsRefusal, NatsTimeout) as error:
            raise StorageFailed(f"the catalogue could not be read: {error}") from None
        return (_read(message.body), message.sequence) if message and message.body else None

    @contextmanager
    def creating(
        self,
        name: str,
        spec: dict[str, Any],
        epoch: str,
        follows: int | None = None,
        sequence: int = 0,
    ) -> Iterator[Term]:
        """Create a model that exists once the block ends; see `Catalogue.creating`.

        The first row of its log is written before that. So an append that expects no earlier
        message never succeeds by accident, as it could if the log were empty or purged completely.
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
            term.mark_durable(sequence)
        except InDoubt:
            raise  # the model may exist: keep its log and snapshots
        except BaseException:
            term.end()
            self.discard(number)
            raise

    def _new_number(self) -> int:
        try:
            return self._nats.run(self._bucket.put(_NUMBER, b""), _SECONDS)
        except (nats.errors.Error, NatsTimeout) as error:
            raise StorageFailed(f"the catalogue could not be written: {error}") from None

    def _add(self, entry: CatalogueEntry) -> None:
        value = json.dumps(entry._asdict()).encode()
        try:
            work = create_entry(self._nats, MODELS_BUCKET, _key(entry.name), value)
            self._nats.run(work, _SECONDS)
        except EntryTaken:
            raise NameTaken(f"the fleet has a model {entry.name!r} already") from None
        except NatsRefusal as error:
            raise StorageFailed(f"the catalogue could not be written: {error}") from None
        except NatsTimeout as error:
            # The entry may exist, or may still be written.
            if not self._has(entry):
                raise InDoubt(
                    f"the catalogue has not answered: {error}; check whether the model exists "
                    "before you continue"
                ) from None

    def _has(self, entry: CatalogueEntry) -> bool:
        """Return whether the bucket has an entry; also False if that cannot be determined now."""
        try:
            return self.find(entry.name) == entry
        except StorageFailed:
            return False

    def delete(self, term: Term) -> None:
        """Write the end of the log, then delete the model's entry, log and snapshots.

        If another replica has written to the log meanwhile, nothing is deleted. Raises NotLeader
        then, and StorageFailed or InDoubt for other failures.
        """
        assert isinstance(term, JetStreamTerm)
        term.write_deletion()
        entries = self._models_in_doubt()
        entry = next((entry for entry in entries if entry.number == term.model), None)
        if entry is None:
            self.discard(term.model)
            return
        try:
            self.finish_deletion(entry)
        except InDoubt:
            raise
        except StorageFailed as error:  # the log already ends with the deletion
            raise InDoubt(f"{error.detail}; the model is deleted once it can be read") from None

    def _models_in_doubt(self) -> list[CatalogueEntry]:
        """Return all models. Raises InDoubt: the log already ends with the deletion."""
        try:
            return self.models()
        except StartupError as error:
            raise InDoubt(f"{error}; the model is deleted once it can be read") from None

    def finish_deletion(self, entry: CatalogueEntry) -> None:
        """Delete the entry, log and snapshots of a model whose log ends with its deletion.

        The entry is deleted only at the revision that was read, because another model of the same
        name may have been created since. Raises StorageFailed, InDoubt.
        """
        present = self._entry(entry.name)
        if present is not None and present[0].number == entry.number:
            work = self._bucket.delete(_key(entry.name), last=present[1])
            try:
                self._nats.run(work, _SECONDS)
            except (nats.errors.Error, APIError, NatsTimeout) as error:
                if getattr(error, "err_code", None) != _WRONG_LAST_SEQUENCE:
                    raise InDoubt(
                        f"the catalogue could not be written: {error}; the model learns nothing "
                        "more, and is deleted once the catalogue answers"
                    ) from None
                # Another replica has deleted the entry meanwhile.
        self.discard(entry.number)

    def discard(self, model: int) -> None:
        """Purge the log and snapshots of a model without an entry; a failure is logged.

        This is right at any time, because no other model ever has this number.
        """
        for stream, subject in (log_location(model), (STATES, states_subject(model, ">"))):
            try:
                work = self._nats.call(f"STREAM.PURGE.{stream}", {"filter": subject})
                self._nats.run(work, _SECONDS)
            except (NatsRefusal, NatsTimeout) as error:  # the messages only take space
                logger.warning(
                    "messages of a deleted model not purged: stream=%s model=%d error=%s",
                    *(stream, model, error),
                )


def _key(name: str) -> str:
    return _MODEL + subject_token(name)


def _model_in(entry: KeyValue.Entry) -> list[tuple[CatalogueEntry, Any]]:
    """Return [(model, when it was created)] for an entry; an empty list for a deletion."""
    return [(_read(entry.value), entry.created)] if entry.operation is None else []


def _read(value: bytes | None) -> CatalogueEntry:
    return CatalogueEntry(**json.loads(value or b""))
