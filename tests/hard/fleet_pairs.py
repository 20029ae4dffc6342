"""Checks a champion of a fleet and its challenger by learning both logs again, block by block.

The challenger's own log has what is its own; its samples are in the champion's log. An exchange is
in both logs, or in neither.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from tests.hard.fleet_clients import Promoted, Read
from tests.hard.fleet_log import BEGIN_A_TERM, whole_log
from wolfstream.service.engine.absorb import learn_again
from wolfstream.service.engine.admission import limits_of
from wolfstream.service.engine.followed_log import FollowedBlock, learn_block
from wolfstream.service.fleet.commit_messages import LogRow, read_entry
from wolfstream.service.fleet.log_index import WITH_SAMPLES
from wolfstream.service.fleet.opening import Fleet
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.losses import nothing_known
from wolfstream.service.settings import Settings
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.entries import CatalogueEntry

# What a challenger's log may have besides terms, and a champion's besides samples.
_OWN = frozenset({"checkpoint", "rollback"})


class _Half:
    """One of the two. rows: of its log, in order. epochs: all that it had."""

    def __init__(self, fleet: Fleet, entry: CatalogueEntry, reads: list[Read]) -> None:
        self.name, self.entry = entry.name, entry
        commits = list(whole_log(fleet, entry).chain.read(0))
        self.rows = [row for commit in commits for row in commit.rows]
        model = Model(entry.number, entry.name, read_stored_spec(entry.spec))
        self.learner = Learner(model, entry.epoch)
        records = [json.loads(row.record) for row in self.rows if row.kind in ("epoch", "rollback")]
        self.epochs = {entry.epoch, *(record["epoch"] for record in records)}
        self.own = deque(row for row in self.rows if row.kind in _OWN)
        self.exchanges = [row for row in self.rows if row.kind == "rollback"]
        self.reads = defaultdict[tuple[int, str], list[Read]](list)
        for one in reads:
            self.reads[one.sequence, _life(one.epoch)].append(one)
        self.faults = [
            f"{self.name}: message {later.first} is of another leader than its term"
            for one, later in pairwise(commits)
            if one.writer != later.writer and later.rows[0].kind not in BEGIN_A_TERM
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
        for one in self.reads.pop((self.learner.sequence, _life(self.learner.epoch)), []):
            head = self.learner.model.spec.serve
            made = published.predict(head, published.seen(np.asarray(probe)))
            if np.asarray(made.decision).tolist() != one.decision:
                self.faults.append(f"{self.name}: other predictions at {one.sequence}")
            if one.epoch not in self.epochs:
                self.faults.append(f"{self.name}: epoch {one.epoch} at {one.sequence}")

    def take(self, state: Any, row: LogRow) -> None:
        """Take the state of the other one."""
        plain, arrays = state
        source = Learner(Model(self.entry.number, self.name, read_stored_spec(plain["spec"])))
        source.restore(plain, arrays)
        fields = json.loads(row.record)
        self.learner.roll_back(source, fields["description"], fields["epoch"])


def check_pair(
    fleet: Fleet,
    above: CatalogueEntry,
    below: CatalogueEntry,
    read: list[Read],
    promoted: list[Promoted],
    probe: Any,
) -> tuple[list[str], int]:
    """Return what contradicts a promise, and how many exchanges there were."""
    champion, challenger = (
        _Half(fleet, entry, [one for one in read if one.model == entry.name])
        for entry in (above, below)
    )
    places = [[row.sequence for row in half.exchanges] for half in (champion, challenger)]
    if places[0] != places[1]:
        return [f"{above.name} and {below.name} were exchanged at {places}"], 0
    known = {json.loads(row.record)["epoch"]: row.sequence for row in champion.exchanges}
    faults = [
        f"{above.name}: the promotion at {one.sequence} is not in its log"
        for one in promoted
        if one.model == above.name and known.get(one.epoch) != one.sequence
    ]
    _learn_again(champion, challenger, probe)
    for half in (champion, challenger):
        faults += half.faults
        faults += [f"{half.name}: no block ends at {at} of {life}" for at, life in half.reads]
    return faults, len(known)


def _learn_again(champion: _Half, challenger: _Half, probe: Any) -> None:
    limits = limits_of(Settings())
    challenger.apply_checkpoints()
    for rows in _steps(champion.rows):
        if rows[0].kind == "checkpoint":
            champion.learner.go_on_from(champion.learner.checkpoint())
            continue
        if rows[0].kind == "rollback":
            states = champion.learner.state(), challenger.learner.state()
            champion.take(states[1], rows[0])
            challenger.take(states[0], challenger.own.popleft())
        else:
            entries = [read_entry(champion.entry.number, row) for row in rows]
            learn_again(champion.learner, entries)
            unknown = nothing_known(sum(row.samples for row in rows))
            learn_block(challenger.learner, FollowedBlock(entries, unknown), limits)
        champion.compare(probe)
        challenger.compare(probe)
        challenger.apply_checkpoints()


def _steps(rows: list[LogRow]) -> Iterator[list[LogRow]]:
    """Yield blocks of samples, and checkpoints and exchanges, each alone."""
    known = [row for row in rows if row.kind in WITH_SAMPLES | _OWN]
    for (kind, _), group in groupby(known, lambda row: (row.kind, row.block)):
        together = list(group)
        yield from [together] if kind in WITH_SAMPLES else [[row] for row in together]


def _life(epoch: str) -> str:
    return epoch.partition(".")[0]
