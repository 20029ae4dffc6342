"""The writers of several replicas in one process, which tests drive by hand."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tests.service.fleet.test_log import Replica
from tests.service.specs import read_papers_spec
from tests.service.streams import part, two_classes
from tests.service.writer_bench import work_off
from wolfstream.service.engine.group_learning import GroupRequest
from wolfstream.service.engine.queue_items import LabelRequest, LearnRequest, WaitingRowsRequest
from wolfstream.service.engine.writer import Writer
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import load_content
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.samples.validation import Samples
from wolfstream.service.settings import Settings
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import State, encode_state

SPEC: dict[str, Any] = {"working_set": None, "asset": {"dimension": 4}}
SAMPLES = two_classes(60)


class Server:
    """A replica with a writer, and what it has answered; the writer's thread is the test's."""

    def __init__(self, replica: Replica, data: Path) -> None:
        self.replica, self.replies = replica, list[Any]()
        self.storage = Storage(replica.journal, replica.catalogue, replica.snapshots)
        settings = Settings(
            data=data,
            fleet=replica.nats.servers,
            advertise="http://127.0.0.1:1",
            snapshot_samples=10**9,
        )
        self.writer = Writer(
            self.storage, settings, lambda given, _: self.replies.extend(given), math.inf
        )
        self.writer.recover(lambda _: None)
        self.leading = self.writer.leading(self._in_order, lambda _: None)

    async def _in_order(self, _: Model | None, run: Callable[[], Any], samples: int = 1) -> Any:
        assert samples <= 1
        return run()

    def close(self) -> None:
        self.leading.stop()
        self.writer.snapshots._saver.shutdown()
        self.replica.journal.close()

    def create(self, name: str) -> Model:
        return self.writer.new_models.create(name, read_papers_spec(SPEC))[0]

    def upload(self, name: str, n: int) -> Model:
        """A new model in the state of one that has learned n samples elsewhere."""
        learner = Learner(Model(0, "", read_papers_spec(SPEC)))
        learner.absorb("asset", part(SAMPLES, 0, n))
        content = b"".join(encode_state(State(*learner.state())))
        return self.writer.new_models.add(name, load_content(content, "it"))[0]

    def follow(self, name: str, champion: str) -> Model:
        """A new model that follows another one, which is led here, and learns as it does."""
        spec = read_papers_spec({**SPEC, "seed": 7})
        return self.writer.challengers.make(name, self.model(champion), spec, "empty")[0]

    def catch_up(self, name: str) -> None:
        """Let a model that follows another one learn everything that this one has."""
        model = self.model(name)
        with self.writer.challengers.paused([model]):
            self.writer.challengers.catch_up(model)
        self.writer.models.learner(model).publish()

    def lead(self, name: str) -> Model:
        """Lead a model from now on."""
        assert asyncio.run(self.leading.lead(name))
        return self.model(name)

    def model(self, name: str) -> Model:
        model = self.writer.models.get(name)
        assert model is not None
        return model

    def asked(
        self, name: str, samples: Samples, key: bytes | None = None, **more: Any
    ) -> LearnRequest:
        return LearnRequest(self.model(name), "asset", samples, Future(), 0.0, key, **more)

    def answer_to(self, request: GroupRequest) -> Any:
        """The answer to a request that is worked off alone."""
        work_off(self.writer, [request])
        return self.reply_to(request)

    def reply_to(self, request: GroupRequest) -> Any:
        return next(result for answer, result in self.replies if answer is request.waiter)

    def learn(self, name: str, n: int = 1, key: bytes | None = None, **more: Any) -> Any:
        """The answer to a request with samples."""
        return self.answer_to(self.asked(name, part(SAMPLES, 0, n), key, **more))

    def predict(self, name: str, *ids: str) -> Any:
        """The answer to a prediction whose rows wait for labels under these ids."""
        model, rows = self.model(name), SAMPLES.X[: len(ids)]
        published = model.published
        response = {
            "prediction": published.predict("asset", published.head_rows(rows)).prediction,
            "sequence": published.sequence,
            "epoch": published.epoch,
            "head": "asset",
        }
        return self.answer_to(WaitingRowsRequest(model, list(ids), rows, response, Future(), 0.0))

    def label(self, name: str, *ids: str) -> Any:
        """The answer to labels for the rows of these ids."""
        labels = LateLabels(list(ids), SAMPLES.y[: len(ids)])
        return self.answer_to(LabelRequest(self.model(name), "asset", labels, Future(), 0.0))

    def snapshot(self, name: str) -> int:
        """Save a snapshot, note it and drop what it makes superfluous; its sequence."""
        sequence, saving = self.writer.snapshots.start(self.model(name))
        saving.result()
        self.writer.snapshots.finish()
        return sequence
