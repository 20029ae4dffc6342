"""The blocks of a champion's log that a challenger learns next.

A challenger learns its champion's blocks, in their order, and no others. Its own fits and
checkpoints are in its own log; in a recovery each keeps its place between the same blocks.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from wolfstream.service.errors import Refusal, StartupError
from wolfstream.service.model.comparison import BlockLosses, unknown_losses
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.absorb import concatenate, decode_block
from wolfstream.service.samples.tasks import task_of
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.log import LogReader

# A turn ends after the block that reaches one of these.
_TURN_SAMPLES, _TURN_BYTES = 1024, 4 << 20


class FollowedBlock(NamedTuple):
    """A block of the champion's log, and the champion's losses of the samples in it."""

    entries: list[Entry]
    champion: BlockLosses

    @property
    def samples(self) -> int:
        """The number of samples."""
        return sum(entry.samples for entry in self.entries)


def needed_by_challengers(storage: Storage, champion: Model, snapshots: int) -> int | None:
    """Return the sequence after which challengers need their champion's log; None without any.

    Each challenger may have to recover from one of its newest snapshots, and then learn what comes
    after. Challengers are looked up in the catalogue, because a new leader of a fleet does not lead
    them yet.

    Args:
        storage: of the catalogue and the snapshots.
        champion: whose log it is.
        snapshots: how many of the newest ones of each challenger recovery may have to fall back on.

    Raises StartupError.
    """
    entries = storage.catalogue.models()
    challengers = [entry.number for entry in entries if entry.follows == champion.id]
    newest = [storage.snapshots.sequences(model_id)[:snapshots] for model_id in challengers]
    return min((min(sequences, default=0) for sequences in newest), default=None)


def following_blocks(
    log: LogReader, champion: Learner, challenger: Learner
) -> Iterator[FollowedBlock]:
    """Yield the blocks of a challenger's next turn, which its champion has learned.

    log: of the champion.

    Raises StartupError if the log is damaged, or does not go back so far; StorageFailed if it
    cannot be read now.
    """
    reached, n_bytes = challenger.sequence, 0
    first = reached
    blocks = log.blocks(reached)
    learned = takewhile(lambda block: block[-1].sequence <= champion.sequence, blocks)
    for entries in learned:
        if not entries[0].samples:  # a fit or a checkpoint, which is the champion's own
            continue
        begin, end = entries[0].sequence - entries[0].samples, entries[-1].sequence
        if begin != reached:
            raise StartupError(
                f"the log of model {champion.model.name!r} goes on after sample {begin}, but it "
                f"has learned only up to {reached}; delete it and create it again"
            )
        losses = champion.losses
        champion_losses = (
            unknown_losses(end - begin) if losses is None else losses.between(begin, end)
        )
        yield FollowedBlock(entries, champion_losses)
        reached, n_bytes = end, n_bytes + sum(len(entry.record) for entry in entries)
        if reached - first >= _TURN_SAMPLES or n_bytes >= _TURN_BYTES:
            return


def learn_block(learner: Learner, block: FollowedBlock, limits: Limits) -> None:
    """Have a challenger learn a block of its champion's log; publish it, and compare the two.

    It learns the samples as if their requests had been posted to it: for the same head or, if its
    spec has null for that, for the head that it serves. It passes over a request that it would have
    refused. Labels of predicted rows count as samples: what is compared is what both models predict
    just before they learn them.
    """
    head = block.entries[0].head
    if head not in learner.heads:
        head = learner.model.spec.serve
    contents = [decode_block([entry]) for entry in block.entries]
    draft = Draft(learner, limits)
    refusals = [_refusal(draft, head, content.samples) for content in contents]
    accepted = [content for content, why in zip(contents, refusals, strict=True) if why is None]
    following = learner.model.following
    if accepted:
        samples = concatenate(accepted).samples
        answers = learner.absorb(head, samples)
        sizes = [len(content.samples.y) for content in contents]
        compared = np.repeat([why is None for why in refusals], sizes)
        champion = block.champion.losses[compared]
        challenger = task_of(samples.y).losses(answers.prediction, samples.y)
        comparison = following.comparison.after(block.champion.epoch, champion, challenger)
        following = following._replace(comparison=comparison)
    passed_over = block.entries[-1].sequence - learner.sequence
    if passed_over:
        learner.pass_over(passed_over)
        reason = [why for why in refusals if why is not None][-1]
        following = following.passing_over(passed_over, reason)
    learner.model.following = following
    learner.publish()


def _refusal(draft: Draft, head: HeadName, samples: Samples) -> str | None:
    """Return why a model would refuse a request after those before it; None if it would not."""
    try:
        draft.add(head, samples)
    except Refusal as refusal:
        return refusal.detail
    return None
