"""Compares the recorded logs of a fleet with all that its clients were answered.

It knows nothing of the faults that happened, and uses no code of the product. Each fault that it
finds is printed with the commits around it, who wrote them, and what was acknowledged of the model
at that time.
"""

import itertools
import json
import re
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.simulation.log_reader import Commit, Log, Row, first_numbers, has_samples, key_of

# Commits before and after a fault that are printed, and requests of its model.
_BEFORE, _AFTER, _REQUESTS = 6, 6, 12
# WOLFSTREAM_MAX_LAG_SECONDS, and how late a busy replica notices that it hears nothing.
_LAG_SECONDS = 10.0 + 2.5
_TERM = re.compile(r"model led: model=(\S+) sequence=\d+ epoch=([0-9a-f]+(?:\.\d+)?)")


@dataclass
class Attempt:
    """A request as it was sent once.

    began, ended: seconds since 1970. status: 0 where no answer came, -1 where nothing was sent.
    told: the answer.
    """

    url: str
    began: float
    ended: float
    status: int
    told: dict[str, Any]

    @property
    def outcome(self) -> str:
        """What the answer says of the samples: learned, durable, not-learned or unknown."""
        if self.status == 200:
            return "learned"
        if self.status in (-1, 409, 412, 413, 422, 429):
            return "not-learned"
        return str(self.told.get("outcome", "unknown"))

    def __str__(self) -> str:
        if self.status == 200:
            what = f"{self.told['sequence']} in {self.told['epoch']}"
        else:
            what = f"{self.outcome} {self.told.get('detail', '')}"[:100]
        return f"{clock(self.began)}-{clock(self.ended)} {self.url[-5:]} {self.status} {what}"


class Read(NamedTuple):
    """A prediction that was answered. asked: when it was asked for, in seconds since 1970."""

    model: str
    life: str
    sequence: int
    url: str
    asked: float


@dataclass
class Request:
    """Samples for a model, and all attempts to have them learned.

    samples: the first numbers of the rows, which no other row has.
    """

    model: str
    key: str | None
    samples: list[float]
    body: dict[str, Any]
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def acknowledged(self) -> Attempt | None:
        """The first attempt that was acknowledged."""
        return next((one for one in self.attempts if one.status == 200), None)

    @property
    def model_asked(self) -> str:
        """The model that has learned it, or else the one that was asked."""
        told = self.acknowledged
        return self.model if told is None else str(told.told.get("model", self.model))

    def __str__(self) -> str:
        about = f"{self.key or 'without a key'}: {len(self.samples)} samples of {self.model}"
        return "\n".join([f"    {about}", *(f"      {one}" for one in list(self.attempts))])


class Ledger:
    """What clients have asked and were answered. Its methods may be called on any thread.

    contradictions: answers that contradict others. reads: (model, life, sequence) -> the decision,
    where it was read and when. read_at: all predictions.
    """

    def __init__(self) -> None:
        self.requests, self.contradictions = list[Request](), list[str]()
        self.reads = dict[tuple[str, str, int], tuple[Any, str, float]]()
        self.read_at = list[Read]()
        self._numbers, self._lock = itertools.count(1), threading.Lock()

    @property
    def figures(self) -> dict[str, int]:
        """Return how much was asked and answered."""
        acknowledged = [one for one in self.requests if one.acknowledged is not None]
        attempts = [attempt for one in self.requests for attempt in one.attempts]
        return {
            "requests": len(self.requests),
            "requests with a key": sum(one.key is not None for one in self.requests),
            "requests acknowledged": len(acknowledged),
            "requests of unknown outcome": len(self.requests) - len(acknowledged),
            "samples acknowledged": sum(len(one.samples) for one in acknowledged),
            "attempts without an answer": sum(one.status == 0 for one in attempts),
            "predictions compared": len(self.read_at),
        }

    def new_samples(self, n: int) -> list[float]:
        """Return first numbers that no row has had."""
        with self._lock:
            return [next(self._numbers) / 1024 for _ in range(n)]

    def read(self, model: str, url: str, told: dict[str, Any], asked: float, at: float) -> None:
        """Take an answered prediction, which is the same at all replicas to the bit.

        asked, at: when it was asked for and answered.
        """
        place = model, life_of(told["epoch"]), int(told["sequence"])
        with self._lock:
            self.read_at.append(Read(*place[:2], place[2], url, asked))
            decision, where, before = self.reads.setdefault(place, (told["decision"], url, at))
        if decision != told["decision"]:
            self.contradictions.append(
                f"{model} at {place[1:]}: {url} predicted at {clock(at)} otherwise than {where} "
                f"at {clock(before)}: {told['decision']}, {decision}"
            )


