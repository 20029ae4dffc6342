"""What a standby would cost that takes the leader's state now and then, instead of learning itself.

python -m benchmarks.standby_state

For each model: the processor time that a sample takes to learn, the size of the state, and the time
that the leader needs to copy and encode it, and a standby to read it and to be ready to learn. From
these, for a leader that learns all the time: what a standby costs that takes a state every second
and every ten, as a share of a processor, beside one that learns (1.00).
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from benchmarks.machine import machine_line
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.native.compile_cache import use_compile_cache
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.snapshot_format import State, decode_state, encode_state

BLOCK, TIMED_BLOCKS, REPEATS = 64, 50, 5
PAUSES = (1, 10)


class Case(NamedTuple):
    """A model, its stream, and how much of it is learned before anything is timed."""

    name: str
    spec: dict[str, Any]
    columns: int
    classes: int
    samples: int


SET = {"asset": None, "adaptive": None, "prepare": None}
CASES = (
    Case("default, 12 numbers, 2 classes", {}, 12, 2, 3_000),
    Case("default, 12 numbers, 2 classes", {}, 12, 2, 20_000),
    Case("default, 100 numbers, 2 classes", {}, 100, 2, 3_000),
    Case("default, 12 numbers, 20 classes", {}, 12, 20, 3_000),
    Case(
        "set of 500, 12 numbers, 2 classes", {**SET, "working_set": {"max_size": 500}}, 12, 2, 3_000
    ),
    Case(
        "set of 2,000, 100 numbers, 2 classes",
        {**SET, "working_set": {"max_size": 2000}},
        100,
        2,
        10_000,
    ),
)


def main() -> None:
    """Measure and print."""
    use_compile_cache()
    print(machine_line(), "\n")
    pauses = " | ".join(f"a standby, every {pause} s" for pause in PAUSES)
    print(f"| model | samples | learned, us | state, MB | encoded, ms | restored, ms | {pauses} |")
    print(f"|---|{'---:|' * (5 + len(PAUSES))}")
    with threadpoolctl.threadpool_limits(1):
        for case in CASES:
            print(row(case), flush=True)


def row(case: Case) -> str:
    """Return a model's row of the table."""
    learner, blocks = Learner(Model(0, "", read_spec(case.spec))), stream(case)
    head = learner.model.spec.serve
    for _ in range(0, case.samples, BLOCK):
        learner.absorb(head, next(blocks))
    learned = min(
        seconds(lambda: [learner.absorb(head, next(blocks)) for _ in range(TIMED_BLOCKS)])
        for _ in range(REPEATS)
    )
    content = encoded(learner)
    out = min(seconds(lambda: encoded(learner)) for _ in range(REPEATS))
    back = min(seconds(lambda: restored(content, case.spec)) for _ in range(REPEATS))
    shares = " | ".join(f"{(out + back) / pause:.2f}" for pause in PAUSES)
    of_sample = learned / TIMED_BLOCKS / BLOCK * 1e6
    return (
        f"| {case.name} | {case.samples:,} | {of_sample:.0f} | {len(content) / 1e6:.2f} "
        f"| {out * 1e3:.1f} | {back * 1e3:.1f} | {shares} |"
    )


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call, of this thread."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def encoded(learner: Learner) -> bytes:
    """Return the state of a model as a snapshot has it."""
    return b"".join(encode_state(State(*learner.state())))


def restored(content: bytes, spec: dict[str, Any]) -> Learner:
    """Return a model in a state, with views, ready to learn."""
    learner = Learner(Model(0, "", read_spec(spec)))
    state = decode_state(content, "state")
    learner.restore(state.plain, state.arrays)
    learner.publish()
    return learner


def stream(case: Case) -> Iterator[Samples]:
    """Yield blocks whose classes are the quantiles of the square of a sum of two columns."""
    random, names = np.random.default_rng(0), [str(k) for k in range(case.classes)]
    cuts = np.quantile(random.normal(size=10_000) ** 2, np.arange(1, case.classes) / case.classes)
    while True:
        X = random.normal(size=(BLOCK, case.columns))
        codes = np.searchsorted(cuts, (0.7 * X[:, 0] + 0.7 * X[:, 1]) ** 2)
        yield Samples(X, [names[code] for code in codes])


if __name__ == "__main__":
    main()
