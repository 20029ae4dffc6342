"""Checks a champion of a fleet and its challenger by learning both logs again, block by block.

The challenger's own log has what is its own; its samples are in the champion's log. An exchange is
in both logs, or in neither.
"""

import json
from collections import defaultdict, deque
from itertools import pairwise
from typing import Any

import numpy as np

from tests.hard.fleet_clients import Promoted, Read
from tests.hard.fleet_learner import STEPS, entries_of, new_learner, steps
from tests.hard.fleet_log import BEGIN_A_TERM, RecordedModel
from tests.simulation.log_reader import Row
from wolfstream.service.engine.admission import model_limits
from wolfstream.service.engine.followed_log import FollowedBlock, learn_block
from wolfstream.service.model.comparison import unknown_losses
from wolfstream.service.recovery.absorb import learn_again
from wolfstream.service.settings import Settings


class _Half:
    """One of the two. epochs: all that it had."""

    def __init__(self, model: RecordedModel, reads: list[Read]) -> None:
        self.name, self.model = model.name, model
        self.learner = new_learner(model)
        rows = model.rows
        records = [json.loads(row.record) for row in rows if row.kind in ("epoch", "rollback")]
        self.epochs = {model.epoch, *(record["epoch"] for record in records)}
        self.own = deque(row for row in rows if row.kind in STEPS)
        self.exchanges = [row for row in rows if row.kind == "rollback"]
        self.reads = defaultdict[tuple[int, str], list[Read]](list)
        for answer in reads:
            self.reads[answer.sequence, _life(answer.epoch)].append(answer)
        self.faults = [
            f"{self.name}: message {later.first} is of another leader than its term"
            for earlier, later in pairwise(model.log.commits)
            if earlier.writer != later.writer
            and not (later.rows and later.rows[0].kind in BEGIN_A_TERM)
        ]

    def apply_checkpoints(self) -> None:
        """Apply those of a challenger's own log, up to its next exchange."""
        while self.own and self.own[0].kind == "checkpoint":
            if self.own[0].sequence > self.learner.sequence:
                return
            self.own.popleft()
            self.learner.go_on_from(self.learner.checkpoint())

    def compare(self, probe: Any) -> None:
        """Compare the predictions that were read at the sequence and in the life of now."""
        self.learner.publish()
        published = self.learner.model.published
        for answer in self.reads.pop((self.learner.sequence, _life(self.learner.epoch)), []):
            head = self.learner.model.spec.serve
            made = published.predict(head, published.head_rows(np.asarray(probe)))
            if np.asarray(made.decision).tolist() != answer.decision:
                self.faults.append(f"{self.name}: other predictions at {answer.sequence}")
            if answer.epoch not in self.epochs:
                self.faults.append(f"{self.name}: epoch {answer.epoch} at {answer.sequence}")

    def take(self, state: Any, row: Row) -> None:
        """Take the state of the other one."""
        plain, arrays = state
        source = new_learner(self.model._replace(spec=plain["spec"]))
        source.restore(plain, arrays)
        fields = json.loads(row.record)
        self.learner.roll_back(source, fields["description"], fields["epoch"])


def check_pair(
    above: RecordedModel,
    below: RecordedModel,
    read: list[Read],
    promoted: list[Promoted],
    probe: Any,
) -> tuple[list[str], int]:
    """Return what contradicts a promise, and how many exchanges there were."""
    champion, challenger = (
        _Half(model, [answer for answer in read if answer.model == model.name])
        for model in (above, below)
    )
    places = [[row.sequence for row in half.exchanges] for half in (champion, challenger)]
    if places[0] != places[1]:
        return [f"{above.name} and {below.name} were exchanged at {places}"], 0
    known = {json.loads(row.record)["epoch"]: row.sequence for row in champion.exchanges}
    faults = [
        f"{above.name}: the promotion at {promotion.sequence} is not in its log"
        for promotion in promoted
        if promotion.model == above.name and known.get(promotion.epoch) != promotion.sequence
    ]
    _learn_again(champion, challenger, probe)
    for half in (champion, challenger):
        faults += half.faults
        faults += [f"{half.name}: no block ends at {at} of {life}" for at, life in half.reads]
    return faults, len(known)


def _learn_again(champion: _Half, challenger: _Half, probe: Any) -> None:
    limits = model_limits(Settings())
    challenger.apply_checkpoints()
    for rows in steps(champion.model):
        if rows[0].kind == "checkpoint":
            champion.learner.go_on_from(champion.learner.checkpoint())
            continue
        if rows[0].kind == "rollback":
            states = champion.learner.state(), challenger.learner.state()
            champion.take(states[1], rows[0])
            challenger.take(states[0], challenger.own.popleft())
        else:
            entries = entries_of(champion.model, rows)
            learn_again(champion.learner, entries)
            unknown = unknown_losses(sum(row.samples for row in rows))
            learn_block(challenger.learner, FollowedBlock(entries, unknown), limits)
        champion.compare(probe)
        challenger.compare(probe)
        challenger.apply_checkpoints()


def _life(epoch: str) -> str:
    return epoch.partition(".")[0]
