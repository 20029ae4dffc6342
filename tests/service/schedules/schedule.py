"""A schedule: what clients, operators and the disk do to one server, one step after another.

A seed decides all of it. Each step is followed by a look at the files (`promises`). A step may be
cut short: then the process or the power ends at one of its system calls, and nobody heard a reply.
"""

import errno
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, get_args

import numpy as np

from tests.service.schedules.log_file import UNIT
from tests.service.schedules.promises import Broken, Life, Promises
from tests.service.schedules.server import Server
from tests.service.specs import read_papers_spec
from tests.service.syscalls.disk import LOSSES
from tests.service.syscalls.library import FOREVER, Call, SystemCalls
from wolfstream.service.engine.challengers import Turn
from wolfstream.service.engine.group_learning import GroupRequest
from wolfstream.service.engine.queue_items import (
    LabelRequest,
    LearnRequest,
    Order,
    WaitingRowsRequest,
)
from wolfstream.service.errors import Refusal, StartupError
from wolfstream.service.heads.kinds import fit_window
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import load_content
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.following import Start
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.data_directory import replays_path
from wolfstream.service.storage.snapshot_format import State, encode_state

_MOST_ROWS, _UPLOADED = 3, 7
_SPECS: list[dict[str, Any]] = [
    {
        "working_set": None,
        "kernel": {"type": "linear"},
        "asset": {"features": "identity", "lambda": 1e-2},
        "pending": {"max_rows": _MOST_ROWS},
        "seed": seed,
    }
    for seed in (1, 2)
]
# Regressions with a head that is fitted again on request.
_FITTED_SPECS: list[dict[str, Any]] = [
    {
        "task": "regression",
        "working_set": None,
        "asset": {"dimension": dimension},
        "semiparametric": {"tol": 0.1},
    }
    for dimension in (4, 8)
]
_GRID = np.array([[0.0, 1.0, -1.0], [0.5, -2.0, 1.0], [0.1, 0.3, 0.7]])
_NAMES, _MOST_MODELS = "abcd", 4
# Patterns of the paths whose calls fail.
STATE_FILES = ("*.snapshot", "*.partial", "*.pinned", "*/snapshots/*")
LOG_FILES = ("*log.sqlite-wal", "*log.sqlite*")
FILES = (*LOG_FILES, *STATE_FILES)
_LARGE = 11
# In the marks of replays, in the place of a sequence: a snapshot is being loaded.
_LOADING = 2**63

# What is done, how often in proportion, and to which kind of model.
_STEPS = {
    "learn": (30, "free"),
    "learn_together": (6, "none"),
    "learn_large": (4, "free"),
    "go_on": (6, "none"),
    "retry": (10, "none"),
    "predict": (6, "free"),
    "label": (5, "free"),
    "begin_snapshot": (5, "whole"),
    "save": (8, "none"),
    "finish": (4, "none"),
    "roll_back": (3, "any"),
    "create": (3, "none"),
    "upload": (2, "none"),
    "delete": (1, "any"),
    "follow": (2, "free"),
    "begin_turn": (5, "challenger"),
    "end_turn": (5, "none"),
    "catch_up": (3, "challenger"),
    "refit": (0, "whole"),
    "promote": (1, "challenger"),
    "fail": (6, "none"),
    "heal": (5, "none"),
    "break_model": (1, "free"),
    "restart": (1, "none"),
    "restart_unreadable": (1, "none"),
    "restart_marked": (1, "any"),
}


class Profile(NamedTuple):
    """What a schedule does.

    weights: how often each step is done, in proportion. files: patterns of the paths whose calls
    fail. calls: those that do. models: how many a seed may have, at least and at most. varied:
    whether seeds favour some of the steps. specs: of the models that are made. ends_early: how
    often a step is cut short. lasting: whether calls fail from the next one on until they heal.
    """

    weights: Mapping[str, float]
    files: Sequence[str] = FILES
    calls: Sequence[Call] = get_args(Call)
    models: tuple[int, int] = (1, _MOST_MODELS)
    varied: bool = True
    specs: Sequence[dict[str, Any]] = _SPECS
    ends_early: float = 0.015
    lasting: bool = False


