"""Merges the learners of each model that has several, at regular intervals.

    partition's leader: snapshot -> model's leader: load all, merge, pin (a thread beside)
                                 -> append a rollback to the merged state, apply, publish (writer)

The partitions learn on from their own states. So a merge is one of whole states, and counts no
sample twice. The model's log names each merged state by its digest, so every replay has the same
bits.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from wolfstream.service.engine.history import History
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.model_files import ModelFileError, fill_model, spec_in
from wolfstream.service.engine.orders import Orders
from wolfstream.service.errors import Refusal, StartupError, StorageFailed
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model, rfc3339
from wolfstream.service.model.merging import NotMergeable, merged
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.entries import Rollback, new_epoch
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.partitions import partition_names, partitioned_model
from wolfstream.service.storage.snapshot_format import (
    DamagedSnapshot,
    State,
    decode_state,
    encode_state,
)

logger = logging.getLogger(__name__)

# The number of merged states that are kept: a replica may still be loading one before the last.
_KEPT = 4
_NOT_MERGED = "its learners are not merged: "


class _Merge(NamedTuple):
    """A merged state.

    Attributes:
        source: a learner that was restored from it.
        description: see `Rollback`.
        digest: by which the state is pinned.
    """

    source: Learner
    description: dict[str, Any]
    digest: str


class Merges:
    """Merges models that are led here, and saves the partitions that are.

    Args:
        storage: of snapshots and the catalogue.
        models: that are led here.
        history: pins and adopts merged states.
        orders: through which a merge waits for its turn.
        seconds: between two merges of a model.
    """

    def __init__(
        self,
        storage: Storage,
        models: LiveModels,
        history: History,
        orders: Orders,
        seconds: float,
    ) -> None:
        self._storage, self._models, self._history = storage, models, history
        self._orders, self._seconds = orders, seconds

    async def run(self) -> None:
        """Merge until cancelled. A pause is at least as long as the merges before it took."""
        took = 0.0
        while True:
            await asyncio.sleep(max(self._seconds, took))
            began = time.monotonic()
            for model in self._models.all():
                if partitioned_model(model.name) is not None:
                    await self._guarded(model, self._save)
                elif model.spec.learners > 1:
                    await self._guarded(model, self._merge)
            took = time.monotonic() - began

    async def _guarded(self, model: Model, work: Callable[[Model], Any]) -> None:
        try:
            await work(model)
        except NotMergeable as error:
            notice = f"{_NOT_MERGED}{error}"
            if notice != model.notice:
                logger.warning("learners not merged: model=%s error=%s", model.name, error)
            model.notice = notice
        except (Refusal, StartupError, DamagedSnapshot, ModelFileError, OSError) as error:
            logger.info("merge postponed: model=%s error=%s", model.name, error)
        except Exception:  # the next merge may succeed
            logger.exception("merge failed, tried again later: model=%s", model.name)

    async def _save(self, model: Model) -> None:
        """Save a snapshot of a partition that has learned since its last one."""
        if model.published.sequence > model.snapshot_sequence and not model.broken:
            await self._orders.snapshot(model)

    async def _merge(self, model: Model) -> None:
        """Merge the newest snapshots of a model's partitions, if there are new ones."""
        merge = await asyncio.to_thread(self._merge_newest, model)
        if merge is not None:
            await self._orders.in_order(model, lambda: self._adopt(model, merge), samples=0)

    def _merge_newest(self, model: Model) -> _Merge | None:
        """Merge the newest snapshots of all partitions; return None if none of them is new.

        Raises Unlike, DamagedSnapshot, ModelFileError, StorageFailed, OSError.
        """
        name, spec, before = model.name, model.spec, model.merged or {"partitions": []}
        merged_before = {part["partition"]: part["sequence"] for part in before["partitions"]}
        newest = dict(self._newest(name, spec.learners))
        if {part: sequence for part, (_, sequence) in newest.items()} == merged_before:
            return None
        states = {
            part: self._storage.snapshots.load(partition, sequence)
            for part, (partition, sequence) in newest.items()
        }
        learners = [_learner_of(part, state) for part, state in states.items()]
        source, content = _frozen(name, spec, merged(name, spec, learners))
        description = {
            "at": source.sequence,
            "time": rfc3339(datetime.now(UTC)),
            "partitions": [
                {"partition": part, "epoch": state.plain["epoch"], "sequence": newest[part][1]}
                for part, state in states.items()
            ],
        }
        return _Merge(source, description, self._storage.snapshots.pin(model.id, content))

    def _newest(self, name: str, learners: int) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield each partition that has snapshots, with its id and the newest one's sequence."""
        for part in partition_names(name, learners):
            entry = self._storage.catalogue.find(part)
            sequences = self._storage.snapshots.sequences(entry.number) if entry else []
            if entry is not None and sequences:
                yield part, (entry.number, sequences[0])

    def _adopt(self, model: Model, merge: _Merge) -> None:
        """Serve a merged state: persist, apply and publish; on the writer's thread.

        Raises UnknownModel, NotLeader, ModelBroken, StorageFailed.
        """
        learner, term = self._models.usable(model), self._models.term(model)
        at = merge.description["at"]
        # With fewer samples than before it is another history: a partition was lost and made anew.
        epoch = learner.epoch if at > learner.sequence else new_epoch()
        rollback = Rollback(merge.description, merge.digest, epoch)
        self._history.roll_back_to(learner, term, merge.source, rollback, learner.sequence)
        model.notice = ""
        older = term.log.rollbacks()[_KEPT - 1 :]
        try:
            if older:
                term.drop(older[0].description["at"])
        except StorageFailed as error:
            logger.warning(
                "log not purged, tried again later: model=%s error=%s", model.name, error
            )


def _learner_of(name: str, state: State) -> Learner:
    """Return a learner of a partition's state. Raises ModelFileError."""
    return fill_model(Model(0, name, spec_in(state, name)), state, name).learner


def _frozen(name: str, spec: ModelSpec, learner: Learner) -> tuple[Learner, bytes]:
    """Save a learner's state and restore it; return the restored learner, and the saved bytes.

    A replay will restore the same bytes, so it goes on with the same bits. Raises DamagedSnapshot,
    ModelFileError.
    """
    content = b"".join(encode_state(State(*learner.state())))
    return fill_model(Model(0, name, spec), decode_state(content, "it"), "it").learner, content
