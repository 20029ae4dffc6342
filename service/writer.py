"""The writer: the one thread that learns. It persists, applies, publishes, acknowledges.

It takes everything that waits, writes it to the log in one commit, lets each model absorb its
part as one block, publishes the new views, and only then answers. Nothing else touches the
log or a learner. What comes again under its key is recognised before it would be written.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from service.data_directory import log_path, snapshots_path
from service.errors import (
    ModelBroken,
    ModelExists,
    RefitFailed,
    Refusal,
    SnapshotFailed,
    StartupError,
    StorageFailed,
    UnknownModel,
)
from service.fits import Fit, Window, fit_from_record, fit_to_record
from service.history import now, restored, told_of
from service.idempotency import KeyedGroup, Keys, body_digest
from service.loading import ModelFileError, add_model, describe
from service.log import Entry, Log, Rollback
from service.metrics import Metrics
from service.model import Draft, Limits, Model
from service.records import to_record
from service.recovery import learn_block, recover
from service.samples import Samples
from service.settings import Settings
from service.snapshots import Snapshots, State
from service.spec import HeadName, ModelSpec
from service.threads import Threads

logger = logging.getLogger(__name__)

Answer: TypeAlias = dict[str, Any]
Reply: TypeAlias = tuple["asyncio.Future[Any]", Any]


class LearnRequest(NamedTuple):
    """One client's samples for one head, and the future that waits for the answer.

    submitted: when, of the monotonic clock. key: what the client calls it by
        (`service.idempotency`). durable: done as soon as it is on disk, if anybody asks; never
        of a duplicate.
    """

    model: Model
    head: HeadName
    samples: Samples
    answer: "asyncio.Future[Answer]"
    submitted: float
    key: bytes | None = None
    durable: "asyncio.Future[Answer] | None" = None


class Order(NamedTuple):
    """Something other than learning that has its place in the writer's order."""

    run: Callable[[], Any]
    answer: "asyncio.Future[Any]"


class _Logged(NamedTuple):
    request: LearnRequest
    entry: Entry