_ALL = {name: float(weight) for name, (weight, _) in _STEPS.items()}
# Steps after which a model is broken for a while.
_BREAKING = ("restart_unreadable", "restart_marked", "break_model")
PROFILES = {
    "all": Profile(_ALL),
    "states": Profile(
        {name: weight for name, weight in _ALL.items() if name not in _BREAKING}, STATE_FILES
    ),
    "numbers": Profile(
        {
            **{"upload": 20, "create": 15, "delete": 15, "learn": 5, "restart": 2},
            **{"fail": 10, "heal": 10},
        },
        LOG_FILES,
        calls=("sync", "write"),
        models=(2, _MOST_MODELS),
        varied=False,
        lasting=True,
    ),
    "rows": Profile(
        {
            **{"create": 3, "learn": 4, "predict": 25, "label": 8, "restart": 6},
            **{"begin_snapshot": 10, "save": 10, "finish": 5, "roll_back": 8},
        },
        models=(1, 1),
        varied=False,
    ),
    # Large requests beside commits in doubt.
    "parts": Profile(
        {
            **{"create": 10, "learn": 50, "learn_large": 15, "go_on": 20},
            **{"fail": 30, "heal": 40},
        },
        LOG_FILES,
        calls=("sync",),
        models=(2, 3),
        varied=False,
        ends_early=0.0,
        lasting=True,
    ),
    # Models that broke beside commits in doubt.
    "broken": Profile(
        {
            **{"create": 15, "learn": 20, "break_model": 10, "begin_snapshot": 8, "save": 8},
            **{"finish": 4, "roll_back": 10, "retry": 10, "fail": 15, "heal": 12},
        },
        LOG_FILES,
        calls=("sync", "write"),
        models=(2, _MOST_MODELS),
        varied=False,
        lasting=True,
    ),
    # Challengers with snapshots in doubt, which catch up afterwards.
    "challengers": Profile(
        {
            **{"create": 12, "follow": 15, "learn": 20, "begin_snapshot": 20, "save": 8},
            **{"finish": 4, "catch_up": 25, "fail": 15, "heal": 15},
        },
        LOG_FILES,
        calls=("sync", "write"),
        models=(2, _MOST_MODELS),
        varied=False,
        lasting=True,
    ),
    # Keys that are sent again while their commits are in doubt.
    "keys": Profile(
        {"create": 4, "learn": 25, "retry": 40, "fail": 12, "heal": 6},
        LOG_FILES,
        calls=("sync",),
        models=(1, 2),
        varied=False,
        ends_early=0.08,
        lasting=True,
    ),
    # Answers and challengers' samples that cannot be read for a while.
    "reads": Profile(
        {
            **{"create": 6, "follow": 8, "learn": 30, "retry": 20, "restart": 4},
            **{"begin_turn": 15, "end_turn": 10, "catch_up": 5, "fail": 15, "heal": 12},
        },
        LOG_FILES,
        calls=("read",),
        models=(2, _MOST_MODELS),
        varied=False,
    ),
    # Rollbacks of models that could not be loaded.
    "unloaded": Profile(
        {
            **{"create": 4, "upload": 6, "follow": 6, "learn": 20, "retry": 10, "catch_up": 12},
            **{"begin_snapshot": 15, "save": 15, "finish": 8, "roll_back": 15},
            **{"restart": 4, "restart_unreadable": 6, "restart_marked": 4},
        },
        varied=False,
    ),
    # Fits, and rollbacks of challengers that catch up.
    "fits": Profile(
        {
            **{"create": 6, "follow": 10, "learn": 20, "catch_up": 12, "refit": 15},
            **{"begin_snapshot": 10, "save": 10, "finish": 5, "roll_back": 15},
            **{"begin_turn": 3, "end_turn": 3},
        },
        models=(2, _MOST_MODELS),
        varied=False,
        specs=_FITTED_SPECS,
        ends_early=0.06,
    ),
}


