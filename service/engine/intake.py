"""The intake: requests of samples are checked, counted and put into the queue."""

import asyncio
import time

from wolfstream.service.engine.gathering import Gathering
from wolfstream.service.engine.group_queue import GroupQueue
from wolfstream.service.engine.late_labels import LabelRequest
from wolfstream.service.engine.learn_request import Answer, LearnRequest
from wolfstream.service.engine.phase import Phase
from wolfstream.service.engine.predictions import RememberRequest
from wolfstream.service.engine.queue_items import Item
from wolfstream.service.errors import Follows, Refusal
from wolfstream.service.model.live import Model
from wolfstream.service.model.moment import Moment
from wolfstream.service.samples.ids import LateLabels, RowId
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows


class Intake:
    """Takes requests into the writer's queue. Used on the event loop."""

    def __init__(self, queue: GroupQueue[Item], phase: Phase) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue, self._phase = queue, phase
        self._gathering = Gathering(queue.release)

    def submit(
        self,
        model: Model,
        head: HeadName,
        samples: Samples,
        key: bytes | None = None,
        durable: "asyncio.Future[Answer] | None" = None,
        expected: tuple[Moment, ...] = (),
    ) -> "asyncio.Future[Answer]":
        """Queue samples; the future is done once they are on disk, learned and published.

        key: a request that came under it before is not learned again, but gets the first answer
        with `"replayed": true`. durable: done, with the sequence, once the samples are on disk.
        expected: see `LearnRequest`.

        Requests are learned in the order of these calls. Raises NotReady, QueueFull and
        ModelBroken at once; the future raises what the writer finds.
        """
        answer: asyncio.Future[Answer] = self._loop.create_future()
        now = time.monotonic()
        self.queue(LearnRequest(model, head, samples, answer, now, key, durable, expected))
        return answer

    def queue(self, request: LearnRequest) -> None:
        """Queue a request of samples with any `Waiter`; otherwise like `submit`."""
        # A broken model can still answer a request that was learned under its key before.
        self._queue_samples(request, even_broken=request.key is not None)

    def label(
        self,
        model: Model,
        head: HeadName,
        labels: LateLabels,
        expected: tuple[Moment, ...] = (),
    ) -> "asyncio.Future[Answer]":
        """Queue labels of predicted rows; the future is done once they are learned or settled.

        Otherwise as `submit`.
        """
        answer: asyncio.Future[Answer] = self._loop.create_future()
        request = LabelRequest(model, head, labels, answer, time.monotonic(), expected)
        self._queue_samples(request)
        return answer

    def check_remembers(self, model: Model) -> None:
        """Raise Follows, NotReady or ModelBroken unless rows may wait for their labels."""
        _check_follows_none(model)
        self._phase.check_usable(model)

    async def remember(
        self, model: Model, ids: list[RowId], rows: Rows, response: Answer
    ) -> Answer:
        """Keep predicted rows until their labels come; return the prediction's answer once durable.

        response: that answer; if the same rows had these ids before, the first answer is returned.

        Raises NotReady, QueueFull, ModelBroken, Invalid, TooLarge, IdTaken, StorageFailed.
        """
        self.check_remembers(model)
        waiting: asyncio.Future[Answer] = self._loop.create_future()
        request = RememberRequest(model, ids, rows, response, waiting, time.monotonic())
        self._put(request)
        return await waiting

    def _queue_samples(
        self, request: LearnRequest | LabelRequest, even_broken: bool = False
    ) -> None:
        """Queue and count a request of samples. Raises NotReady, QueueFull."""
        _check_follows_none(request.model)
        counts = request.model.counts[request.head]
        counts.received += request.size
        try:
            self._phase.check() if even_broken else self._phase.check_usable(request.model)
            self._put(request)
        except Refusal:
            counts.refused += request.size
            raise

    def _put(self, request: LearnRequest | LabelRequest | RememberRequest) -> None:
        """Queue a request beside those that come with it. Raises QueueFull."""
        self._queue.put(request, request.size, request.n_bytes, request.model, held=True)
        self._gathering.begin()


def _check_follows_none(model: Model) -> None:
    """Raise Follows for a model that follows another one, and takes no requests."""
    if (champion := model.champion) is not None:
        raise Follows(
            f"model {model.name!r} follows {champion.name!r} and learns what that learns: send "
            f"samples and labels to {champion.name!r}, or promote {model.name!r}"
        )
