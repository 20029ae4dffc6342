"""Compares the logs of a simulated fleet with what its clients were answered.

It knows nothing of the faults that happened, and uses no code of the product.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.simulation.log_reader import (
    CatalogueChange,
    Commit,
    Log,
    Row,
    first_numbers,
    has_samples,
    key_of,
)
from tests.simulation.records import Learned, Record

_SHOWN = 12
# WOLFSTREAM_MAX_LAG_SECONDS, and how late a replica notices that it hears nothing.
_LAG_SECONDS = 10.0 + 2.5


def check(logs: dict[int, Log], changes: Sequence[CatalogueChange], record: Record) -> list[str]:
    """Return everything that contradicts a promise, each with the rows around it."""
    faults = list(record.contradictions)
    followers = {one.number for one in changes if one.follows is not None}
    places = _Places()
    ends = _deletions(changes)
    for log in logs.values():
        faults += log.faults
        end = ends.get(log.number, math.inf)
        # A term that begins in the empty log of a deleted model is never used.
        of_life = Log(log.number, [one for one in log.commits if one.at <= end])
        faults += _writers(of_life)
        if log.number not in followers:
            faults += _sequences(of_life, places)
            faults += _keys(of_life)
        faults += _of_deleted(log, end)
    faults += places.twice()
    names = {one.number: one.name for one in changes if one.number is not None}
    for learned in record.learned:
        faults += _acknowledged(learned, places, names)
    faults += _deleted(record)
    faults += _stale(record)
    return faults


def _writers(log: Log) -> Iterator[str]:
    """Yield commits that come after a term, and are of another writer than the term."""
    before: Commit | None = None
    for commit in log.commits:
        if before is None:
            if commit.previous:
                yield f"model {log.number}: the log begins after {commit.previous}\n  {commit}"
        elif commit.previous != before.last:
            yield (
                f"model {log.number}: message {commit.first} follows {commit.previous}, and the "
                f"message before it is {before.last}\n{log.around(commit)}"
            )
        elif commit.writer != before.writer and not _begins_term(commit):
            yield (
                f"model {log.number}: message {commit.first} is not of the leader whose term it "
                f"is in\n{log.around(commit)}"
            )
        before = commit


def _begins_term(commit: Commit) -> bool:
    return bool(commit.rows) and commit.rows[0].kind == "epoch"


class _Places:
    """Where samples are in the logs."""

    def __init__(self) -> None:
        # first number -> (log, commit, the sample's sequence)
        self.found: dict[float, list[tuple[Log, Commit, int]]] = defaultdict(list)

    def add(self, log: Log, commit: Commit, row: Row) -> None:
        """Note the samples of a row."""
        numbers = first_numbers(row)
        for at, number in enumerate(numbers, row.sequence - len(numbers) + 1):
            self.found[number].append((log, commit, at))

    def twice(self) -> Iterator[str]:
        """Yield samples that are in a log twice, one of each pair of commits."""
        told = set[tuple[int, ...]]()
        for number, places in self.found.items():
            for log in {log.number: log for log, _, _ in places}.values():
                found = [(commit, at) for of, commit, at in places if of is log]
                firsts = (log.number, *(commit.first for commit, _ in found))
                if len(found) > 1 and firsts not in told:
                    told.add(firsts)
                    where = ", ".join(f"{at} (message {one.first})" for one, at in found)
                    yield (
                        f"sample {number} is in the log of model {log.number} more than once: at "
                        f"{where}\n{log.around(found[-1][0])}"
                    )


def _sequences(log: Log, places: _Places) -> Iterator[str]:
    """Yield rows of samples that do not follow what was learned before."""
    reached = 0
    for commit in log.commits:
        for row in commit.rows:
            if has_samples(row):
                if row.sequence - row.samples != reached:
                    yield (
                        f"model {log.number}: samples up to {row.sequence} follow {reached}, and "
                        f"are {row.samples}\n{log.around(commit)}"
                    )
                places.add(log, commit, row)
                reached = row.sequence
            elif row.kind in ("rollback", "epoch"):
                if row.sequence < reached:
                    yield (
                        f"model {log.number}: a {row.kind} at {row.sequence} after {reached}\n"
                        f"{log.around(commit)}"
                    )
                if row.kind == "rollback":
                    reached = row.sequence


def _keys(log: Log) -> Iterator[str]:
    """Yield idempotency keys that were committed at two sequences."""
    known: dict[bytes, int] = {}
    for commit in log.commits:
        for row in commit.rows:
            key = key_of(row)
            if key is not None and known.setdefault(key, row.sequence) != row.sequence:
                yield (
                    f"model {log.number}: key {key!r} was committed at {known[key]} and at "
                    f"{row.sequence}\n{log.around(commit)}"
                )


def _acknowledged(learned: Learned, places: _Places, names: dict[int, str]) -> Iterator[str]:
    """Yield what contradicts the answers to one request of samples."""
    found = [
        [(log, commit, at) for log, commit, at in places.found.get(number, [])]
        for number in learned.samples
    ]
    n_found = sum(bool(one) for one in found)
    about = (
        f"{learned.client} at {learned.began:.3f}-{learned.ended:.3f}: "
        f"{len(learned.samples)} samples from {learned.samples[0]} of {learned.model}"
        f"{f' under {learned.key}' if learned.key else ''}, {', '.join(learned.outcomes[-5:])}"
    )
    last = learned.outcomes[-1] if learned.outcomes else "unknown"
    if last in ("learned", "durable") and n_found < len(learned.samples):
        lost = len(learned.samples) - n_found
        yield f"{about}: {lost} acknowledged samples are in no log of a model that is there"
    if 0 < n_found < len(learned.samples) and learned.model != "labelled":
        yield f"{about}: only {n_found} samples were learned"
    if n_found and set(learned.outcomes) <= {"not-learned"} and learned.ended:
        log, commit, _ = next(one[0] for one in found if one)
        yield f"{about}: they were learned\n{log.around(commit)}"
    if learned.sequence is not None and n_found == len(learned.samples):
        begin = learned.sequence - len(learned.samples) + 1
        places_told = list(range(begin, learned.sequence + 1))
        if not all(
            at in [p for _, _, p in one] for at, one in zip(places_told, found, strict=True)
        ):
            log, commit, at = found[-1][0]
            yield (
                f"{about}: acknowledged at {learned.sequence}, and at {at}\n{log.around(commit)}"
            )
    strangers = {names.get(log.number) for one in found for log, _, _ in one}
    if strangers - {learned.model, None}:
        yield f"{about}: learned by {strangers}"


def _deletions(changes: Sequence[CatalogueChange]) -> dict[int, float]:
    """Return when each model was deleted that was, by its number."""
    present: dict[str, int | None] = {}
    ends: dict[int, float] = {}
    for change in changes:
        number = present.get(change.name)
        if change.number is None and number is not None:
            ends[number] = change.at
        present[change.name] = change.number
    return ends


def _of_deleted(log: Log, end: float) -> Iterator[str]:
    """Yield the first samples that were written for a model after it was deleted."""
    for commit in log.commits:
        if commit.at > end and any(has_samples(row) for row in commit.rows):
            yield (
                f"model {log.number} was deleted at {end:.3f} s, and has samples of later\n"
                f"{log.around(commit)}"
            )
            return


def _deleted(record: Record) -> Iterator[str]:
    """Yield deletes that took more than the state that they required."""
    for one in record.deleted:
        life = one.epoch.partition(".")[0]
        for learned in record.learned:
            if (
                learned.model == one.model
                and learned.sequence is not None
                and learned.epoch.partition(".")[0] == life
                and learned.sequence > one.sequence
                and learned.ended < one.ended
            ):
                yield (
                    f"{one.model}: a delete of {one.epoch}:{one.sequence} was done at {one.ended}, "
                    f"after {learned.sequence} in {learned.epoch} was acknowledged at "
                    f"{learned.ended}"
                )
                break


def _stale(record: Record) -> Iterator[str]:
    """Yield predictions without samples that had been acknowledged for longer than they may lag."""
    learned_of = defaultdict[tuple[str, str], list[Learned]](list)
    for learned in record.learned:
        if learned.sequence is not None:
            learned_of[learned.model, learned.epoch.partition(".")[0]].append(learned)
    for one in record.predicted:
        missing = [
            learned
            for learned in learned_of[one.model, one.epoch.partition(".")[0]]
            if learned.ended < one.asked - _LAG_SECONDS and (learned.sequence or 0) > one.sequence
        ]
        if missing:
            oldest = min(missing, key=lambda learned: learned.ended)
            yield (
                f"{one.client} asked {one.model} at {one.asked:.3f} and was answered from "
                f"{one.epoch}:{one.sequence}; {oldest.sequence} was acknowledged at "
                f"{oldest.ended:.3f}"
            )


def shortened(faults: Sequence[str]) -> list[str]:
    """Return the first faults, and how many there are more."""
    more = len(faults) - _SHOWN
    return [*faults[:_SHOWN], *([f"... and {more} more"] if more > 0 else [])]
