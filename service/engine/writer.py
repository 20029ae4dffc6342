"""The writer: the one thread that learns. It persists, applies, publishes, acknowledges.

It takes everything that waits, appends it to the journal in one commit, lets each model absorb its
part as one block, publishes the new views, and only then answers. A large request it absorbs in
parts (`engine.turns`), and takes what came for other models between two of them. Nothing else
touches the journal or a learner. A request that comes again under its key is recognised before it
would be written.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from service.diagnostics.metrics import Metrics
from service.engine.absorb import remember
from service.engine.admission import Admitted, LearnRequest, Reply, admit, count_rejected
from service.engine.challengers import Challengers
from service.engine.commits import Commits
from service.engine.duplicates import Duplicates
from service.engine.history import History
from service.engine.late_labels import Found, LabelRequest, count_unlearned
from service.engine.leading import Leading
from service.engine.live_models import LiveModels, mark_broken
from service.engine.model_files import LoadedModel
from service.engine.predictions import Remembered, RememberRequest
from service.engine.promotion import Promotion
from service.engine.recovery_order import Room
from service.engine.remembered_keys import RememberedKeys
from service.engine.snapshot_schedule import SnapshotSchedule
from service.engine.turns import Turns, Work
from service.engine.uploads import filled
from service.errors import InDoubt, NotLeader, RefitFailed, Refusal, ServerFailed, StorageFailed
from service.heads.fit import Fit, Window, fit_from_record, fit_to_record
from service.model.live import Model
from service.native.threads import Threads
from service.settings import Settings, usable_bytes
from service.spec.following import Start
from service.spec.model import ModelSpec
from service.storage.entries import Entry
from service.storage.interfaces import Storage
from service.storage.sqlite_file import now

logger = logging.getLogger(__name__)

# Learning so many samples may take a second.
_LONG_BLOCK = 1024


def _shortest_first(committed: list[Admitted], duplicates: Duplicates) -> list[Work]:
    """What each model has to learn of a commit: the fewest samples first."""
    blocks = dict[Model, list[list[Admitted]]]()
    for (model, _), block in groupby(
        committed, lambda item: (item.request.model, item.parts[0].entry.block)
    ):
        blocks.setdefault(model, []).append(list(block))
    works = [Work(model, of_model, duplicates) for model, of_model in blocks.items()]
    return sorted(works, key=lambda work: work.samples)


@contextmanager
def _surviving(what: str) -> Iterator[None]:
    """Log what fails after samples are durable and learned, which is no reason to end."""
    try:
        yield
    except Exception:
        logger.exception(what)


class Order(NamedTuple):
    """Something other than learning that has its place in the order of a model's requests.

    model: None of an order that is about no model that there is.
    """

    run: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    model: Model | None


Item: TypeAlias = LearnRequest | LabelRequest | RememberRequest | Order


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
        self.history = History(storage, self.models, self._keys, self._one_thread)
        self._commits = Commits(storage, self.models, self._keys, self.metrics)
        self._turns = Turns(self.models, self.metrics, self._keep_answer)
        self.snapshots = SnapshotSchedule(
            storage,
            self.models,
            self._keys,
            self.metrics,
            settings.snapshot_samples,
            self._commits,
            self._one_thread,
        )
        self.challengers = Challengers(
            storage, self.models, self._commits, self.snapshots, settings, self._threads
        )
        self.promotion = Promotion(
            storage.journal,
            self.models,
            self.challengers,
            self.history,
            self.snapshots,
            self._keys,
            self._one_thread,
        )

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        """Within, products on one thread, as recovery loads a snapshot."""
        try:
            with self._threads.using(1):
                yield
        finally:
            self._threads.use(self._settings.threads)

    def recover(self, report: Callable[[str], None]) -> None:
        """Bring back all models, unless they are a fleet's, which come as they are asked for.

        report: is called with what is being done. Raises StartupError.
        """
        if self._settings.fleet:
            self._threads.use(self._settings.threads)
            return
        processors = len(os.sched_getaffinity(0))
        room = Room(
            max(1, processors // self._settings.threads),
            self._settings.memory or usable_bytes() // 4,
        )
        self.models.recover(self._threads.use, room, report)
        self.challengers.recover()
        self._threads.use(self._settings.threads)

    def close(self) -> None:
        """Save a snapshot of every model that has learned since its last one."""
        self.snapshots.close()
        self._storage.close()

    def handle(self, group: "list[Item]") -> None:
        """Work off a group to its end."""
        self.begin(group)
        self._finish()

    def begin(self, group: "list[Item]") -> None:
        """Work off a group in order; requests between two orders share commit and block.

        Large requests are only begun: `go_on` until nothing is `busy`.
        """
        self.metrics.busy_since = time.monotonic()
        learning: list[LearnRequest | LabelRequest | RememberRequest] = []
        for item in group:
            if isinstance(item, Order):
                self._learn(learning)
                learning = []
                while item.model in self.busy:
                    self.go_on()
                self._execute(item)
            else:
                learning.append(item)
        self._learn(learning)
        self.metrics.busy_since = None

    @property
    def busy(self) -> set[Model]:
        """The models that have begun a large request, of which nothing else may be begun."""
        return self._turns.busy

    def waiting(self) -> list[LearnRequest | LabelRequest]:
        """The requests that have begun and have no answer yet."""
        return self._turns.waiting()

    def go_on(self) -> None:
        """Learn a part of a large request."""
        self.metrics.busy_since = time.monotonic()
        work, replies = self._turns.take()
        if replies:
            self._acknowledge(replies + work.duplicates.replies(replies), [work.model])
        if not work.blocks:
            self._after_learning(work.model)
        self.metrics.busy_since = None

    def _finish(self) -> None:
        while self.busy:
            self.go_on()

    def window(self, model: Model) -> Window:
        """The samples that a refit of a model is over, copied. Raises UnknownModel, ModelBroken."""
        return self.models.usable(model).window()

    def leading(
        self, in_order: Callable[[Model | None, Callable[[], Any]], Awaitable[Any]]
    ) -> Leading:
        """Which models of a fleet are learned here; see `Leading`."""
        return Leading(self._storage, self.models, self._keys, self._threads.using, in_order)

    def add(self, name: str, loaded: LoadedModel) -> tuple[Model, bool]:
        """Add a model that was uploaded; see `LiveModels.add`."""
        if self._settings.threads > 1:
            with self._one_thread():  # as recovery does
                loaded = filled(name, loaded.state, loaded.model.spec)
        return self.models.add(name, loaded)

    def follow(
        self, name: str, champion: Model, spec: ModelSpec, start: Start
    ) -> tuple[Model, bool]:
        """A model that follows another one, and whether it is new; see `Challengers.make`."""
        with self._one_thread():  # as recovery does
            return self.challengers.make(name, champion, spec, start)

    def delete(self, model: Model) -> None:
        """Delete a model with its journal and snapshots; those that follow it are free.

        Raises UnknownModel, StorageFailed, SnapshotFailed.
        """
        followers = self.challengers.followers(model)
        with self.challengers.paused(followers):
            self.challengers.keep(model)
            self.models.delete(model)
            self.challengers.free(model)
        self.challengers.forget(model)

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
            kind="fit",
        )
        self._commits.append_alone(entry)
        try:
            learner.adopt(entry.head, fit_from_record(entry.record))
            learner.publish()
        except Exception as error:  # the journal has the fit: no state between is served
            raise mark_broken(learner, error) from None
        self._snapshot_if_due(model)
        return fit.plain

    def _execute(self, order: Order) -> None:
        try:
            with self.challengers.paused([order.model]):
                result = order.run()
        except Refusal as error:
            if isinstance(error, NotLeader) and order.model is not None:
                self.models.release(order.model)
            self._acknowledge([(order.answer, error)], ())
        except Exception as failure:  # the writer serves everybody else, too
            logger.exception("an order of the writer failed")
            unknown = InDoubt(f"the server failed: {failure!r}; look at the model before you go on")
            self._acknowledge([(order.answer, unknown)], ())
        else:
            self._acknowledge(
                [(order.answer, result)], () if order.model is None else [order.model]
            )

    def _learn(self, requests: list[LearnRequest | LabelRequest | RememberRequest]) -> None:
        if not requests:
            return
        self._settle()
        duplicates = Duplicates(self._keys)
        try:
            admission = admit(requests, duplicates, self._settings, self.models.usable, now())
        except Exception as failure:  # everyone who waits gets an answer
            logger.exception("requests could not be admitted")
            failed = ServerFailed(f"{failure!r}; nothing was learned")
            for request in requests:
                if not isinstance(request, RememberRequest):
                    count_rejected(request)
            self._acknowledge([(request.answer, failed) for request in requests], ())
            return
        failures = self._commits.append(admission.entries, duplicates.new)
        committed = [item for item in admission.admitted if item.request.model.id not in failures]
        replies = admission.refused
        for item in admission.admitted:
            if error := failures.get(item.request.model.id):
                count_rejected(item.request)
                replies.append((item.request.answer, error))
        self._acknowledge_durable(committed)
        changed: dict[Model, None] = {}
        replies += self._remember(admission.remembered, failures, changed)
        replies += self._settled(admission.settled, failures)
        delivered: list[Reply] = []
        for work in _shortest_first(committed, duplicates):
            if work.large:
                self._turns.leave(work)
                continue
            if replies and work.samples > _LONG_BLOCK:
                # The others need not wait for it.
                self._acknowledge(replies, list(changed))
                delivered += replies
                replies = []
            while work.blocks:
                replies += self._turns.turn(work)
            changed[work.model] = None
        self._acknowledge(replies + duplicates.replies(delivered + replies), changed)
        for model in changed:
            self._after_learning(model)

    def _remember(
        self,
        remembered: list[Remembered],
        failures: Mapping[int, StorageFailed],
        changed: dict[Model, None],
    ) -> Iterator[Reply]:
        """Let predicted rows wait that are durable; the answers to the predictions."""
        for request, entry, told in remembered:
            model = request.model
            try:
                if error := failures.get(model.id):
                    raise error
                if entry is not None:
                    remember(self.models.usable(model), entry)
            except Refusal as refusal:
                yield request.answer, refusal
            except Exception as error:  # the journal has them: no state between is served
                yield request.answer, mark_broken(self.models.learner(model), error)
            else:
                changed[model] = None
                yield request.answer, told

    def _settled(
        self, settled: list[tuple[LabelRequest, Found]], failures: Mapping[int, StorageFailed]
    ) -> Iterator[Reply]:
        """The answers to labels none of which is learned, now that those before are durable."""
        for request, found in settled:
            model, learner = request.model, self.models.learner(request.model)
            if error := failures.get(model.id):
                count_rejected(request)
                yield request.answer, error
            else:
                count_unlearned(request, found)
                yield request.answer, found.answer(model, learner.sequence, learner.epoch)

    def _after_learning(self, model: Model) -> None:
        with _surviving(f"model {model.name}: keys were not forgotten"):
            self._keys.forget_oldest(model.id)
        self._snapshot_if_due(model)

    def _snapshot_if_due(self, model: Model) -> None:
        with _surviving(f"model {model.name}: no snapshot; the journal is kept"):
            self.snapshots.start_if_due(self.models.learner(model))

    def _settle(self) -> None:
        """Learn what commits in doubt have written after all."""
        if not self._commits.in_doubt:
            return
        with self.challengers.all_paused():
            settled = list(self._commits.settle(self._threads.using))
        if settled:
            self._threads.use(self._settings.threads)
            self._acknowledge([], settled)

    def _acknowledge_durable(self, committed: list[Admitted]) -> None:
        """Answer those who do not want to wait until their samples are learned."""
        replies: list[Reply] = []
        for item in committed:
            request = item.request
            if isinstance(request, LearnRequest) and request.durable is not None:
                answer = {
                    "model": request.model.name,
                    "sequence": item.sequence,
                    "epoch": self.models.learner(request.model).epoch,
                    "samples": len(request.samples.y),
                }
                replies.append((request.durable, answer))
        if replies:
            self._acknowledge(replies, ())

    def _keep_answer(self, item: Admitted, answer: dict[str, Any]) -> None:
        if isinstance(item.request, LearnRequest) and item.request.key is not None:
            with _surviving("the answers of keys could not be kept"):
                self._keys.answer(item.request.model.id, item.sequence, answer)