@dataclass
class Fault:
    """What contradicts a promise. commit: where, if it is at one place of the log."""

    text: str
    log: Log | None = None
    commit: Commit | None = None
    request: Request | None = None


def life_of(epoch: str) -> str:
    """Return what the epochs of all terms between two rollbacks have in common."""
    return epoch.partition(".")[0]


def name_writers(
    logs: Iterable[Log],
    names: Mapping[int, str],
    printed: Mapping[str, str],
    makers: Mapping[str, str],
) -> None:
    """Note in each commit which replica wrote it, by the terms that replicas have printed.

    printed: replica -> all that it has printed. makers: model -> the replica that made it.
    """
    led = {
        (model, epoch): replica
        for replica, text in printed.items()
        for model, epoch in _TERM.findall(text)
    }
    for log in logs:
        writers = dict[bytes, str]()
        for commit in log.commits:
            if (epoch := _begun(commit)) is not None and commit.writer not in writers:
                name = names.get(log.number, "")
                made_by = makers.get(name, "its maker") if commit is log.commits[0] else ""
                by = made_by or led.get((name, epoch), "a replica that has not said so")
                writers[commit.writer] = f"{by} in {epoch}"
            commit.client = writers.get(commit.writer, "a writer without a term")


def check(logs: Mapping[int, Log], names: Mapping[int, str], ledger: Ledger) -> list[str]:
    """Return everything that contradicts a promise, with what is needed to find out why.

    logs: by the numbers of their models. names: of models, by their numbers.
    """
    by_name = {names[number]: log for number, log in logs.items() if number in names}
    followers = {log.number for log in logs.values() if not any(_samples_of(log))}
    faults = [Fault(text, log) for log in logs.values() for text in log.faults]
    places = dict[str, _Places]()
    for name, log in by_name.items():
        faults += _writers(log)
        places[name] = _Places(log)
        if log.number not in followers:
            faults += _sequences(log)
            faults += _keys(log)
        faults += places[name].twice()
    faults += _given_twice(ledger.requests)
    faults += _stale(ledger)
    known = {sample for one in ledger.requests for sample in one.samples}
    for name, of in places.items():
        if strangers := of.found.keys() - known:
            commit, at = of.found[min(strangers)][0]
            faults.append(Fault(f"{name}: nobody has sent sample {at}", of.log, commit))
    for request in ledger.requests:
        faults += _answers(request)
        faults += _stored(request, places)
    return [*ledger.contradictions, *(_explained(one, names, ledger) for one in faults)]


def _samples_of(log: Log) -> Iterator[Row]:
    return (row for commit in log.commits for row in commit.rows if has_samples(row))


def _writers(log: Log) -> Iterator[Fault]:
    """Yield commits that do not follow the one before, or are not of the term that they are in."""
    before: Commit | None = None
    for commit in log.commits:
        after = 0 if before is None else before.last
        if commit.previous != after:
            text = f"message {commit.first} follows {commit.previous}, not {after}"
            yield Fault(text, log, commit)
        if before is not None and before.writer != commit.writer and _begun(commit) is None:
            text = f"message {commit.first} is not of the writer whose term it is in"
            yield Fault(text, log, commit)
        before = commit


def _begun(commit: Commit) -> str | None:
    """Return the epoch of the term that a commit begins; None if it begins none."""
    if not commit.rows or commit.rows[0].kind not in ("created", "epoch"):
        return None
    return str(json.loads(commit.rows[0].record)["epoch"])


def _sequences(log: Log) -> Iterator[Fault]:
    """Yield rows of samples that do not come directly after those before them."""
    reached = 0
    for commit in log.commits:
        for row in commit.rows:
            if has_samples(row):
                if row.sequence - row.samples != reached:
                    text = f"{row.samples} samples up to {row.sequence} come after {reached}"
                    yield Fault(text, log, commit)
                reached = row.sequence
            elif row.kind in ("rollback", "epoch", "created"):
                if row.sequence < reached:
                    yield Fault(f"{row.kind} at {row.sequence} after {reached}", log, commit)
                reached = max(reached, row.sequence)


