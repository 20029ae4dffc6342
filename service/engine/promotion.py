"""Promotion: a champion and its challenger exchange their specs and states.

In each of the two logs it is a rollback to the state of the other model: recovery treats it as one,
and a rollback undoes it. Both are written in one commit. Names, sequences, epochs and the rows that
wait for their labels stay where they are.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from datetime import UTC, datetime
from typing import Any

from wolfstream.service.engine.broken import mark_broken
from wolfstream.service.engine.challengers import Challengers
from wolfstream.service.engine.history import History
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.model_files import ModelFileError, fill_model, spec_in
from wolfstream.service.engine.remembered_keys import RememberedKeys
from wolfstream.service.engine.snapshot_schedule import SnapshotSchedule
from wolfstream.service.engine.uploads import OF_ANOTHER_LIFE
from wolfstream.service.engine.writer_role import Products
from wolfstream.service.errors import LagsBehind, NotFollowing, SnapshotFailed, UnusableState
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model, rfc3339
from wolfstream.service.storage.entries import Rollback, new_epoch
from wolfstream.service.storage.journal import Journal
from wolfstream.service.storage.snapshot_format import State, encode_state

logger = logging.getLogger(__name__)

# The champion learns nothing while its challenger catches up.
_MOST_LAG = 4096
_WAITING_ROWS = "pending"


class Promotion:
    """Exchanges models. Used by the writer's thread. aside: see `Writer`."""

    def __init__(
        self,
        journal: Journal,
        models: LiveModels,
        challengers: Challengers,
        history: History,
        snapshots: SnapshotSchedule,
        keys: RememberedKeys,
        aside: Products,
    ) -> None:
        self._journal, self._models, self._challengers = journal, models, challengers
        self._history, self._snapshots, self._keys = history, snapshots, keys
        self._aside = aside

    def promote(self, champion: Model, challenger: Model) -> dict[str, Any]:
        """Exchange the specs and states of two models: persist, apply and publish.

        Returns the champion's new description. Its former state is in its history. Raises
        UnknownModel, ModelBroken, NotFollowing, LagsBehind, SnapshotFailed, StorageFailed.
        """
        above = self._models.usable(champion)
        self._models.learner(challenger)  # which another replica may have by now
        if challenger not in self._challengers.followers(champion):
            raise _not_following(champion, challenger)
        with self._challengers.paused([challenger]):
            below = self._models.usable(challenger)
            if challenger.lag > _MOST_LAG:
                raise LagsBehind(
                    f"model {challenger.name!r} has {challenger.lag} samples of "
                    f"{champion.name!r} before it; wait until there are {_MOST_LAG} at most"
                )
            self._challengers.catch_up(challenger)
            if below.sequence != above.sequence:
                raise LagsBehind("a commit of the journal is in doubt; try again")
            self._exchange(above, below)
        return champion.describe()

    def _exchange(self, above: Learner, below: Learner) -> None:
        pair = above, below
        terms = [self._models.term(one.model) for one in pair]
        saving = self._begin_to_save(pair)
        with self._aside(1):  # as recovery does
            states = _state_for(above, below), _state_for(below, above)
            sources = _source(above, below, states[0]), _source(below, above, states[1])
            rollbacks = [
                self._rollback(one, other.model.name, state)
                for one, other, state in zip(pair, pair[::-1], states, strict=True)
            ]
            wait_for(saving)
        # What comes before a rollback is not replayed, so its answers must be written.
        for term in terms:
            self._keys.write(term)
        self._wait_until_saved(saving)
        self._journal.exchange(dict(zip(terms, rollbacks, strict=True)))
        for learner, source, rollback in zip(pair, sources, rollbacks, strict=True):
            try:
                learner.roll_back(source, rollback.description, rollback.epoch)
                learner.publish()
            except Exception as error:  # the journal has it: no state between is served
                mark_broken(learner, error)
        text = "model %s: took the place of %s at sequence %d, and the other way round"
        logger.info(text, below.model.name, above.model.name, above.sequence)

    def _begin_to_save(self, pair: Sequence[Learner]) -> list["Future[int]"]:
        """Begin to save a snapshot of each, which goes on as the learner restored from it.

        Raises SnapshotFailed.
        """
        self._snapshots.finish(wait=True)
        return [self._snapshots.start(learner.model)[1] for learner in pair]

    def _wait_until_saved(self, saving: Sequence["Future[int]"]) -> None:
        try:
            for one in saving:
                one.result()
        except Exception as error:  # whatever numpy and zipfile raise under low memory, too
            raise SnapshotFailed(f"{error!r}; nothing has changed") from None
        self._snapshots.finish(wait=True)

    def _rollback(self, learner: Learner, other: str, state: State) -> Rollback:
        """Return the rollback of a model to a state, which is pinned. Raises StorageFailed."""
        at, time = learner.sequence, rfc3339(datetime.now(UTC))
        digest = self._history.pin(learner.model, b"".join(encode_state(state)))
        return Rollback({"to": at, "at": at, "time": time, "of": other}, digest, new_epoch())


def _not_following(champion: Model, challenger: Model) -> NotFollowing:
    if champion.champion is challenger:
        return NotFollowing(
            f"model {champion.name!r} is the challenger and {challenger.name!r} its champion: "
            f"POST /v1/models/{challenger.name}/promote with {champion.name!r} exchanges them"
        )
    return NotFollowing.named(challenger.name, champion.name)


def _source(learner: Learner, other: Learner, state: State) -> Learner:
    """Return a learner of another one's state as `learner` takes it. Raises UnusableState.

    The other one was restored from its snapshot just now, and is not restored once more, unless
    there are predicted rows, which have to be read with its spec.
    """
    if learner.pending is not None and learner.pending.remembered:
        return _filled(learner.model, state)
    source = Learner(Model(learner.model.id, learner.model.name, spec_in(state, "it")))
    source.stand_for(other)
    return source


def _filled(model: Model, state: State) -> Learner:
    """Return a learner of a state, with the spec in it. Raises UnusableState."""
    try:
        source = Model(model.id, model.name, spec_in(state, "it"))
        return fill_model(source, state, "it").learner
    except ModelFileError as error:
        raise UnusableState(
            f"model {model.name!r} cannot take the other one's spec, with the rows that wait for "
            f"their labels: {error}"
        ) from None


def _state_for(learner: Learner, other: Learner) -> State:
    """Return another model's state as this model takes it, with its own waiting rows."""
    (own, own_arrays), (plain, arrays) = learner.state(), other.state()
    plain = {name: part for name, part in plain.items() if name not in OF_ANOTHER_LIFE}
    arrays = {name: part for name, part in arrays.items() if name not in OF_ANOTHER_LIFE}
    arrays.pop(_WAITING_ROWS, None)
    if _WAITING_ROWS in own_arrays:
        arrays[_WAITING_ROWS] = own_arrays[_WAITING_ROWS]
    spec = {**plain["spec"], _WAITING_ROWS: own["spec"][_WAITING_ROWS]}
    return State({**plain, "spec": spec}, arrays)
