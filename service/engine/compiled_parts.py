"""The parts in which code is compiled, and which of them a model runs."""

import contextlib
import functools
import gc
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from wolfstream.service.heads.exercise import rows_of_kind, rows_to_learn
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.native.compile_cache import compile_once, is_complete
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.frank_wolfe.methods import METHODS
from wolfstream.solver.frank_wolfe.one_versus_one import solve_pairs
from wolfstream.solver.frank_wolfe.solve_dual import Settings
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import n_rows

# Compiled first, in this order; the other kinds of models follow.
_OFTEN = (
    (ModelSpec(), False),
    (ModelSpec(), True),
    (ModelSpec.model_validate({"task": "regression"}), False),
)
_PREPARATION = "preparation", None
# Of `wolfstream train`, which runs no model's code while it solves.
_BATCH = "batch", None
# Compilation allocates much that lives on, and each full collection visits all of it.
_COLLECT_AFTER = 100_000, 50, 1000
_SECONDS_BETWEEN_LOOKS = 2.0


@dataclass(frozen=True, eq=False)
class Part:
    """What is compiled at a time.

    code: with `sparse`, the kind of rows, it decides which models run this part.
    later: whether nothing waits for it; what needs it before it is there compiles it.
    exercise: learns and predicts a little with a model of the spec, on rows of this kind.
    """

    name: str
    code: tuple[str, Hashable]
    spec: ModelSpec
    sparse: bool
    exercise: Callable[[ModelSpec, bool], None]
    later: bool = False

    def compile(self) -> None:
        """Compile it into this process and the cache, or load it from there."""
        self.exercise(self.spec, self.sparse)

    def compile_once(self, wait: bool) -> bool:
        """Compile it unless another process has; see `native.compile_cache.compile_once`."""
        return compile_once(self.key, self.compile, wait)

    @functools.cached_property
    def key(self) -> str:
        """A text that no other part has; requests look it up while parts are compiled."""
        return f"{self}, {self.spec.model_dump_json()}"

    def __str__(self) -> str:
        rows = "sparse rows" if self.sparse else "dense rows"
        return f"{self.name}, {self.spec.task}, {self.spec.kernel.type}, {rows}"


@functools.cache
def parts() -> tuple[Part, ...]:
    """Everything that a request or a command can reach, in the order in which it is compiled."""
    return tuple(sorted(_parts(), key=_rank))


def parts_of(spec: ModelSpec, sparse: bool) -> list[Part]:
    """Return what a model of this spec runs on dense rows, or on those and on sparse ones.

    What some data reach later is left out.
    """
    codes, awaited = _codes_of(spec), (part for part in parts() if not part.later)
    return [part for part in awaited if part.sparse <= sparse and part.code in codes]


def needed_first() -> list[Part]:
    """Return what the default model runs on dense rows."""
    return parts_of(*_OFTEN[0])


def load_later_parts() -> None:
    """Load what makes the default model faster, once everything is compiled; on its own thread."""
    while not is_complete():
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    codes = _codes_of(ModelSpec())
    for part in parts():
        if part.later and not part.sparse and part.code in codes:
            part.compile()


def compile_all(
    those: Iterable[Part],
    compiled: Callable[[Part], None],
    before_waiting: Callable[[], None] = lambda: None,
) -> None:
    """Compile parts that no other process has compiled; those that one is at come later.

    compiled: called for each part, whichever process compiled it.
    before_waiting: called when nothing is left but what others are at.
    """

    def attempt(part: Part, wait: bool) -> bool:
        if done := part.compile_once(wait):
            compiled(part)
        return done

    busy: list[Part] = []
    for part in those:
        busy = [each for each in [part, *busy] if not attempt(each, wait=False)]
    if busy:
        before_waiting()
    for part in busy:
        attempt(part, wait=True)


def wanted_first(those: Iterable[Part], wanted: Callable[[], list[str]]) -> Iterator[Part]:
    """Parts in their order, but for those whose keys were wanted by the time of the next one."""
    left = {part.key: part for part in those}
    asked: list[str] = []
    while left:
        asked += wanted()
        key = next((key for key in asked if key in left), next(iter(left)))
        yield left.pop(key)


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect garbage so seldom that compilation takes an eighth less time."""
    usual = gc.get_threshold()
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def collect_garbage() -> None:
    """Collect all garbage now; later collections do not visit what is alive.

    Each visit to what compilation leaves takes a fifth of a second.
    """
    gc.collect()
    gc.freeze()


def _parts() -> Iterator[Part]:
    """Yield each kind of head, that with the longest part first, so that it begins first."""
    for head, kind in KINDS.items():
        for spec in kind.specs():
            code = head, kind.code(spec)
            for sparse in (False, True):
                for name, exercise in kind.exercises.items():
                    yield Part(f"{head} ({name})", code, spec, sparse, exercise)
                for name, exercise in kind.later.items():
                    yield Part(f"{head} ({name})", code, spec, sparse, exercise, later=True)
    yield Part("preparation", _PREPARATION, ModelSpec(), False, _prepare)
    for sparse in (False, True):
        yield Part("batch solvers", _BATCH, ModelSpec(), sparse, _solve, later=True)


def _rank(part: Part) -> tuple[int, bool]:
    of_often = (part.sparse == sparse and part.code in _codes_of(spec) for spec, sparse in _OFTEN)
    rank = next((rank for rank, often in enumerate(of_often) if often), len(_OFTEN))
    return rank, part.later


def _codes_of(spec: ModelSpec) -> set[tuple[str, Hashable]]:
    """Return what decides which compiled code a model of this spec runs."""
    codes: set[tuple[str, Hashable]] = {(name, KINDS[name].code(spec)) for name in spec.heads}
    return codes if spec.prepare is None else codes | {_PREPARATION}


def _solve(_: ModelSpec, sparse: bool) -> None:
    """Solve a small problem by each batch method."""
    X = rows_of_kind(sparse)
    codes = np.arange(n_rows(X)) % 2
    ridge = np.full(len(codes), 0.5)
    for method in METHODS:
        settings = Settings(method, start_size=8)  # type: ignore[arg-type]
        list(solve_pairs(Kernel("rbf"), X, codes, ridge, settings, np.random.default_rng(0)))


def _prepare(spec: ModelSpec, _: bool) -> None:
    learner, X = Learner(Model(0, "exercise", spec)), rows_to_learn()
    learner.rows.form = learner.rows.form.after(X)
    learner.rows.prepared(X)
    learner.publish()
    learner.model.published.rows.prepared(X)
