"""The writer: the one thread that learns. It persists, applies, publishes, acknowledges.

It takes everything that waits, appends it to the journal in one commit, lets each model absorb its
part as one block, publishes the new views, and only then answers. Nothing else touches the journal
or a learner. A request that comes again under its key is recognised before it would be written.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple

from service.diagnostics.metrics import Metrics
from service.engine.absorb import absorb_block
from service.engine.admission import Admitted, LearnRequest, Reply, admit, count_rejected
from service.engine.commits import Commits
from service.engine.duplicates import Duplicates
from service.engine.history import History
from service.engine.live_models import LiveModels, mark_broken, not_yet_learned
from service.engine.remembered_keys import RememberedKeys
from service.engine.snapshot_schedule import SnapshotSchedule
from service.errors import InDoubt, ModelBroken, RefitFailed, Refusal, ServerFailed
from service.heads.fit import Fit, Window, fit_from_record, fit_to_record
from service.model.live import Model
from service.native.threads import Threads
from service.samples.record import one_after_another
from service.settings import Settings
from service.storage.entries import Entry
from service.storage.interfaces import Storage

logger = logging.getLogger(__name__)

# Learning so many samples may take a second.
_LONG_BLOCK = 1024


def _shortest_first(committed: list[Admitted]) -> list[tuple[Model, list[Admitted]]]:
    """The blocks of a commit: those of the models with the fewest samples first.

    Each model's are in their order.
    """
    samples = Counter[Model]()
    for item in committed:
        samples[item.request.model] += item.entry.samples
    blocks = groupby(committed, lambda item: (item.request.model, item.entry.block))
    ordered = [(model, list(block)) for (model, _), block in blocks]
    return sorted(ordered, key=lambda one: samples[one[0]])


@contextmanager
def _surviving(what: str) -> Iterator[None]:
    """Log what fails after samples are durable and learned, which is no reason to end."""
    try:
        yield
    except Exception:
        logger.exception(what)


class Order(NamedTuple):
    """Something other than learning that has its place in the writer's order."""

    run: Callable[[], Any]
    answer: "asyncio.Future[Any]"


