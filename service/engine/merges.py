"""Merges what the learners of one model have learned, at regular intervals.

    partition's leader: snapshot -> model's leader: load all, merge, pin (a thread beside)
                                 -> append a rollback to the merged state, apply, publish (writer)

The partitions learn on from their own states, so a merge is always one of whole states, and counts
no sample twice. The model's log names each merged state by its digest: whoever replays it has the
same bits.
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
from wolfstream.service.model.merging import Unlike, merged
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

# The number of merges whose states are kept: a replica may be loading one that is not the last.
_KEPT = 4
_NOT_MERGED = "its learners are not merged: "


class _Merge(NamedTuple):
    """A merged state. source: a learner of it. description: see `Rollback`. digest: as pinned."""

    source: Learner
    description: dict[str, Any]
    digest: str


class Merges:
    """Merges for the models that are led here, and saves what is merged elsewhere.

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
        """Merge until this is cancelled. A pause is at least as long as what came before it."""
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
        except Unlike as error:
            notice = f"{_NOT_MERGED}{error}"
            if notice != model.notice:
                logger.warning("model %s: %s", model.name, notice)
            model.notice = notice
        except (Refusal, StartupError, DamagedSnapshot, ModelFileError, OSError) as error:
            logger.info("model %s: merged later: %s", model.name, error)
        except Exception:  # the next merge may succeed
            logger.exception("model %s: not merged", model.name)

    async def _save(self, model: Model) -> None:
        """Save a snapshot of a partition that has learned since its last one."""
        if model.published.sequence > model.snapshot_sequence and not model.broken:
            await self._orders.snapshot(model)

    async def _merge(self, model: Model) -> None:
        """Merge the newest snapshots of a model's partitions, if there are new ones."""
        found = await asyncio.to_thread(self._merge_newest, model)
        if found is not None:
            await self._orders.in_order(model, lambda: self._adopt(model, found), samples=0)

    def _merge_newest(self, model: Model) -> _Merge | None:
        """Return what the partitions have learned by their snapshots; None if nothing is new.

        Raises Unlike, DamagedSnapshot, ModelFileError, StorageFailed, OSError.
        """
        name, spec, before = model.name, model.spec, model.merged or {"partitions": []}
        known = {one["partition"]: one["sequence"] for one in before["partitions"]}
        newest = dict(self._newest(name, spec.learners))
        if {part: sequence for part, (_, sequence) in newest.items()} == known:
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
        """Yield the partitions that have snapshots: their numbers, and the newest sequences."""
        for part in partition_names(name, learners):
            entry = self._storage.catalogue.find(part)
            kept = self._storage.snapshots.sequences(entry.number) if entry else []
            if entry is not None and kept:
                yield part, (entry.number, kept[0])

    def _adopt(self, model: Model, found: _Merge) -> None:
        """Serve a merged state: persist, apply and publish; on the writer's thread.

        Raises UnknownModel, NotLeader, ModelBroken, StorageFailed.
        """
        learner, term = self._models.usable(model), self._models.term(model)
        at = found.description["at"]
        # Fewer samples than before are another line: a partition was lost, and made anew.
        epoch = learner.epoch if at > learner.sequence else new_epoch()
        rollback = Rollback(found.description, found.digest, epoch)
        self._history.roll_back_to(learner, term, found.source, rollback, learner.sequence)
        model.notice = ""
        older = term.log.rollbacks()[_KEPT - 1 :]
        try:
            if older:
                term.drop(older[0].description["at"])
        except StorageFailed as error:
            logger.warning("model %s: its log is purged later: %s", model.name, error)


def _learner_of(name: str, state: State) -> Learner:
    """Return a learner of a partition's state. Raises ModelFileError."""
    return fill_model(Model(0, name, spec_in(state, name)), state, name).learner


def _frozen(name: str, spec: ModelSpec, learner: Learner) -> tuple[Learner, bytes]:
    """Return a learner restored from the state of another one, as a replay has it, and its bytes.

    Raises DamagedSnapshot, ModelFileError.
    """
    content = b"".join(encode_state(State(*learner.state())))
    return fill_model(Model(0, name, spec), decode_state(content, "it"), "it").learner, content
