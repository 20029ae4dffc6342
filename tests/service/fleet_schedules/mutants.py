"""Faults that the storage of a fleet once had, or would have without one of its checks.

Each one takes one check out of the code. Schedules have to find it, or they look at nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from nats.js.kv import KeyValue

from wolfstream.service.fleet import jetstream_snapshots, jetstream_term, planned_commits
from wolfstream.service.fleet.commit_messages import Fragment, LogRow
from wolfstream.service.fleet.jetstream_log import JetStreamLog, KeyArchive
from wolfstream.service.fleet.log_index import Purge
from wolfstream.service.fleet.subject_messages import SubjectMessages
from wolfstream.service.storage import interfaces


class Mutant(NamedTuple):
    """A fault.

    Attributes:
        profile: of the schedules that are made for it.
        seed: of a schedule that finds it.
        broken: a part of what the checker says then.
        apply: takes the check out.
    """

    profile: str
    seed: str
    broken: str
    apply: Callable[[pytest.MonkeyPatch], None]


def _believe_any_successor(patch: pytest.MonkeyPatch) -> None:
    """Take a commit for absent if another one comes next, whatever that one follows."""
    find = planned_commits._find

    async def found(number: int, planned: planned_commits.PlannedCommit, _: bool) -> int | None:
        return await find(number, planned, sent_before=False)

    patch.setattr(planned_commits, "_find", found)


def _purge_without_kept_position(patch: pytest.MonkeyPatch) -> None:
    """Do not say in the row of a purge up to where its readers need the kept keys."""

    def purge(before: int, up_to: int, left: int, _: int, void: Any) -> Purge:
        return Purge(before, up_to, left, 0, void)

    patch.setattr(jetstream_term, "Purge", purge)


def _keep_keys_unread(patch: pytest.MonkeyPatch) -> None:
    """Append kept keys behind what was read once, also if more was written without an answer."""
    append = KeyArchive.append

    def appended(kept: KeyArchive, rows: Sequence[LogRow]) -> None:
        with pytest.MonkeyPatch.context() as one:
            one.setattr(kept.chain, "read_on", lambda: None)
            append(kept, rows)

    patch.setattr(KeyArchive, "append", appended)


def _pin_by_digest(patch: pytest.MonkeyPatch) -> None:
    """Give pinned states of the same bytes the same name."""
    patch.setattr(jetstream_snapshots, "new_pinned_name", interfaces._digest)


def _delete_by_name(patch: pytest.MonkeyPatch) -> None:
    """Delete a model's entry in the catalogue, whichever it is by then."""
    delete = KeyValue.delete

    async def deleted(bucket: KeyValue, key: str, **_: Any) -> bool:
        return await delete(bucket, key)

    patch.setattr(KeyValue, "delete", deleted)


def _delete_parts_in_doubt(patch: pytest.MonkeyPatch) -> None:
    """Delete the parts of a snapshot that may be stored."""
    patch.setattr(jetstream_snapshots, "_NotStored", OSError)


def _save_over_anything(patch: pytest.MonkeyPatch) -> None:
    """Store a snapshot in the place of whatever is there when it arrives."""
    patch.setattr(jetstream_snapshots, "EXPECTED", "Unknown-Header")


def _read_answers_anywhere(patch: pytest.MonkeyPatch) -> None:
    """Take the commit after a purged one for that one."""
    after = SubjectMessages.after

    def renumbered(
        messages: SubjectMessages, last: int, known: int, timeout: float | None = None, **more: int
    ) -> Iterator[tuple[Fragment, int]]:
        found = after(messages, last, known, timeout, **more)
        if more.get("at_once") != 1:  # it is not one commit that is read
            yield from found
            return
        for number, (part, _) in enumerate(found, 1):
            yield part, last + number

    patch.setattr(SubjectMessages, "after", renumbered)


def _forget_purged_rollbacks(patch: pytest.MonkeyPatch) -> None:
    """Let who follows a log see only those rollbacks that no purge has ended."""

    def n_rollbacks(log: JetStreamLog) -> int:
        return len(log.rollbacks())

    patch.setattr(JetStreamLog, "n_rollbacks", property(n_rollbacks))


MUTANTS = {
    "absence without proof": Mutant(
        "succession", "57", "was refused, and is in log", _believe_any_successor
    ),
    "purge without kept position": Mutant(
        "kept_keys", "17", "are read, not", _purge_without_kept_position
    ),
    "kept keys in doubt": Mutant(
        "unheard_keys", "0", "the last term cannot purge", _keep_keys_unread
    ),
    "pins of the same name": Mutant("pins", "2", "the state of the rollback at", _pin_by_digest),
    "deletion of a namesake": Mutant(
        "namesakes", "1", "is in the catalogue no more", _delete_by_name
    ),
    "parts deleted in doubt": Mutant("snapshots", "1", "is not whole", _delete_parts_in_doubt),
    "late save": Mutant("late_snapshots", "65", "is of an earlier save", _save_over_anything),
    "rollback that a purge ended": Mutant(
        "standbys", "62", "was never in the log", _forget_purged_rollbacks
    ),
    "answer of another commit": Mutant("answers", "13", "the answer at", _read_answers_anywhere),
}
