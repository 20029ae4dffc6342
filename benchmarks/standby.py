"""What a standby that takes states instead of learning would cost.

    python -m benchmarks.standby

For each stream a model of the default spec learns 5,000 rows, then some blocks more. After each
block its whole state is copied and packed as a snapshot is, and compared with that before, as views
are for those that follow them: the bytes of the ranges that differ. A copy of the model unpacks and
restores each state. Times are of the processor, in medians of the blocks, with one thread.
"""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.cluster.tree import apply_difference, difference
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import from_record, to_record
from wolfstream.service.samples.validation import read_samples
from wolfstream.service.spec.heads import TaskName
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.snapshot_format import State, decode_state, encode_state
from wolfstream.solver.compile_cache import use_compile_cache

T = TypeVar("T")
Arrays: TypeAlias = dict[str, NDArray[np.uint8]]

FIRST_ROWS = 5_000
BLOCKS = (1, 32, 256)  # rows
_ROUNDS = 15


class Stream(NamedTuple):
    """A stream: its name, the task of its model, and a function that draws its rows."""

    name: str
    task: TaskName
    draw: Callable[[np.random.Generator, int], tuple[list[Any], list[Any]]]


def _numbers(random: np.random.Generator, n: int) -> tuple[list[Any], list[Any]]:
    X = random.normal(size=(n, 8))
    return X.tolist(), ["a" if row[0] * row[1] + 0.3 * row[2] > 0 else "b" for row in X]


def _targets(random: np.random.Generator, n: int) -> tuple[list[Any], list[Any]]:
    X = random.normal(size=(n, 8))
    return X.tolist(), (3.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + X[:, 2]).tolist()


def _mixed(random: np.random.Generator, n: int) -> tuple[list[Any], list[Any]]:
    X = random.normal(size=(n, 8)).round(3)
    words = random.integers(0, (5, 12, 30), size=(n, 3))
    rows = [
        {f"n{j}": float(value) for j, value in enumerate(row)}
        | {f"w{j}": f"word{value}" for j, value in enumerate(chosen)}
        | {"text": f"the {chosen[0]} fox and {chosen[2]} dogs"}
        for row, chosen in zip(X, words, strict=True)
    ]
    return rows, [
        "a" if row[0] + (chosen[0] % 2) - 0.5 > 0 else "b"
        for row, chosen in zip(X, words, strict=True)
    ]


STREAMS = (
    Stream("8 numbers, two classes", "classification", _numbers),
    Stream("8 numbers, a target", "regression", _targets),
    Stream("12 mixed columns, two classes", "classification", _mixed),
)


class Cost(NamedTuple):
    """What one block costs a standby, in seconds of the processor and in bytes."""

    learn: float  # at the standby: from the log's record to the published view
    give: float  # a copy of the state, packed
    compare: float  # the difference from the last state
    take: float  # a state unpacked, restored and published
    whole: int  # bytes of the state
    changed: int  # bytes of the difference


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _new_learner(spec: ModelSpec) -> Learner:
    return Learner(Model(1, "m", spec), "epoch")


def _learn(leader: Learner, record: bytes) -> None:
    leader.absorb("adaptive", from_record(record))
    leader.publish()


def _give(leader: Learner) -> tuple[State, bytes]:
    state = State(*leader.state())
    head, body = encode_state(state)
    return state, head + bytes(body)


def _compare(before: Arrays, now: Arrays) -> dict[str, Any]:
    return {name: difference(before.get(name), array) for name, array in now.items()}


def _take(standby: Learner, before: Arrays, steps: dict[str, Any], content: bytes) -> None:
    for name, step in steps.items():
        if step is not None:
            apply_difference(before.get(name), step)
    state = decode_state(content, "state")
    standby.restore(state.plain, state.arrays)
    standby.publish()


def _costs(stream: Stream, block: int) -> Iterator[Cost]:
    """Yield what each block costs. The first of them are not to be counted."""
    random = np.random.default_rng(7)
    spec = ModelSpec.model_validate({"task": stream.task})
    leader, standby = _new_learner(spec), _new_learner(spec)

    def record_of(n: int) -> bytes:
        rows, y = stream.draw(random, n)
        return to_record(read_samples({"x": rows, "y": y}, stream.task, prepared=True))

    for _ in range(FIRST_ROWS // 250):
        _learn(leader, record_of(250))
    before: Arrays = {}
    for _ in range(_ROUNDS):
        learning, _ = _timed(partial(_learn, leader, record_of(block)))
        giving, (state, content) = _timed(partial(_give, leader))
        now = {name: _bytes(array) for name, array in state.arrays.items()}
        comparing, steps = _timed(partial(_compare, before, now))
        taking, _ = _timed(partial(_take, standby, before, steps, content))
        changed = sum(len(step[-1]) for step in steps.values() if step is not None)
        changed += len(json.dumps(state.plain))
        before = now
        yield Cost(learning, giving, comparing, taking, len(content), changed)


def main() -> None:
    """Print a line for each stream and size of blocks."""
    use_compile_cache()
    print(
        "| stream | rows | learn, us a row | give, ms | compare, ms | take, ms | state, kB "
        "| changed, kB | kB a row | rows a state |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for stream in STREAMS:
        for block in BLOCKS:
            costs = np.median(np.array(list(_costs(stream, block))[3:]), axis=0)
            cost = Cost(*costs.tolist())
            a_row = cost.learn / block
            rows = (cost.give + cost.compare + cost.take) / a_row
            print(
                f"| {stream.name} | {block} | {a_row * 1e6:.0f} | {cost.give * 1e3:.1f} "
                f"| {cost.compare * 1e3:.1f} | {cost.take * 1e3:.1f} | {cost.whole / 1e3:.0f} "
                f"| {cost.changed / 1e3:.0f} | {cost.changed / 1e3 / block:.1f} | {rows:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
