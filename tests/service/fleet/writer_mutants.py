"""Faults that the writers of a fleet once had: each takes one check out of the code.

Schedules have to find it, or they look at nothing.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from wolfstream.service.engine.history import History
from wolfstream.service.engine.leading import Leadership
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.engine.snapshot_schedule import SnapshotSchedule
from wolfstream.service.engine.takeover import Standby
from wolfstream.service.engine.turns import Turns
from wolfstream.service.errors import NotYetLearned
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.broken import mark_broken


class Mutant(NamedTuple):
    """A fault.

    Attributes:
        profile: of the schedules that find it.
        seed: of one of them.
        broken: a part of what it says then.
        apply: takes the check out.
    """

    profile: str
    seed: int
    broken: str
    apply: Callable[[pytest.MonkeyPatch], None]


def _break_replaced_models(patch: pytest.MonkeyPatch) -> None:
    """Take a term that ends between two parts of a request for an error of learning."""

    def failed(turns: Turns, model: Model, error: Exception) -> NotYetLearned:
        return mark_broken(turns._models.learner(model), error)

    patch.setattr(Turns, "_failed", failed)


def _keep_replaced_models(patch: pytest.MonkeyPatch) -> None:
    """Go on with large requests of models that another replica leads by now."""
    patch.setattr(Turns, "give_up", lambda *_: [])


def _write_answers_of_all(patch: pytest.MonkeyPatch) -> None:
    """Write the answers of all models before a snapshot of one."""
    start = SnapshotSchedule.start

    def started(snapshots: SnapshotSchedule, model: Model) -> Any:
        for _, term in snapshots._models.terms():
            snapshots._keys.write(term)
        return start(snapshots, model)

    patch.setattr(SnapshotSchedule, "start", started)


def _write_answers_of_all_to_roll_back(patch: pytest.MonkeyPatch) -> None:
    """Write the answers of all models before one is rolled back."""
    roll_back = History.roll_back

    def rolled_back(history: History, model: Model, sequence: int) -> Any:
        for _, term in history._models.terms():
            history._keys.write(term)
        return roll_back(history, model, sequence)

    patch.setattr(History, "roll_back", rolled_back)


def _lead_what_is_being_made(patch: pytest.MonkeyPatch) -> None:
    """Lead and follow models that are about to be learned here."""
    patch.setattr(LiveModels, "is_being_made", lambda *_: False)


class _Progress(dict[str, Standby]):
    """How far takeovers are, of which several of a model may end."""

    def __delitem__(self, name: str) -> None:
        self.pop(name, None)


def _lead_at_once(patch: pytest.MonkeyPatch) -> None:
    """Let several calls take a model over at the same time."""

    @asynccontextmanager
    async def unlocked(leading: Leadership, _: str) -> AsyncIterator[None]:
        leading._taken_over = _Progress()  # else the second one to end stumbles over the first
        yield

    patch.setattr(Leadership, "_locked", unlocked)


MUTANTS = {
    "term that ends in a turn": Mutant("large", 9, "another replica leads", _break_replaced_models),
    "work of an ended term": Mutant("ended", 0, "and are busy", _keep_replaced_models),
    "answers of all, snapshot": Mutant("all", 1, "another replica writes", _write_answers_of_all),
    "answers of all, rollback": Mutant(
        "rollbacks", 14, "another replica writes", _write_answers_of_all_to_roll_back
    ),
    "model being made": Mutant("all", 0, "followed at once", _lead_what_is_being_made),
    "takeovers at once": Mutant("all", 2, "is learned here already", _lead_at_once),
}
