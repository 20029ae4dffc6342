"""The parts in which code is compiled, and which of them a model runs."""

import contextlib
import functools
import gc
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from wolfstream.service.heads.batch_exercise import exercise_batch
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.model.exercises import exercise_preparation, exercise_tables
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.compile_cache import compile_once, is_complete

# The models whose code is compiled first, in this order: specs, and whether rows are sparse.
_COMPILED_FIRST = (
    (ModelSpec(), False),
    (ModelSpec(), True),
    (ModelSpec.model_validate({"task": "regression"}), False),
)
_PREPARATION = "preparation", None
# The code of `wolfstream train`, for which no model waits.
_BATCH = "batch", None
# Compilation makes many objects that live on, and each full collection visits all of them.
_COLLECT_AFTER = 100_000, 50, 1000
_SECONDS_BETWEEN_LOOKS = 2.0


@dataclass(frozen=True, eq=False)
class CompiledPart:
    """What is compiled at a time.

    Attributes:
        name: for people.
        code: with `sparse`, decides which models run this part.
        spec: of a model that runs it.
        sparse: whether it is run on sparse rows.
        exercise: learns and predicts a little with a model of the spec, on such rows.
        later: whether nothing waits for it; code that runs before it is compiled compiles it.
    """

    name: str
    code: tuple[str, Hashable]
    spec: ModelSpec
    sparse: bool
    exercise: Callable[[ModelSpec, bool], None]
    later: bool = False

    def compile(self) -> None:
        """Compile the part into this process and the cache, or load it from there."""
        self.exercise(self.spec, self.sparse)

    def compile_once(self, wait: bool) -> bool:
        """Compile the part unless another process has; see `compile_cache`."""
        return compile_once(self.key, self.compile, wait)

    @functools.cached_property
    def key(self) -> str:
        """A text that no other part has. Requests look it up while parts are compiled."""
        return f"{self}, {self.spec.model_dump_json()}"

    def __str__(self) -> str:
        rows = "sparse rows" if self.sparse else "dense rows"
        return f"{self.name}, {self.spec.task}, {self.spec.kernel.type}, {rows}"


@functools.cache
def parts() -> tuple[CompiledPart, ...]:
    """Return everything that a request or command can reach, in the order of compilation."""
    return tuple(sorted(_parts(), key=_rank))


def parts_for(spec: ModelSpec, sparse: bool) -> list[CompiledPart]:
    """Return what a model of this spec runs, except what only some data reach.

    sparse: whether on sparse rows as well as on dense ones.
    """
    codes = _codes_of(spec)
    return [
        part for part in parts() if not part.later and part.sparse <= sparse and part.code in codes
    ]


def needed_first() -> list[CompiledPart]:
    """Return what the default model runs on dense rows."""
    return parts_for(*_COMPILED_FIRST[0])


def load_later_parts() -> None:
    """Load what makes the default model faster, once everything is compiled; on a thread."""
    while not is_complete():
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    codes = _codes_of(ModelSpec())
    for part in parts():
        if part.later and not part.sparse and part.code in codes:
            part.compile()


def compile_all(
    wanted: Iterable[CompiledPart],
    compiled: Callable[[CompiledPart], None],
    before_waiting: Callable[[], None] = lambda: None,
) -> None:
    """Compile the parts that no other process has compiled; parts that others are at come last.

    Args:
        wanted: the parts.
        compiled: called with each part, whichever process has compiled it.
        before_waiting: called when only parts are left that others are at.
    """

    def attempt(part: CompiledPart, wait: bool) -> bool:
        if done := part.compile_once(wait):
            compiled(part)
        return done

    busy: list[CompiledPart] = []
    for part in wanted:
        busy = [each for each in [part, *busy] if not attempt(each, wait=False)]
    if busy:
        before_waiting()
    for part in busy:
        attempt(part, wait=True)


def wanted_first(
    candidates: Iterable[CompiledPart], wanted: Callable[[], list[str]]
) -> Iterator[CompiledPart]:
    """Yield parts in order, except that wanted ones come next.

    wanted: returns the keys that were wanted since its last call.
    """
    left = {part.key: part for part in candidates}
    keys: list[str] = []
    while left:
        keys += wanted()
        key = next((key for key in keys if key in left), next(iter(left)))
        yield left.pop(key)


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect garbage rarely within the block: compilation takes an eighth less time."""
    usual = gc.get_threshold()
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def collect_garbage() -> None:
    """Collect garbage now, and let later collections skip what is alive.

    Each visit to all that compilation has made takes a fifth of a second.
    """
    gc.collect()
    gc.freeze()


def _parts() -> Iterator[CompiledPart]:
    """Yield the parts of all heads; of each head the one first that takes longest."""
    for head, kind in KINDS.items():
        for spec in kind.specs():
            code = head, kind.code(spec)
            for sparse in (False, True):
                for name, exercise in kind.exercises.items():
                    yield CompiledPart(f"{head} ({name})", code, spec, sparse, exercise)
                for name, exercise in kind.later.items():
                    yield CompiledPart(f"{head} ({name})", code, spec, sparse, exercise, later=True)
    yield CompiledPart("preparation", _PREPARATION, ModelSpec(), False, exercise_preparation)
    yield CompiledPart(
        "preparation of tables", _PREPARATION, ModelSpec(), False, exercise_tables, later=True
    )
    for sparse in (False, True):
        yield CompiledPart("batch solvers", _BATCH, ModelSpec(), sparse, exercise_batch, later=True)


def _rank(part: CompiledPart) -> tuple[int, bool]:
    """Return what parts are sorted by: the first of `_COMPILED_FIRST` that runs a part."""
    runs = (
        part.sparse == sparse and part.code in _codes_of(spec) for spec, sparse in _COMPILED_FIRST
    )
    rank = next((rank for rank, run in enumerate(runs) if run), len(_COMPILED_FIRST))
    return rank, part.later


def _codes_of(spec: ModelSpec) -> set[tuple[str, Hashable]]:
    """Return what decides which compiled code a model of this spec runs."""
    codes: set[tuple[str, Hashable]] = {(name, KINDS[name].code(spec)) for name in spec.heads}
    return codes if spec.prepare is None else codes | {_PREPARATION}