class Writer:
    """Owns the models, the log and the snapshots; all methods run on its thread.

    acknowledge: delivers replies (a future and its result or error) and names the models
        whose view is new.
    """

    def __init__(
        self, settings: Settings, acknowledge: Callable[[list[Reply], Iterable[Model]], None]
    ) -> None:
        self._settings = settings
        self._acknowledge = acknowledge
        self._log = Log(log_path(settings.data))
        self._keys = Keys(self._log, settings.idempotency_keys)
        self._snapshots = Snapshots(snapshots_path(settings.data), settings.snapshots)
        self._threads = Threads()
        self._saver = ThreadPoolExecutor(1, "snapshot")
        self._saving: dict[Model, Future[None]] = {}
        self.models: dict[str, Model] = {}
        self.metrics = Metrics()
        self.phase = "starting"

    def recover(self) -> None:
        """Bring back all models. Raises StartupError."""
        n_models = len(self._log.models())
        self.phase = f"recovering model 1 of {n_models}" if n_models else "recovering"
        for model in recover(self._log, self._snapshots, self._threads.use):
            self.models[model.name] = model
            if len(self.models) < n_models:
                self.phase = f"recovering model {len(self.models) + 1} of {n_models}"
        self._keys.load()
        self._snapshots.keep_only({model.id for model in self.models.values()})
        self._threads.use(self._settings.threads)

    def load(self, name: str, path: Path) -> None:
        """Make the model in a file a live one, unless there is one of its name.

        Raises StartupError.
        """
        if name in self.models:
            logger.info(
                "model %s: exists at sequence %d and goes on; %s is not loaded",
                name,
                self.models[name].sequence,
                path,
            )
            return
        try:
            loaded = add_model(name, path, self._log, self._snapshots)
            loaded.model.snapshot_time = time.monotonic()
        except (ModelFileError, StorageFailed, OSError) as error:
            raise StartupError(f"--load: {error}") from None
        self.models[name] = loaded.model
        logger.info("model %s: loaded %s, %s", name, path, describe(loaded))

    def close(self) -> None:
        """Save a snapshot of every model that has learned since its last one."""
        self._finish_saves(wait=True)
        for model in self.models.values():
            if model.sequence > model.snapshot_sequence:
                self._start_save(model)
        self._finish_saves(wait=True)
        self._saver.shutdown()
        self._log.close()

    def handle(self, group: list[LearnRequest | Order]) -> None:
        """Work off a group in order; requests between two orders share commit and block."""
        self.metrics.busy_since = time.monotonic()
        learning: list[LearnRequest] = []
        for item in group:
            if isinstance(item, LearnRequest):
                learning.append(item)
            else:
                self._learn(learning)
                learning = []
                self._obey(item)
        self._learn(learning)
        self.metrics.busy_since = None

    def create(self, name: str, spec: ModelSpec) -> tuple[Model, bool]:
        """The model of this name and spec, and whether it is new. Raises ModelExists."""
        model = self.models.get(name)
        if model is None:
            model = Model(self._log.create(name, spec.plain()), name, spec)
            self.models[name] = model
            return model, True
        if model.spec != spec:
            raise ModelExists(
                f"model {name!r} exists with another spec; choose another name or DELETE it first"
            )
        return model, False

    def delete(self, model: Model) -> None:
        """Forget a model, its log and its snapshots. Raises UnknownModel, StorageFailed."""
        if self.models.get(model.name) is not model:
            raise UnknownModel(f"model {model.name!r} was deleted")
        self._log.delete(model.id)
        self._keys.forget(model.id)
        del self.models[model.name]
        self._snapshots.delete(model.id)

    def window(self, model: Model) -> Window:
        """The samples that a refit of a model is over, copied. Raises UnknownModel, ModelBroken."""
        self._check_living(model)
        return model.window()

    def keep(self, model: Model, window: Window, fit: Fit) -> dict[str, Any]:
        """Persist, apply and publish a window's fit; how it is described from now on.

        Raises UnknownModel, ModelBroken, RefitFailed, StorageFailed.
        """
        self._check_living(model)
        if window.line != model.line:
            raise RefitFailed(
                f"model {model.name!r} was rolled back while the refit ran, which was over samples "
                "that it no longer knows; ask for another refit"
            )
        entry = Entry(
            model=model.id,
            sequence=model.sequence,
            samples=0,
            block=model.sequence,
            head="semiparametric",
            threads=self._settings.threads,
            record=fit_to_record(fit),
        )
        self._log.append_fit(entry)
        try:
            model.adopt(fit_from_record(entry.record))
            model.publish([entry.head])
        except Exception as error:
            raise self._break(model, error) from None
        self._save_when_due(model)
        return fit.plain

    def snapshot(self, model: Model) -> tuple[int, "Future[None]"]:
        """Begin to save a snapshot; its sequence, and what is done once it is on disk.

        Raises UnknownModel, ModelBroken, SnapshotFailed.
        """
        self._check_living(model)
        self.finish_saves()
        if model in self._saving:
            raise SnapshotFailed(f"a snapshot of model {model.name!r} is being written; try again")
        self._start_save(model)
        if model not in self._saving:
            raise SnapshotFailed("the log could not be written; nothing is lost")
        return model.sequence, self._saving[model]

    def finish_saves(self) -> None:
        """Note the snapshots that have been written by now."""
        self._finish_saves(wait=False)

    def history(self, model: Model) -> list[dict[str, Any]]:
        """The snapshots of a model, newest first. It reads their files: any thread may call it."""
        found = (told_of(model, self._snapshots, at) for at in self._snapshots.sequences(model.id))
        return [told for told in found if told is not None]

    def roll_back(self, model: Model, sequence: int) -> dict[str, Any]:
        """Persist, apply and publish that a model goes back to a snapshot; its description.

        A broken model learns again: what broke it is left behind. Raises UnknownModel,
        UnknownSnapshot, UnusableSnapshot, StorageFailed.
        """
        if self.models.get(model.name) is not model:
            raise UnknownModel(f"model {model.name!r} was deleted")
        content, source = restored(model, self._snapshots, sequence)
        # Behind a broken model's sequence stand samples that it could not learn.
        learned = model.sequence
        at = max(learned, self._log.end(model.id))
        rolled_back = {"to": sequence, "at": at, "time": now()}
        # What is behind a rollback is not replayed, so its answers must be known.
        self._keys.write()
        self._log.append_rollback(model.id, Rollback(rolled_back, content), learned)
        self._keys.forget_unlearned(model.id, learned)
        try:
            model.roll_back(source, rolled_back)
            model.publish()
        except Exception as error:
            raise self._break(model, error) from None
        logger.info("model %s: rolled back to %d at sequence %d", model.name, sequence, at)
        return model.describe()

    def _obey(self, order: Order) -> None:
        try:
            result = order.run()
        except Refusal as error:
            self._acknowledge([(order.answer, error)], ())
        else:
            self._acknowledge([(order.answer, result)], ())

    def _learn(self, requests: list[LearnRequest]) -> None:
        keyed = KeyedGroup(self._keys)
        logged, replies = self._check(requests, keyed)
        try:
            if logged:
                began = time.monotonic()
                entries = [item.entry for item in logged]
                self._log.append(entries, self._keys.with_answers(keyed.new))
                self.metrics.commit.observe(time.monotonic() - began)
        except StorageFailed as error:
            logger.error("%s", error.detail)
            for item in logged:
                _count_rejected(item.request)
            replies += [(item.request.answer, error) for item in logged]
            self._acknowledge(replies + keyed.replies(replies), ())
            return
        self._keys.committed(keyed.new)
        self._tell_durable(logged)
        touched: dict[Model, None] = {}
        for (model, _), items in groupby(logged, key=lambda i: (i.request.model, i.entry.block)):
            replies += self._learn_block(model, list(items))
            touched[model] = None
        now = time.monotonic()
        for item in logged:
            self.metrics.learn.observe(now - item.request.submitted)
        self._acknowledge(replies + keyed.replies(replies), touched)
        for model in touched:
            self._keys.forget_oldest(model.id)
            self._save_when_due(model)

    def _tell_durable(self, logged: list[_Logged]) -> None:
        """Acknowledge to those who do not want to wait until their samples are learned."""
        replies: list[Reply] = []
        for request, entry in logged:
            if request.durable is not None:
                told = {"model": request.model.name, "sequence": entry.sequence}
                replies.append((request.durable, {**told, "samples": entry.samples}))
        if replies:
            self._acknowledge(replies, ())

    def _check(
        self, requests: list[LearnRequest], keyed: KeyedGroup
    ) -> tuple[list[_Logged], list[Reply]]:
        """Entries for what can be learned, model by model and in order; refusals of the rest.

        Duplicates are in neither; `keyed` answers them.
        """
        by_model: dict[Model, list[LearnRequest]] = {}
        for request in requests:
            by_model.setdefault(request.model, []).append(request)
        limits = Limits(self._settings.classes, self._settings.features)
        logged: list[_Logged] = []
        refused: list[Reply] = []
        for model, of_model in by_model.items():
            draft = Draft(model)
            accepted: list[tuple[LearnRequest, int]] = []
            for request in of_model:
                try:
                    self._check_living(model)
                    if request.key is None:
                        model.check(request.head, request.samples, draft, limits)
                    elif not self._is_new(request, request.key, draft, limits, keyed):
                        continue
                except Refusal as error:
                    refused.append((request.answer, error))
                    _count_rejected(request)
                else:
                    accepted.append((request, draft.sequence))
            for _, block in groupby(accepted, key=lambda item: item[0].head):
                logged += self._entries(list(block))
        return logged, refused

    def _is_new(
        self, request: LearnRequest, key: bytes, draft: Draft, limits: Limits, keyed: KeyedGroup
    ) -> bool:
        """Check a request with a key, unless it came before. Raises what `Model.check` does."""
        model, digest = request.model, body_digest(request.head, request.samples)
        if keyed.recognise(model.id, key, digest, request.answer):
            model.counts[request.head].count_duplicates(len(request.samples.y))
            return False
        model.check(request.head, request.samples, draft, limits)
        keyed.add(model.id, draft.sequence, key, digest, request.answer)
        return True

    def _entries(self, block: list[tuple[LearnRequest, int]]) -> list[_Logged]:
        """Log entries of consecutive requests for one head of one model: one block."""
        return [
            _Logged(
                request,
                Entry(
                    model=request.model.id,
                    sequence=sequence,
                    samples=len(request.samples.y),
                    block=block[-1][1],
                    head=request.head,
                    threads=self._settings.threads,
                    record=to_record(request.samples),
                ),
            )
            for request, sequence in block
        ]

    def _check_living(self, model: Model) -> None:
        """Raise for a model that was deleted or broke while the request waited."""
        if self.models.get(model.name) is not model:
            raise UnknownModel(f"model {model.name!r} was deleted")
        if model.broken:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")

    def _break(self, model: Model, error: Exception) -> ModelBroken:
        """Let a model learn no more, as its state is between two entries of the log."""
        logger.exception("model %s: learning failed", model.name)
        model.broken = f"learning failed behind sequence {model.sequence}: {error}"
        return ModelBroken(f"model {model.name!r}: {model.broken}")

    def _learn_block(self, model: Model, block: list[_Logged]) -> list[Reply]:
        """Absorb and publish one block; the answers to its requests."""
        began = time.monotonic()
        try:
            self._check_living(model)
            answers = learn_block(model, [item.entry for item in block])
        except Exception as error:
            broken = error if isinstance(error, ModelBroken) else self._break(model, error)
            for item in block:
                _count_rejected(item.request)
            return [(item.request.answer, broken) for item in block]
        self.metrics.absorb.observe(time.monotonic() - began)
        model.counts[block[0].entry.head].learned += sum(item.entry.samples for item in block)
        for (request, entry), answer in zip(block, answers, strict=True):
            if request.key is not None:
                self._keys.answer(entry.model, entry.sequence, answer)
        return [(item.request.answer, told) for item, told in zip(block, answers, strict=True)]

    def _save_when_due(self, model: Model) -> None:
        """Copy the state here, write it on another thread: learning goes on meanwhile."""
        self._finish_saves(wait=False)
        # Counted from the last attempt: a full disk is not tried again with every group.
        # A fit weighs as much as the samples that it was made of.
        learned = model.sequence - max(model.snapshot_sequence, model.snapshot_attempt)
        learned += model.fitted
        if learned >= self._settings.snapshot_samples and model not in self._saving:
            self._start_save(model)

    def _start_save(self, model: Model) -> None:
        if model.broken:
            return
        model.snapshot_attempt, model.fitted = model.sequence, 0
        try:
            # What is behind a snapshot is not replayed, so its answers must be known.
            self._keys.write()
        except StorageFailed as error:
            logger.error("model %s: no snapshot: %s; the log is kept", model.name, error)
            return
        state = State(*model.state())
        self._saving[model] = self._saver.submit(self._snapshots.save, model.id, state)

    def _finish_saves(self, wait: bool) -> None:
        """Note the snapshots that are written and drop the log behind the newest two.

        Those before them are for going back to; to keep the log for them as well would take
        many times the room, and a fall-back needs one.
        """
        for model, saving in list(self._saving.items()):
            if not (wait or saving.done()):
                continue
            del self._saving[model]
            if self.models.get(model.name) is not model:
                self._snapshots.delete(model.id)
                continue
            try:
                saving.result()
                model.snapshot_time = time.monotonic()
                model.snapshot_sequence, *older = self._snapshots.sequences(model.id)
                if older:
                    self._log.drop(model.id, older[0])
                self.metrics.snapshots_saved += 1
            except (OSError, MemoryError, StorageFailed) as error:
                self.metrics.snapshots_failed += 1
                logger.error("model %s: no snapshot: %s; the log is kept", model.name, error)


def _count_rejected(request: LearnRequest) -> None:
    request.model.counts[request.head].rejected += len(request.samples.y)
