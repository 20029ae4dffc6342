"""What a challenger learns next: blocks of its champion's log, each as the champion learned it.

The challenger learns the champion's blocks, in their order, and no others. Its own fits and
checkpoints are in its own log and keep their places between the blocks in a recovery.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from wolfstream.service.engine.absorb import recorded, together
from wolfstream.service.errors import Refusal, StartupError
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.losses import Known, losses_of, nothing_known
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.log import LogReader

# What is read from the journal at a time, at least one block.
_TURN_SAMPLES, _TURN_BYTES = 1024, 4 << 20


class FollowedBlock(NamedTuple):
    """A block of the champion's log, and the champion's losses of its samples."""

    entries: list[Entry]
    champion: Known

    @property
    def samples(self) -> int:
        """The number of samples."""
        return sum(entry.samples for entry in self.entries)


def needed_by_challengers(storage: Storage, champion: Model, snapshots: int) -> int | None:
    """The sequence after which a model's log is kept for those that follow it, if any do.

    It is that of the oldest of so many newest snapshots of a challenger, on which recovery may
    fall back. Those in the catalogue count, as a new leader of a fleet has none of them yet.
    Raises StartupError.
    """
    there = storage.catalogue.models()
    following = [found.number for found in there if found.follows == champion.id]
    kept = [storage.snapshots.sequences(number)[:snapshots] for number in following]
    return min((min(sequences, default=0) for sequences in kept), default=None)


def following_blocks(
    log: LogReader, champion: Learner, challenger: Learner
) -> Iterator[FollowedBlock]:
    """Return the blocks that a challenger learns in its next turn; its champion has learned them.

    log: the champion's. Raises StartupError if it does not go back that far, or is damaged, and
    StorageFailed where it cannot be read now.
    """
    reached, n_bytes = challenger.sequence, 0
    first = reached
    blocks = log.blocks(reached)
    learned = takewhile(lambda block: block[-1].sequence <= champion.sequence, blocks)
    for entries in learned:
        if not entries[0].samples:
            continue
        begin, end = entries[0].sequence - entries[0].samples, entries[-1].sequence
        if begin != reached:
            raise StartupError(
                f"the log of model {champion.model.name!r} goes on after sample {begin}, but it "
                f"has learned only up to {reached}; delete it and create it again"
            )
        losses = champion.losses
        known = nothing_known(end - begin) if losses is None else losses.between(begin, end)
        yield FollowedBlock(entries, known)
        reached, n_bytes = end, n_bytes + sum(len(entry.record) for entry in entries)
        if reached - first >= _TURN_SAMPLES or n_bytes >= _TURN_BYTES:
            return


def learn_block(learner: Learner, block: FollowedBlock, limits: Limits) -> None:
    """Have a challenger learn a block of its champion's log, publish it, and compare the two.

    It learns the samples as if the requests of the block had been posted to it, under the same
    head, or where its spec has null for that under the head that it serves. Labels of predicted
    rows are samples like others: what is compared is what both say just before they learn them. It
    passes over a request that it would have refused.
    """
    head = block.entries[0].head
    if head not in learner.heads:
        head = learner.model.spec.serve
    contents = [recorded([entry]) for entry in block.entries]
    draft = Draft(learner, limits)
    refusals = [_refusal(draft, head, content.samples) for content in contents]
    taken = [content for content, why in zip(contents, refusals, strict=True) if why is None]
    following = learner.model.following
    if taken:
        samples = together(taken).samples
        answers = learner.absorb(head, samples)
        kept = np.repeat([why is None for why in refusals], [len(c.samples.y) for c in contents])
        losses, own = block.champion.losses[kept], losses_of(answers.prediction, samples.y)
        comparison = following.comparison.after(block.champion.epoch, losses, own)
        following = following._replace(comparison=comparison)
    left_out = block.entries[-1].sequence - learner.sequence
    if left_out:
        learner.pass_over(left_out)
        reason = [why for why in refusals if why is not None][-1]
        following = following.passing_over(left_out, reason)
    learner.model.following = following
    learner.publish()


def _refusal(draft: Draft, head: HeadName, samples: Samples) -> str | None:
    """Return why a model would refuse a request after those before it; None if it takes it."""
    try:
        draft.add(head, samples)
    except Refusal as refusal:
        return refusal.detail
    return None