def _keys(log: Log) -> Iterator[Fault]:
    """Yield keys that were committed at two sequences."""
    known: dict[bytes, int] = {}
    for commit in log.commits:
        for row in commit.rows:
            key = key_of(row)
            if key is not None and known.setdefault(key, row.sequence) != row.sequence:
                text = f"key {key!r} was committed at {known[key]} and at {row.sequence}"
                yield Fault(text, log, commit)


class _Places:
    """Where the samples of a log are, and in which epochs."""

    def __init__(self, log: Log) -> None:
        self.log = log
        # first number -> the commits that have it, with its sequence.
        self.found = defaultdict[float, list[tuple[Commit, int]]](list)
        # (sequence, epoch) of what began an epoch, in the log's order.
        self._began = list[tuple[int, str]]()
        for commit in log.commits:
            for row in commit.rows:
                if has_samples(row):
                    numbers = first_numbers(row)
                    for at, number in enumerate(numbers, row.sequence - len(numbers) + 1):
                        self.found[number].append((commit, at))
                elif row.kind in ("created", "epoch", "rollback"):
                    self._began.append((row.sequence, str(json.loads(row.record)["epoch"])))

    def twice(self) -> Iterator[Fault]:
        """Yield samples that are in the log twice, one of each pair of commits."""
        told = set[tuple[int, ...]]()
        for number, found in self.found.items():
            firsts = tuple(commit.first for commit, _ in found)
            if len(found) > 1 and firsts not in told:
                told.add(firsts)
                where = ", ".join(f"{at} (message {commit.first})" for commit, at in found)
                text = f"sample {number} is in the log at {where}"
                yield Fault(text, self.log, found[-1][0])

    def epochs_at(self, sequence: int) -> set[str]:
        """Return the epochs in which a sequence may be answered: its own, and those begun there."""
        before = [epoch for at, epoch in self._began if at < sequence]
        return {epoch for at, epoch in self._began if at == sequence} | set(before[-1:])


def _answers(request: Request) -> Iterator[Fault]:
    """Yield answers to one request that contradict each other."""
    told = {
        (one.told.get("model"), one.told["sequence"], one.told["epoch"])
        for one in request.attempts
        if one.status == 200
    }
    if len(told) > 1:
        text = f"the same request was acknowledged as {sorted(map(str, told))}"
        yield Fault(text, None, None, request)
    if request.key is not None and not told:
        yield Fault("a request with a key was never acknowledged", None, None, request)
    for one in request.attempts:
        if one.status not in (-1, 0, 200, 502, 503, 504):
            yield Fault(f"an answer that no fault explains: {one}", None, None, request)


def _given_twice(requests: Sequence[Request]) -> Iterator[Fault]:
    """Yield acknowledged requests that were given sequences of another one."""
    given = dict[tuple[str, int], Request]()
    for request in requests:
        told = request.acknowledged
        if told is None:
            continue
        last = int(told.told["sequence"])
        places = [
            (request.model_asked, at) for at in range(last - len(request.samples) + 1, last + 1)
        ]
        others = {id(given[at]): given[at] for at in places if at in given}
        for other in others.values():
            text = f"{request.model_asked}: {last} and before were given twice, also to\n{other}"
            yield Fault(text, None, None, request)
        given.update(dict.fromkeys(places, request))


def _stale(ledger: Ledger) -> Iterator[Fault]:
    """Yield predictions without samples that were acknowledged for longer than they may lag."""
    # (model, life) -> (when it was acknowledged, sequence), in the order of these times.
    acknowledged = defaultdict[tuple[str, str], list[tuple[float, int]]](list)
    for request in ledger.requests:
        if (told := request.acknowledged) is not None:
            place = request.model_asked, life_of(told.told["epoch"])
            acknowledged[place].append((told.ended, int(told.told["sequence"])))
    for moments in acknowledged.values():
        moments.sort()
    for read in ledger.read_at:
        moments = acknowledged[read.model, read.life]
        before = bisect_left(moments, (read.asked - _LAG_SECONDS, 0))
        last = max((sequence for _, sequence in moments[:before]), default=0)
        if read.sequence < last:
            yield Fault(
                f"{read.model}: {read.url} was asked at {clock(read.asked)} and predicted at "
                f"{read.sequence} in {read.life}; {last} was acknowledged {_LAG_SECONDS} s before"
            )


