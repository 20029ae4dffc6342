"""Promotion: a champion and its challenger exchange specs and states.

In each of the two logs it is a rollback to the state of the other model: recovery treats it as one,
and another rollback undoes it. One commit writes both. Names, sequences, epochs and the rows that
wait for labels stay with their models.
"""

import logging
from concurrent.futures import wait as wait_for
from datetime import UTC, datetime
from typing import Any

from wolfstream.service.engine.challengers import Challengers
from wolfstream.service.engine.history import History
from wolfstream.service.engine.idempotency import IdempotencyKeys
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.snapshot_schedule import SnapshotSchedule
from wolfstream.service.engine.writer_role import Products
from wolfstream.service.errors import LagsBehind, NotFollowing, UnusableState
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model, rfc3339
from wolfstream.service.recovery.broken import mark_broken
from wolfstream.service.recovery.model_files import ModelFileError, fill_model, spec_in
from wolfstream.service.recovery.uploads import WAITING_ROWS, without_history
from wolfstream.service.storage.entries import Rollback, new_epoch
from wolfstream.service.storage.interfaces import Journal
from wolfstream.service.storage.snapshot_format import State, encode_state

logger = logging.getLogger(__name__)

# The champion learns nothing while its challenger catches up, so that has to be short.
_MOST_LAG = 4096


class Promotion:
    """Exchanges models. Used by the writer's thread. aside: see `Writer`."""

    def __init__(
        self,
        journal: Journal,
        models: LiveModels,
        challengers: Challengers,
        history: History,
        snapshots: SnapshotSchedule,
        keys: IdempotencyKeys,
        aside: Products,
    ) -> None:
        self._journal, self._models, self._challengers = journal, models, challengers
        self._history, self._snapshots, self._keys = history, snapshots, keys
        self._aside = aside

    def promote(self, champion: Model, challenger: Model) -> dict[str, Any]:
        """Exchange the specs and states of two models: persist, apply and publish.

        Returns the champion's new description. Its former state stays in its history.

        Raises UnknownModel, ModelBroken, NotFollowing, LagsBehind, SnapshotFailed, StorageFailed.
        """
        champion_learner = self._models.usable(champion)
        self._models.learner(challenger)  # raises if another replica leads it by now
        if challenger not in self._challengers.followers(champion):
            raise _not_following(champion, challenger)
        with self._challengers.paused([challenger]):
            challenger_learner = self._models.usable(challenger)
            if challenger.lag > _MOST_LAG:
                raise LagsBehind(
                    f"model {challenger.name!r} has {challenger.lag} samples of "
                    f"{champion.name!r} before it; wait until there are {_MOST_LAG} at most"
                )
            self._challengers.catch_up(challenger)
            if challenger_learner.sequence != champion_learner.sequence:
                raise LagsBehind("a commit of the journal is in doubt; try again")
            self._exchange(champion_learner, challenger_learner)
        return champion.describe()

    def _exchange(self, champion: Learner, challenger: Learner) -> None:
        pair = champion, challenger
        terms = [self._models.term(learner.model) for learner in pair]
        # Each learner goes on from its snapshot, as one that was restored from it would.
        self._snapshots.finish(wait=True)
        saving = [self._snapshots.start(learner.model)[1] for learner in pair]
        with self._aside(1):  # as recovery does
            states = _state_for(champion, challenger), _state_for(challenger, champion)
            sources = (
                _source(champion, challenger, states[0]),
                _source(challenger, champion, states[1]),
            )
            rollbacks = [
                self._rollback(learner, other.model.name, state)
                for learner, other, state in zip(pair, pair[::-1], states, strict=True)
            ]
            wait_for(saving)
        # A replay begins after the rollback, so answers of earlier entries must be written now.
        for term in terms:
            self._keys.write(term)
        self._snapshots.wait_until_saved(saving)
        self._journal.exchange(dict(zip(terms, rollbacks, strict=True)))
        for learner, source, rollback in zip(pair, sources, rollbacks, strict=True):
            try:
                learner.roll_back(source, rollback.description, rollback.epoch)
                learner.publish()
            except Exception as error:  # the log has the rollback: no state before it may go on
                mark_broken(learner, error)
        logger.info(
            "models exchanged: challenger=%s champion=%s sequence=%d",
            challenger.model.name,
            champion.model.name,
            champion.sequence,
        )

    def _rollback(self, learner: Learner, other: str, state: State) -> Rollback:
        """Pin a state and return the model's rollback to it. Raises StorageFailed."""
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
    """Return a learner of the other one's state, as `learner` is to take it over.

    The other learner goes on from its snapshot by now, so its state need not be restored again,
    unless rows wait for labels: these have to be read with the other's spec. Raises UnusableState.
    """
    if learner.pending is not None and learner.pending.received:
        return _filled(learner.model, state)
    source = Learner(Model(learner.model.id, learner.model.name, spec_in(state, "it")))
    source.take_heads(other)
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
    """Return the other model's state with the waiting rows of this one."""
    own, own_arrays = learner.state()
    plain, arrays = without_history(*other.state())
    arrays.pop(WAITING_ROWS, None)
    if WAITING_ROWS in own_arrays:
        arrays[WAITING_ROWS] = own_arrays[WAITING_ROWS]
    spec = {**plain["spec"], WAITING_ROWS: own["spec"][WAITING_ROWS]}
    return State({**plain, "spec": spec}, arrays)
