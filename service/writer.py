"""The writer: the one thread that learns. It persists, applies, publishes, acknowledges.

It takes everything that waits, writes it to the log in one commit, lets each model absorb its
part as one block, publishes the new views, and only then answers. Nothing else touches the
log or a learner. What comes again under its key is recognised before it would be written.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from service.admission import Admitted, LearnRequest, Reply, admit, count_rejected
from service.data_directory import log_path, snapshots_path
from service.errors import (
    ModelBroken,
    ModelExists,
    RefitFailed,
    Refusal,
    StartupError,
    StorageFailed,
    UnknownModel,
)
from service.fits import Fit, Window, fit_from_record, fit_to_record
from service.history import now, restored, told_of
from service.idempotency import KeyedGroup, Keys
from service.loading import ModelFileError, add_model, describe
from service.log import Log
from service.log_rows import Entry, Rollback
from service.metrics import Metrics
from service.model import Model
from service.recovery import learn_block, recover
from service.saves import Saves
from service.settings import Settings
from service.snapshots import Snapshots
from service.spec import ModelSpec
from service.threads import Threads

logger = logging.getLogger(__name__)


class Order(NamedTuple):
    """Something other than learning that has its place in the writer's order."""

    run: Callable[[], Any]
    answer: "asyncio.Future[Any]"


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
        self.models: dict[str, Model] = {}
        self.metrics = Metrics()
        self.saves = Saves(
            self._log,
            self._keys,
            self._snapshots,
            self.metrics,
            settings.snapshot_samples,
            self._lives,
        )
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
        self.saves.close(list(self.models.values()))
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
        if not self._lives(model):
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
        self.saves.start_due(model)
        return fit.plain

    def snapshot(self, model: Model) -> tuple[int, "Future[None]"]:
        """Begin to save a snapshot; its sequence, and what is done once it is on disk.

        Raises UnknownModel, ModelBroken, SnapshotFailed.
        """
        self._check_living(model)
        return model.sequence, self.saves.start(model)

    def history(self, model: Model) -> list[dict[str, Any]]:
        """The snapshots of a model, newest first. It reads their files: any thread may call it."""
        found = (told_of(model, self._snapshots, at) for at in self._snapshots.sequences(model.id))
        return [told for told in found if told is not None]

    def roll_back(self, model: Model, sequence: int) -> dict[str, Any]:
        """Persist, apply and publish that a model goes back to a snapshot; its description.

        A broken model learns again: what broke it is left behind. Raises UnknownModel,
        UnknownSnapshot, UnusableSnapshot, StorageFailed.
        """
        if not self._lives(model):
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
        logged, replies = admit(requests, keyed, self._settings, self._check_living)
        try:
            if logged:
                began = time.monotonic()
                entries = [item.entry for item in logged]
                self._log.append(entries, self._keys.with_answers(keyed.new))
                self.metrics.commit.observe(time.monotonic() - began)
        except StorageFailed as error:
            logger.error("%s", error.detail)
            for item in logged:
                count_rejected(item.request)
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
            self.saves.start_due(model)

    def _tell_durable(self, logged: list[Admitted]) -> None:
        """Acknowledge to those who do not want to wait until their samples are learned."""
        replies: list[Reply] = []
        for request, entry in logged:
            if request.durable is not None:
                told = {"model": request.model.name, "sequence": entry.sequence}
                replies.append((request.durable, {**told, "samples": entry.samples}))
        if replies:
            self._acknowledge(replies, ())

    def _lives(self, model: Model) -> bool:
        return self.models.get(model.name) is model

    def _check_living(self, model: Model) -> None:
        """Raise for a model that was deleted or broke while the request waited."""
        if not self._lives(model):
            raise UnknownModel(f"model {model.name!r} was deleted")
        if model.broken:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")

    def _break(self, model: Model, error: Exception) -> ModelBroken:
        """Let a model learn no more, as its state is between two entries of the log."""
        logger.exception("model %s: learning failed", model.name)
        model.broken = f"learning failed behind sequence {model.sequence}: {error}"
        return ModelBroken(f"model {model.name!r}: {model.broken}")

    def _learn_block(self, model: Model, block: list[Admitted]) -> list[Reply]:
        """Absorb and publish one block; the answers to its requests."""
        began = time.monotonic()
        try:
            self._check_living(model)
            answers = learn_block(model, [item.entry for item in block])
        except Exception as error:
            broken = error if isinstance(error, ModelBroken) else self._break(model, error)
            for item in block:
                count_rejected(item.request)
            return [(item.request.answer, broken) for item in block]
        self.metrics.absorb.observe(time.monotonic() - began)
        model.counts[block[0].entry.head].learned += sum(item.entry.samples for item in block)
        for (request, entry), answer in zip(block, answers, strict=True):
            if request.key is not None:
                self._keys.answer(entry.model, entry.sequence, answer)
        return [(item.request.answer, told) for item, told in zip(block, answers, strict=True)]