class Writer:
    """Learns for all models; all methods run on its thread, unless they say otherwise.

    acknowledge: delivers replies (a future and its result or error) and names the models
        whose view is new.
    """

    def __init__(
        self,
        storage: Storage,
        settings: Settings,
        acknowledge: Callable[[list[Reply], Iterable[Model]], None],
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._acknowledge = acknowledge
        self._keys = RememberedKeys(
            storage.answers, settings.idempotency_keys, settings.idempotency_bytes
        )
        self._threads = Threads()
        self.metrics = Metrics()
        self.models = LiveModels(storage, self._keys, settings.models)
        self.history = History(storage, self.models, self._keys)
        self._commits = Commits(storage, self.models, self._keys, self.metrics)
        self.snapshots = SnapshotSchedule(
            storage, self.models, self._keys, self.metrics, settings.snapshot_samples
        )

    def recover(self, report: Callable[[str], None]) -> None:
        """Bring back all models. report: is called with what is being done. Raises StartupError."""
        self.models.recover(self._threads.use, report)
        self._threads.use(self._settings.threads)

    def close(self) -> None:
        """Save a snapshot of every model that has learned since its last one."""
        self.snapshots.close()
        self._storage.close()

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
                self._execute(item)
        self._learn(learning)
        self.metrics.busy_since = None

    def window(self, model: Model) -> Window:
        """The samples that a refit of a model is over, copied. Raises UnknownModel, ModelBroken."""
        return self.models.usable(model).window()

    def keep_fit(self, model: Model, window: Window, fit: Fit) -> dict[str, Any]:
        """Persist, apply and publish a window's fit; the fit's description from now on.

        Raises UnknownModel, ModelBroken, RefitFailed, StorageFailed.
        """
        learner = self.models.usable(model)
        if window.epoch != learner.epoch:
            raise RefitFailed(
                f"model {model.name!r} was rolled back while the refit ran, which was over samples "
                "that it no longer knows; ask for another refit"
            )
        entry = Entry(
            model=model.id,
            sequence=learner.sequence,
            samples=0,
            block=learner.sequence,
            head=window.head,
            threads=self._settings.threads,
            record=fit_to_record(fit),
        )
        self._commits.append_fit(entry)
        try:
            learner.adopt(entry.head, fit_from_record(entry.record))
            learner.publish()
        except Exception as error:  # the journal has the fit: no state between is served
            raise mark_broken(learner, error) from None
        self._snapshot_if_due(model)
        return fit.plain

    def _execute(self, order: Order) -> None:
        try:
            result = order.run()
        except Refusal as error:
            self._acknowledge([(order.answer, error)], ())
        except Exception as failure:  # the writer serves everybody else, too
            logger.exception("an order of the writer failed")
            unknown = InDoubt(f"the server failed: {failure!r}; look at the model before you go on")
            self._acknowledge([(order.answer, unknown)], ())
        else:
            self._acknowledge([(order.answer, result)], ())

    def _learn(self, requests: list[LearnRequest]) -> None:
        if not requests:
            return
        self._settle()
        duplicates = Duplicates(self._keys)
        try:
            admitted, replies = admit(requests, duplicates, self._settings, self.models.usable)
        except Exception as failure:  # everyone who waits gets an answer
            logger.exception("requests could not be admitted")
            failed = ServerFailed(f"{failure!r}; nothing was learned")
            for request in requests:
                count_rejected(request)
            self._acknowledge([(request.answer, failed) for request in requests], ())
            return
        failures = self._commits.append(admitted, duplicates.new)
        committed = [item for item in admitted if item.entry.model not in failures]
        for item in admitted:
            if error := failures.get(item.entry.model):
                count_rejected(item.request)
                replies.append((item.request.answer, error))
        self._acknowledge_durable(committed)
        delivered: list[Reply] = []
        changed: dict[Model, None] = {}
        for model, block in _shortest_first(committed):
            if replies and sum(item.entry.samples for item in block) > _LONG_BLOCK:
                # The others need not wait for it.
                self._acknowledge(replies, list(changed))
                delivered += replies
                replies = []
            replies += self._learn_block(model, block)
            changed[model] = None
            now = time.monotonic()
            for item in block:
                self.metrics.learn.observe(now - item.request.submitted)
        self._acknowledge(replies + duplicates.replies(delivered + replies), changed)
        for model in changed:
            with _surviving(f"model {model.name}: keys were not forgotten"):
                self._keys.forget_oldest(model.id)
            self._snapshot_if_due(model)

    def _snapshot_if_due(self, model: Model) -> None:
        with _surviving(f"model {model.name}: no snapshot; the journal is kept"):
            self.snapshots.start_if_due(self.models.learner(model))

    def _settle(self) -> None:
        """Learn what commits in doubt have written after all."""
        settled = list(self._commits.settle(self._threads.use))
        if settled:
            self._threads.use(self._settings.threads)
            self._acknowledge([], settled)

    def _acknowledge_durable(self, committed: list[Admitted]) -> None:
        """Answer those who do not want to wait until their samples are learned."""
        replies: list[Reply] = []
        for request, entry, _ in committed:
            if request.durable is not None:
                answer = {
                    "model": request.model.name,
                    "sequence": entry.sequence,
                    "epoch": self.models.learner(request.model).epoch,
                    "samples": entry.samples,
                }
                replies.append((request.durable, answer))
        if replies:
            self._acknowledge(replies, ())

    def _learn_block(self, model: Model, block: list[Admitted]) -> list[Reply]:
        """Absorb and publish one block; the answers to its requests."""
        began, learner = time.monotonic(), self.models.learner(model)
        try:
            self.models.usable(model)  # an earlier block of this commit may have broken it
            samples = one_after_another([item.samples for item in block])
            answers = absorb_block(learner, [item.entry for item in block], samples)
        except Exception as error:  # its samples are durable: only this model stops
            broken = isinstance(error, ModelBroken)
            failed = not_yet_learned(model) if broken else mark_broken(learner, error)
            for item in block:
                count_rejected(item.request)
            return [(item.request.answer, failed) for item in block]
        self.metrics.absorb.observe(time.monotonic() - began)
        model.counts[block[0].entry.head].learned += sum(item.entry.samples for item in block)
        with _surviving("the answers of keys could not be kept"):
            for (request, entry, _), answer in zip(block, answers, strict=True):
                if request.key is not None:
                    self._keys.answer(entry.model, entry.sequence, answer)
        return [(item.request.answer, answer) for item, answer in zip(block, answers, strict=True)]