def _stored(request: Request, places: Mapping[str, _Places]) -> Iterator[Fault]:
    """Yield what contradicts the answers to one request in the logs."""
    family = [
        of
        for name, of in places.items()
        if name == request.model or name.startswith(f"{request.model}:")
    ]
    found = [[(of, *one) for of in family for one in of.found.get(x, [])] for x in request.samples]
    n_found = sum(bool(one) for one in found)
    of, commit, _ = next((one[0] for one in found if one), (None, None, 0))
    log = None if of is None else of.log
    told = request.acknowledged
    if 0 < n_found < len(request.samples):
        yield Fault(f"{n_found} of {len(request.samples)} samples are stored", log, commit, request)
    if any(len({id(place.log) for place, *_ in one}) > 1 for one in found):
        yield Fault("samples are in several logs", log, commit, request)
    if told is None:
        outcomes = {one.outcome for one in request.attempts}
        if "durable" in outcomes and not n_found:
            yield Fault("samples that are durable are not stored", log, commit, request)
        if n_found and outcomes <= {"not-learned"}:
            yield Fault("samples that were not learned are stored", log, commit, request)
        return
    if not n_found:
        yield Fault("acknowledged samples are not stored", log, commit, request)
        return
    if of is not None and of is not places.get(request.model_asked):
        yield Fault(f"learned by another one than {request.model_asked}", log, commit, request)
    last, epoch = int(told.told["sequence"]), str(told.told["epoch"])
    wanted = list(range(last - len(request.samples) + 1, last + 1))
    stored = [one[0][2] if one else 0 for one in found]
    if stored != wanted:
        text = f"what was acknowledged at {wanted[0]}-{last} is at {stored[0]}-{stored[-1]}"
        yield Fault(text, log, commit, request)
    elif of is not None and epoch not in of.epochs_at(last):
        text = f"answered in epoch {epoch}, and stored in {sorted(of.epochs_at(last))}"
        yield Fault(text, log, commit, request)


def _explained(fault: Fault, names: Mapping[int, str], ledger: Ledger) -> str:
    """Return a fault with the commits around it, and what was acknowledged at that time."""
    lines = [fault.text]
    name = fault.request.model if fault.request is not None else ""
    shown = list[Commit]()
    if fault.log is not None:
        name = names.get(fault.log.number, name)
        lines[0] = f"{name}: {fault.text}"
    if fault.request is not None:
        lines += ["  the request:", str(fault.request)]
    if fault.log is not None and fault.commit is not None:
        at = fault.log.commits.index(fault.commit)
        shown = fault.log.commits[max(at - _BEFORE, 0) : at + _AFTER]
        lines.append("  what is stored:")
        lines += [f"  {'>' if one is fault.commit else ' '} {_line(one)}" for one in shown]
    lines.append("  what was acknowledged:")
    lines += [str(one) for one in _about(fault, name, shown, ledger.requests)]
    return "\n".join(lines)


def _about(
    fault: Fault, name: str, shown: Sequence[Commit], requests: Sequence[Request]
) -> list[Request]:
    """Return requests of a model whose samples are shown, or that were answered at that time."""
    moments = [one.at for one in shown]
    if not moments and fault.request is not None:
        moments = [time for one in fault.request.attempts for time in (one.began, one.ended)]
    numbers = {
        number
        for commit in shown
        for row in commit.rows
        if has_samples(row)
        for number in first_numbers(row)
    }
    whole = name.partition(":")[0]
    first, last = min(moments, default=0.0), max(moments, default=0.0)
    close = [
        one
        for one in requests
        if one is not fault.request
        and one.model == whole
        and (
            not numbers.isdisjoint(one.samples)
            or any(first <= attempt.ended <= last for attempt in one.attempts)
        )
    ]
    return close[:_REQUESTS]


def _line(commit: Commit) -> str:
    rows = ", ".join(_told(row) for row in commit.rows[:8])
    more = "" if len(commit.rows) <= 8 else f" and {len(commit.rows) - 8} more"
    return (
        f"{clock(commit.at)}  message {commit.first}-{commit.last} after {commit.previous} by "
        f"{commit.client} ({commit.writer.hex()}): {rows or 'nothing'}{more}"
    )


def _told(row: Row) -> str:
    if has_samples(row):
        return f"{row.kind} {row.sequence - row.samples + 1}-{row.sequence}"
    key = key_of(row)
    return f"{row.kind} {row.sequence}" + (f" {key!r}" if key is not None else "")


def clock(seconds: float) -> str:
    """Return minutes and seconds of a moment, by which lines are compared."""
    return f"{int(seconds // 60 % 60):02}:{seconds % 60:06.3f}"
