"""Accepts requests of samples and labels: checks, counts and queues them.

The writer may take queued requests only after a short delay, so that they share one commit. A
commit costs as much for one small request as for several. While the event loop is busy, it is about
to queue more requests; a writer that woke at the first of them would commit it alone, and its
Python code would slow the event loop down.
"""

import asyncio
import time
from collections.abc import Callable

from wolfstream.service.engine.group_queue import GroupQueue
from wolfstream.service.engine.queue_items import (
    Item,
    LabelRequest,
    LearnRequest,
    Response,
    WaitingRowsRequest,
)
from wolfstream.service.engine.readiness import Phase
from wolfstream.service.errors import Follows, Refusal
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.ids import LateLabels, RowId
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows

# Clients that were answered together have sent their next requests once this many turns of the
# event loop have brought none. An idle loop needs about ten microseconds for them.
_TURNS = 4
# A bound for a busy loop, which receives 32 single samples in about 4 ms. If only some of them
# shared a commit, the loop would receive the others while the writer works. Each thread would then
# wait for the interpreter's lock, and a commit would take 3 ms instead of 1.
_MOST_SECONDS = 0.006


class Acceptance:
    """Puts requests into the writer's queue. Used on the event loop.

    Args:
        queue: of the writer.
        phase: of the server; it decides whether requests are accepted.
    """

    def __init__(self, queue: GroupQueue[Item], phase: Phase) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue, self._phase = queue, phase
        self._delay = GroupDelay(queue.release)

    def submit(
        self,
        model: Model,
        head: HeadName,
        samples: Samples,
        key: bytes | None = None,
        durable: "asyncio.Future[Response] | None" = None,
        expected: tuple[Revision, ...] = (),
    ) -> "asyncio.Future[Response]":
        """Queue samples; the future is done once they are on disk, learned and published.

        Requests are learned in the order of these calls.

        Args:
            model: that learns.
            head: that the samples are for.
            samples: checked rows and labels.
            key: an idempotency key. A later request with the same key and samples is not learned,
                but gets the first answer with `"replayed": true`.
            durable: done, with the sequence, as soon as the samples are on disk.
            expected: revisions, one of which the model must be at; () for any.

        Raises NotReady, QueueFull, ModelBroken and Follows at once; the future raises what the
        writer raises.
        """
        answer: asyncio.Future[Response] = self._loop.create_future()
        now = time.monotonic()
        self.queue(LearnRequest(model, head, samples, answer, now, key, durable, expected))
        return answer

    def queue(self, request: LearnRequest) -> None:
        """Queue a request with a `Waiter` of its own; otherwise like `submit`."""
        # A broken model can still repeat the answer to a request that it learned under this key.
        self._queue_samples(request, even_broken=request.key is not None)

    def label(
        self,
        model: Model,
        head: HeadName,
        labels: LateLabels,
        expected: tuple[Revision, ...] = (),
    ) -> "asyncio.Future[Response]":
        """Queue labels of predicted rows; the future is done once each is learned or refused.

        Otherwise like `submit`.
        """
        answer: asyncio.Future[Response] = self._loop.create_future()
        request = LabelRequest(model, head, labels, answer, time.monotonic(), expected)
        self._queue_samples(request)
        return answer

    def check_stores_rows(self, model: Model) -> None:
        """Raise Follows, NotReady or ModelBroken if predicted rows cannot wait for labels."""
        _check_follows_none(model)
        self._phase.check_usable(model)

    async def store_waiting_rows(
        self, model: Model, ids: list[RowId], rows: Rows, response: Response
    ) -> Response:
        """Let predicted rows wait for their labels; return the prediction's response once durable.

        Args:
            model: that predicted.
            ids: one for each row, by which labels will name it.
            rows: that were predicted.
            response: to the prediction. If the same rows had these ids before, the response of that
                time is returned instead.

        Raises NotReady, QueueFull, ModelBroken, Follows, Invalid, TooLarge, IdTaken, StorageFailed.
        """
        self.check_stores_rows(model)
        waiting: asyncio.Future[Response] = self._loop.create_future()
        request = WaitingRowsRequest(model, ids, rows, response, waiting, time.monotonic())
        self._put(request)
        return await waiting

    def _queue_samples(
        self, request: LearnRequest | LabelRequest, even_broken: bool = False
    ) -> None:
        """Count a request, and queue it unless it is refused. Raises NotReady, QueueFull."""
        _check_follows_none(request.model)
        counts = request.model.counts[request.head]
        counts.received += request.size
        try:
            self._phase.check() if even_broken else self._phase.check_usable(request.model)
            self._put(request)
        except Refusal:
            counts.refused += request.size
            raise

    def _put(self, request: LearnRequest | LabelRequest | WaitingRowsRequest) -> None:
        """Queue a request together with those that come at the same time. Raises QueueFull."""
        self._queue.put(request, request.size, request.n_bytes, request.model, deferred=True)
        self._delay.begin()


class GroupDelay:
    """Calls `release` a few turns of the event loop after the last `begin`. Used on the event loop.

    Args:
        release: lets the writer take what was queued; see `GroupQueue.release`.
    """

    def __init__(self, release: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._release = release
        self._turns_left = 0  # 0: no delay is running
        self._since = 0.0  # when the running delay began, by the monotonic clock

    def begin(self) -> None:
        """Begin the delay; if it is running, wait as many turns again."""
        if not self._turns_left:
            self._since = time.monotonic()
            self._loop.call_soon(self._turn)
        self._turns_left = _TURNS

    def _turn(self) -> None:
        self._turns_left -= 1
        if self._turns_left and time.monotonic() - self._since < _MOST_SECONDS:
            self._loop.call_soon(self._turn)
        else:
            self._turns_left = 0
            self._release()


def _check_follows_none(model: Model) -> None:
    """Raise Follows for a challenger: it learns from its champion's log and takes no requests."""
    if (champion := model.champion) is not None:
        raise Follows(
            f"model {model.name!r} follows {champion.name!r} and learns what that learns: send "
            f"samples and labels to {champion.name!r}, or promote {model.name!r}"
        )
