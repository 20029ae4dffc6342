"""A writer without a server around it: what a kill leaves is there in milliseconds."""

import math
import weakref
from pathlib import Path
from typing import Any

from tests.service.specs import read_papers_spec
from wolfstream.service.engine.queue_items import Item, LearnRequest
from wolfstream.service.engine.writer import Writer
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.data_directory import open_storage


def work_off(writer: Writer, group: list[Item]) -> None:
    """Work off a group as the writer's thread does, with all parts of large requests."""
    writer.begin(group)
    while writer.busy:
        writer.go_on()


class Bench:
    """The writer of a data directory, recovered, and what it has answered."""

    def __init__(self, data: Path, **settings: Any) -> None:
        self.data = data
        data.mkdir(exist_ok=True)
        self.replies: list[Any] = []
        self._settings = Settings(data=data, **{"snapshot_samples": 10**9, **settings})
        self.storage = open_storage(data, self._settings.snapshots)
        # Tests that end with a bench do not close it, of which Python 3.13 warns.
        weakref.finalize(self, self.storage.close)
        # Only what comes in parts is left to `go_on`, as long as it may take here.
        self.writer = Writer(
            self.storage, self._settings, lambda given, _: self.replies.extend(given), math.inf
        )
        self.writer.recover(lambda _: None)

    def create(self, spec: Any, name: str = "m") -> Model:
        """A new model."""
        return self.writer.new_models.create(name, read_papers_spec(spec))[0]

    def learn(
        self,
        model: Model,
        samples: Samples,
        head: HeadName = "working_set",
        key: bytes | None = None,
    ) -> Any:
        """The answer to a request with samples."""
        answer: Any = object()  # the writer hands it on, and does no more with it
        work_off(self.writer, [LearnRequest(model, head, samples, answer, 0.0, key)])
        return self.replies[-1][1]

    def snapshot(self, model: Model) -> int:
        """Save one, and wait until it is on disk; its sequence."""
        self.writer.snapshots.finish(wait=True)  # one may be due already: learning also compiles
        sequence, saving = self.writer.snapshots.start(model)
        saving.result()
        self.writer.snapshots.finish()
        return sequence

    def kill(self) -> None:
        """Leave as kill -9 does: no snapshot at the end."""
        self.writer.snapshots.finish(wait=True)
        self.writer.snapshots._saver.shutdown()
        self.storage.close()

    def close(self) -> None:
        """Leave as SIGTERM does."""
        self.writer.close()

    def restarted(self) -> "Bench":
        """The next one on the directory, after a kill."""
        self.kill()
        return Bench(self.data)


def state_of(model: Model, X: Any) -> list[Any]:
    """All that a model says but its sequence, to the last bit; buffers may differ in size."""
    heads = model.describe()["heads"]
    for stands in heads.values():
        stands.pop("bytes", None)
    said = [view.predict(X) for view in model.published.heads.values() if not view.lacks]
    return [said, heads]