@dataclass(eq=False)
class Sent:
    """A request of samples, and what its client was told last.

    numbers: of its samples. first: the first answer that told of its samples.
    """

    life: Life
    numbers: list[int]
    key: bytes | None
    samples: Samples
    first: dict[str, Any] | None = None


class Schedule:
    """A seed's schedule on a server of its own.

    done: how often each step was done.
    """

    def __init__(
        self, folder: Path, calls: SystemCalls, seed: str, profile: Profile = PROFILES["all"]
    ) -> None:
        self._calls, self._random = calls, Random(seed)
        self._seed, self.step = seed, 0
        self._files, self._failing = profile.files, profile.calls
        self._specs, self._early = profile.specs, profile.ends_early
        self._lasting = profile.lasting
        self._most_models = self._random.randint(*profile.models)
        # Each seed does some steps more often than others do, and so meets what they need together.
        self._weights = {
            name: weight * self._random.choice((0.3, 1.0, 1.0, 6.0) if profile.varied else (1.0,))
            for name, weight in profile.weights.items()
        }
        self.server = Server(folder, calls, self._random)
        self.promises = Promises()
        self.done = Counter[str]()
        self.trace: list[str] = []
        self._number = self._row = 0
        self._keyed: list[Sent] = []
        self._open: dict[Any, Callable[[Any], None]] = {}
        self._turns: list[tuple[Model, Turn]] = []
        self._uploads = [_uploaded(spec) for spec in _SPECS]
        self._faulty = False
        self._broken: dict[str, Any] = {}  # name -> what a broken model has published
        self._marked = set[int]()  # models whose loading is marked as what ended processes
        # By model, the jobs of fits that it may serve since it was rolled back.
        self._jobs: dict[int, set[str | None]] = {}
        self.server.start()
        self.server.stop()
        self.server.keep_few_pages()
        self.server.start()
        self._look()

    def run(self, steps: int) -> None:
        """Do so many steps. Raises Broken, which names the step and those before it."""
        try:
            for _ in range(steps):
                self.step += 1
                self._do_step()
        except Exception as error:  # one of the server itself breaks a promise, too
            last = "\n  ".join(self.trace[-25:])
            raise Broken(f"seed {self._seed}, step {self.step}: {error!r}\n  {last}") from error

    def close(self) -> None:
        self.server.close()

    def _do_step(self) -> None:
        (name,) = self._random.choices([*self._weights], [*self._weights.values()])
        ends_early = self._random.random() < self._early
        self.done[name] += 1
        self.trace.append(f"{self.step} {name}")
        self._carry_out(name)
        records = self.server.note_calls()
        if ends_early:
            self._end_early(records)
        else:
            self.server.follow(records)
            self._look()
            self._hear()

    def _carry_out(self, name: str) -> None:
        _, kind = _STEPS[name]
        step = getattr(self, f"_{name}")
        if kind == "none":
            step()
        elif there := self._models(kind):
            step(self._random.choice(there))

    def _note(self, *told: object) -> None:
        self.trace[-1] += " " + " ".join(map(str, told))

    # -- what clients ask ------------------------------------------------------------------

    def _learn(self, model: Model) -> None:
        self._send([self._new_request(model, self._random.randint(1, 3))])

    def _learn_together(self) -> None:
        models = self._free()
        sent = [self._random.choice(models) for _ in range(4)] if models else []
        self._send([self._new_request(model, 1) for model in sent])

    def _learn_large(self, model: Model) -> None:
        self._send([self._new_request(model, _LARGE)])

    def _retry(self) -> None:
        there = [one for one in self._keyed if self.promises.of_name(one.life.name) is one.life]
        if there:
            latest = self._random.choice((1, 3, 20))
            sent = self._random.choice(there[-latest:])
            model = self.server.writer.models.get(sent.life.name)
            if model is not None and model in self._free():
                self._send([(model, sent)])

    def _new_request(self, model: Model, n: int) -> tuple[Model, Sent]:
        numbers = [*range(self._number + 1, self._number + 1 + n)]
        self._number += n
        X = np.array([[k * UNIT, (k % 7) - 3.0, (k % 3) - 1.0] for k in numbers])
        if model.spec.semiparametric is None:
            samples = Samples(X, ["no" if k % 2 else "yes" for k in numbers])
        else:
            samples = Samples(X, X[:, 1] + 0.5 * X[:, 2])
        key = b"key%d" % numbers[0] if self._random.random() < 0.5 else None
        sent = Sent(self._life(model), numbers, key, samples)
        if key is not None:
            self._keyed.append(sent)
        return model, sent

    def _send(self, requests: list[tuple[Model, Sent]]) -> None:
        group: list[Any] = []
        for model, sent in requests:
            self.promises.not_learned.difference_update(sent.numbers)
            future: Any = Future()
            self._open[future] = partial(self._hear_of, sent)
            head: HeadName = "semiparametric" if model.spec.semiparametric else "asset"
            group.append(LearnRequest(model, head, sent.samples, future, 0.0, sent.key))
            self._note(model.name, sent.numbers, sent.key)
        self.server.writer.begin(group)

    def _hear_of(self, sent: Sent, reply: Any) -> None:
        self._note("->", _short(reply))
        if isinstance(reply, dict):
            told = {name: part for name, part in reply.items() if name != "replayed"}
            if sent.first is None:
                sent.first = told
            elif told != sent.first:
                raise Broken(f"{sent.key!r} was answered {_short(sent.first)}, now {_short(told)}")
            if not reply.get("replayed"):
                self.promises.learned(sent.life, sent.numbers, reply["sequence"])
        elif sent.first is not None and reply.outcome == "not-learned":
            raise Broken(f"{sent.key!r} was learned, and is not learned: {reply.detail}")
        elif reply.outcome == "not-learned":
            there = [one for one in sent.numbers if one in self.promises.places]
            if there:
                raise Broken(f"{there} were not learned, and are there: {reply.detail}")
            self.promises.not_learned.update(sent.numbers)

    def _predict(self, model: Model) -> None:
        self._row += 1
        row_id, published = f"row{self._row}", model.published
        if published.heads["asset"].lacks:
            return
        response = {
            "prediction": published.predict("asset", published.head_rows(_GRID[:1])).prediction,
            "sequence": published.sequence,
            "epoch": published.epoch,
            "head": "asset",
        }
        life = self._life(model)
        future: Any = Future()
        self._open[future] = lambda reply: self._hear_predicted(life, row_id, reply)
        row = _GRID[:1] + self._row
        row[0, 0] = -self._row * UNIT
        self._note(model.name, row_id)
        self._begin(WaitingRowsRequest(model, [row_id], row, response, future, 0.0))

    def _hear_predicted(self, life: Life, row_id: str, reply: Any) -> None:
        self._note("->", _short(reply))
        if isinstance(reply, dict):
            life.waiting = [*life.waiting, row_id][-_MOST_ROWS:]
        elif reply.outcome == "unknown":
            life.waiting.clear()

    def _label(self, model: Model) -> None:
        life = self._life(model)
        row_id = f"row{self._row - self._random.randint(0, 4)}"
        if life.waiting and self._random.random() < 0.7:
            row_id = self._random.choice(life.waiting)
        future: Any = Future()
        self._open[future] = lambda reply: self._hear_labelled(life, row_id, reply)
        self._note(model.name, row_id)
        self._begin(LabelRequest(model, "asset", LateLabels([row_id], ["no"]), future, 0.0))

    def _hear_labelled(self, life: Life, row_id: str, reply: Any) -> None:
        self._note("->", _short(reply))
        if not isinstance(reply, dict):
            if reply.outcome != "not-learned":
                life.waiting.clear()
            return
        (status,) = reply["results"]["status"]
        if row_id in life.waiting:
            life.waiting.remove(row_id)
            if status != "learned":
                raise Broken(f"{row_id} of {life.name} waits, and its label is {status}")

    def _begin(self, request: GroupRequest) -> None:
        self.server.writer.begin([request])

    def _go_on(self) -> None:
        if self.server.writer.busy:
            self.server.writer.go_on()

    # -- orders ----------------------------------------------------------------------------

    def _begin_snapshot(self, model: Model) -> None:
        start = self.server.writer.snapshots.start
        self._order(model, lambda: start(model)[0], lambda _: None)

    def _save(self) -> None:
        try:
            self.server.saver.run_one()
        except Exception as error:
            self._note(repr(error))

    def _finish(self) -> None:
        self.server.writer.snapshots.finish()

    def _roll_back(self, model: Model) -> None:
        life = self._life(model)
        saved = self.server.storage.snapshots.sequences(model.id)
        if saved:
            to, roll_back = self._random.choice(saved), self.server.writer.roll_back
            learned = model.published.sequence
            self._note(to)
            life.waiting.clear()
            self._jobs.pop(model.id, None)

            def hear(_: Any) -> None:
                life.told_epoch = model.published.epoch
                self._jobs[model.id] = {_job(model)}
                self._marked.discard(model.id)
                if self._broken.pop(model.name, None) is not None:
                    self.promises.void(life, learned)

            self._order(model, lambda: roll_back(model, to), hear)

    def _create(self) -> None:
        name, spec = self._random.choice(_NAMES), self._random.choice(self._specs)
        if name not in self._names() and len(self._names()) < self._most_models:
            new_models, papers = self.server.writer.new_models, read_papers_spec(spec)
            self._note(name)
            self._order(None, lambda: new_models.create(name, papers), self._hear_made)

    def _upload(self) -> None:
        name = self._random.choice(_NAMES)
        if name not in self._names() and len(self._names()) < self._most_models:
            content = self._random.choice(self._uploads)
            new_models = self.server.writer.new_models
            self._note(name)
            self._order(
                None,
                lambda: new_models.add(name, load_content(content, "it")),
                self._hear_made,
            )

    def _hear_made(self, made: tuple[Model, bool]) -> None:
        self._life(made[0]).told = True

    def _follow(self, champion: Model) -> None:
        name, spec = self._random.choice(_NAMES), self._random.choice(self._specs)
        if name not in self._names() and len(self._names()) < self._most_models:
            follow = self.server.writer.challengers.make
            starts: list[Start] = ["empty", "samples"]
            papers, start = read_papers_spec(spec), self._random.choice(starts)
            self._note(name, champion.name)
            self._order(champion, lambda: follow(name, champion, papers, start), self._hear_made)

    def _delete(self, model: Model) -> None:
        life, delete = self._life(model), self.server.writer.delete
        life.may_be_gone = True
        self._order(model, lambda: delete(model), lambda _: self._broken.pop(model.name, None))

    def _begin_turn(self, model: Model) -> None:
        challengers = self.server.writer.challengers
        self.server.writer.begin([])
        with challengers.paused([model]):  # as an order to the writer has it
            self._turns.append((model, challengers.next_turn(model)))

    def _end_turn(self) -> None:
        if self._turns:
            model, turn = self._turns.pop(0)
            stop = self._random.random() < 0.2
            self.server.writer.challengers.learn(model, turn, lambda: not stop)

    def _catch_up(self, model: Model) -> None:
        """Where nothing fails, a challenger learns all that its champion has."""
        champion = model.champion
        if self._faulty or champion is None or champion.broken or champion in self._busy():
            return
        self.server.writer.begin([])  # settles doubts, as each order does
        with self.server.writer.challengers.paused([model]):
            self.server.writer.challengers.catch_up(model)
        if model.published.sequence != champion.published.sequence:
            reached, end = model.published.sequence, champion.published.sequence
            raise Broken(f"challenger {model.name} stays at {reached}, {end} are there")

    def _refit(self, model: Model) -> None:
        """Fit a head again to its window, if the model has one that can be."""
        if model.spec.semiparametric is None or model in self._busy():
            return
        job, writer = f"job{self.step}", self.server.writer
        self._note(model.name)

        def fit() -> Any:
            if model.id in self._jobs:
                self._jobs[model.id].add(job)
            window = writer.window(model)
            return writer.serve_fit(model, window, fit_window(window, job, lambda _: None))

        self._order(model, fit, lambda _: None)

    def _promote(self, challenger: Model) -> None:
        champion, promote = challenger.champion, self.server.writer.promotion.promote
        if champion is not None:
            self._note(champion.name, challenger.name)

            def hear(_: Any) -> None:
                for one in (champion, challenger):
                    self._life(one).told_epoch = one.published.epoch

            self._order(champion, lambda: promote(champion, challenger), hear)

    def _order(
        self, model: Model | None, run: Callable[[], Any], hear: Callable[[Any], None]
    ) -> None:
        future: Any = Future()

        def heard(reply: Any) -> None:
            self._note("->", _short(reply))
            if not isinstance(reply, Refusal):
                hear(reply)

        self._open[future] = heard
        if model is not None:
            self._note(model.name)
        self.server.writer.begin([Order(run, future, model)])

    # -- what goes wrong -------------------------------------------------------------------

    def _fail(self) -> None:
        call = self._random.choice(self._failing)
        pattern = self._random.choice(self._files)
        error = self._random.choice((errno.EIO, errno.ENOSPC))
        first, times = self._random.randint(1, 4), self._random.choice((1, 2, 5, 1000))
        after = self._random.random() < 0.3
        if self._lasting:
            first, times = 1, FOREVER
        if not self._faulty:
            self._note(call, pattern, errno.errorcode[error], first, times, after)
            self._calls.fail(call, pattern, error, first, times, after)
            self._faulty = True

    def _heal(self) -> None:
        self._calls.heal()
        self._faulty = False

    def _break_model(self, model: Model) -> None:
        """Have learning fail once, as it does for want of memory."""
        absorb, left = Learner.absorb, [1]

        def fail(learner: Learner, *arguments: Any) -> Any:
            if left and learner.model.champion is None:
                left.pop()
                raise MemoryError
            return absorb(learner, *arguments)

        Learner.absorb = fail  # type: ignore[method-assign, assignment]
        try:
            self._send([self._new_request(model, 1)])
            if model.broken:
                self._broken.setdefault(model.name, model.published)
        finally:
            Learner.absorb = absorb  # type: ignore[method-assign]

    def _restart(self) -> None:
        self._end_well()
        self._start()

    def _restart_unreadable(self) -> None:
        """Restart while some snapshots cannot be read."""
        self._end_well()
        first = self._random.randint(1, 2)
        self._calls.fail("open", "*.snapshot", errno.EIO, first, self._random.choice((1, 1000)))
        self._start(unreadable=True)

    def _restart_marked(self, model: Model) -> None:
        """Restart after processes have ended while they were loading a model."""
        self._note(model.name)
        self._end_well()
        with closing(ReplayMarks(replays_path(self.server.data))) as marks:
            marks.leave_out(model.id, _LOADING, marks.max_crashes)
        self._marked.add(model.id)
        self._start(unreadable=True)

    def _end_well(self) -> None:
        """End once all requests have their replies."""
        self._heal()
        while self.server.writer.busy:
            self.server.writer.go_on()
        self._look()
        self._hear()
        self._open.clear()
        self.server.stop()

    def _end_early(self, records: list[Any]) -> None:
        """End at one of the calls of a step: its replies have not been heard."""
        cut = self._random.randint(0, len(records))
        loss = self._random.choice(("keep", "keep", *LOSSES))
        self._note("ends early at", cut, "of", len(records), loss)
        self.server.follow(records[:cut])
        self._forget_replies()
        self._faulty = False
        self.server.move(loss)
        self._start(lost=True)
        self._look()

    def _start(self, unreadable: bool = False, lost: bool = False) -> None:
        self._turns.clear()
        self._broken.clear()
        try:
            self.server.start()
        except StartupError as error:
            if not unreadable:
                raise Broken(f"the server does not start: {error}") from error
            self._note("does not start:", error)
            self._heal()
            self.server.start()
        self._heal()
        self.server.keep_few_pages()
        rows = self.server.rows()
        if lost:
            self.promises.lose_unacknowledged(rows)
        for model in self.server.writer.models.all():
            if model.broken:
                if not unreadable and model.id not in self._marked:
                    raise Broken(f"model {model.name} is broken: {model.broken}")
                self._broken[model.name] = model.published

    # -- what is heard and seen -----------------------------------------------------------

    def _hear(self) -> None:
        """Take the replies of a step to their clients."""
        for future in [one for one in self._open if one in self.server.replies]:
            self._open.pop(future)(self.server.replies[future])
        self.server.replies.clear()

    def _forget_replies(self) -> None:
        self._open.clear()
        self.server.replies.clear()
        for life in self.promises.lives.values():
            if "label" in self.trace[-1] or "predict" in self.trace[-1]:
                life.waiting.clear()

    def _look(self) -> None:
        """Read the files, and compare the live models with them."""
        with self._calls.paused():
            self.promises.read(self.server.rows(), self.server.snapshots)
        busy = self._busy()
        for model in self.server.writer.models.all():
            if model.broken:
                self._look_at_broken(model)
            elif (job := _job(model)) not in self._jobs.get(model.id, {job}):
                raise Broken(f"model {model.name} serves {job}, from before it was rolled back")
            elif model not in busy:
                self.promises.check_model(
                    model.name,
                    model.published.epoch,
                    model.published.sequence,
                    _said(model),
                    model.broken,
                )
        served = {model.name for model in self.server.writer.models.all()}
        told = {life.name for life in self.promises.lives.values()}
        if served != told:
            raise Broken(f"{served} are served, the log has {told}")

    def _look_at_broken(self, model: Model) -> None:
        before = self._broken.get(model.name)
        if before is None:
            raise Broken(f"model {model.name} broke: {model.broken}")
        if model.published is not before:
            raise Broken(f"model {model.name} is broken, and has learned")

    # -- models ----------------------------------------------------------------------------

    def _names(self) -> list[str]:
        return [model.name for model in self.server.writer.models.all()]

    def _busy(self) -> set[Model]:
        return self.server.writer.busy

    def _free(self) -> list[Model]:
        """The models that take requests now."""
        busy = self._busy()
        there = self.server.writer.models.all()
        return [one for one in there if one not in busy and one.champion is None]

    def _models(self, kind: str) -> list[Model]:
        """Return the models of a kind: those that are free or whole, challengers, or any."""
        if kind == "free":
            return self._free()
        there = self.server.writer.models.all()
        whole = [one for one in there if not one.broken]
        following = [one for one in whole if one.champion is not None]
        return {"any": there, "whole": whole, "challenger": following}[kind]

    def _life(self, model: Model) -> Life:
        life = self.promises.lives.get(model.id)
        if life is None or life.name != model.name:
            raise Broken(f"model {model.name} of number {model.id} is not in the log")
        return life


def _uploaded(spec: dict[str, Any]) -> bytes:
    """The file of a model that has learned elsewhere."""
    learner = Learner(Model(0, "", read_papers_spec(spec)))
    X = np.random.default_rng(spec["seed"]).standard_normal((_UPLOADED, 3))
    learner.absorb("asset", Samples(X, ["no" if k % 2 else "yes" for k in range(_UPLOADED)]))
    return b"".join(encode_state(State(*learner.state())))


def _job(model: Model) -> str | None:
    """The job of the fit that a model serves; None if it has none."""
    fit = model.describe()["heads"].get("semiparametric", {}).get("fit")
    return fit and str(fit["job"])


def _said(model: Model) -> str:
    """What a model says of some rows, with its spec."""
    published = model.published
    spec = json.dumps(model.spec.plain(), sort_keys=True)
    view = published.heads["asset"]
    if view.lacks or published.rows.dimension is None:
        return spec
    said = published.predict("asset", published.head_rows(_GRID))
    return f"{spec} {said.prediction} {said.decision}"


def _short(reply: Any) -> str:
    if isinstance(reply, dict):
        return f"{reply.get('sequence')}{' again' if reply.get('replayed') else ''}"
    return f"{type(reply).__name__} {reply}"[:150]
