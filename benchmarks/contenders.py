"""The contenders of `make bench-solvers`, each in a process of its own, on one thread.

    python -m benchmarks.contenders SET NAME --data FOLDER

Prints what it measured as a line of JSON after learning and again after predicting, so that
the first is there where the second takes too long. What comes before is not measured:
loading, and a first run on 200 rows, which compiles and imports. Input that a contender wants
in a form of its own is made with the clock stopped, and its seconds are reported apart.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks import baselines, memory
from benchmarks.datasets import Dataset
from benchmarks.fitted import Clock, Codes, Learning
from benchmarks.own_contenders import LARGE_CACHE, batch, online
from benchmarks.papers import Parameters, load_problem
from benchmarks.peer_contenders import libsvm, nystroem, plain, vowpal_wabbit

WARM_ROWS = 200
# The service's default, and what suits sets with more support vectors than that.
MAX_SIZE, LARGER_MAX_SIZE = 5_000, 10_000
# Of all of covtype: 3.6 GB of kernel values.
LARGEST_MAX_SIZE = 30_000
# So many test rows at a time, so that their features hardly count as memory.
PREDICTED_ROWS = 10_000


class Outcome(NamedTuple):
    """What was measured. None: not yet, or not at all.

    input_seconds: making the contender's own form of the training rows, not in fit_seconds.
    support: support vectors, or features.
    peak_bytes: above what was resident when learning began.
    """

    fit_seconds: float
    input_seconds: float
    peak_bytes: int
    predict_seconds: float | None = None
    accuracy: float | None = None
    support: int | None = None


class Contender(NamedTuple):
    """Its title, its function, and what it can take."""

    title: str
    fit: Learning
    many_classes: bool
    sparse: bool


LIBSVM = "libsvm"
CONTENDERS = {
    "online": Contender("wolfstream, online", online(MAX_SIZE), True, True),
    "larger": Contender(
        f"wolfstream, online, max_size {LARGER_MAX_SIZE:,}", online(LARGER_MAX_SIZE), True, True
    ),
    "largest": Contender(
        f"wolfstream, online, max_size {LARGEST_MAX_SIZE:,}", online(LARGEST_MAX_SIZE), True, True
    ),
    "swap": Contender("wolfstream, SWAP", batch("swap"), True, True),
    "plain": Contender("plain Algorithm 1", plain, False, False),
    LIBSVM: Contender("LIBSVM", libsvm(200 << 20), True, True),
    "vowpal_wabbit": Contender("Vowpal Wabbit --ksvm", vowpal_wabbit, False, True),
    "nystroem": Contender("Nystroem + SGD", nystroem, True, True),
    "squared": Contender(
        "LIBSVM, squared hinge, precomputed", baselines.squared_hinge_smo, False, False
    ),
    "kernel_sgd": Contender("kernel SGD (Pegasos)", baselines.kernel_sgd, False, False),
    "linear_sgd": Contender("linear SGD", baselines.linear_sgd, True, True),
    "pegasos": Contender("Pegasos, linear, 5 passes", baselines.pegasos, True, True),
}
# Those of `benchmarks.batch_solvers`, beside LIBSVM.
BATCH = {
    "fw": Contender("wolfstream, FW", batch("fw"), True, True),
    "mfw": Contender("wolfstream, MFW", batch("mfw"), True, True),
    "swap": CONTENDERS["swap"],
    "partan": Contender("wolfstream, PARTAN", batch("partan"), True, True),
    "smo": Contender("wolfstream, SMO", batch("smo"), True, True),
}
# Those of `benchmarks.growing`.
GROWING = {
    "unbounded": Contender("one pass, no bound on the set", online(None), True, True),
    "libsvm_cached": Contender("LIBSVM, a cache of 4 GB", libsvm(LARGE_CACHE), True, True),
}
ENTERED = CONTENDERS | BATCH | GROWING
# What learns a set that is too large for the others.
LARGEST = "largest"


def warm_rows(y: Codes) -> NDArray[np.int64]:
    """Return some 200 rows, of every class alike and the first of each, in their order."""
    n_classes = int(y.max()) + 1
    chosen = [np.flatnonzero(y == code)[: WARM_ROWS // n_classes] for code in range(n_classes)]
    return np.sort(np.concatenate(chosen))


def measure(contender: Contender, data: Dataset, parameters: Parameters) -> Iterator[Outcome]:
    """Yield what is known after learning, then after predicting."""
    few = warm_rows(data.y)
    warm = contender.fit(data.X[few], data.y[few], parameters, Clock())
    warm.predict(data.X_test[:WARM_ROWS], Clock())
    warm.support()
    del warm
    resident = memory.begin()
    learning, predicting = Clock(), Clock()
    start = time.process_time()
    fitted = contender.fit(data.X, data.y, parameters, learning)
    rest = time.process_time() - start - learning.seconds
    outcome = Outcome(learning.seconds, rest, memory.peak() - resident)
    yield outcome
    parts = range(0, len(data.y_test), PREDICTED_ROWS)
    predicted = np.concatenate(
        [fitted.predict(data.X_test[i : i + PREDICTED_ROWS], predicting) for i in parts]
    )
    yield outcome._replace(
        peak_bytes=memory.peak() - resident,
        predict_seconds=predicting.seconds,
        accuracy=float((predicted == data.y_test).mean()),
        support=fitted.support(),
    )


def main() -> None:
    """Measure one contender on one set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set")
    parser.add_argument("name", choices=ENTERED)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    contender = ENTERED[arguments.name]
    data, parameters = load_problem(arguments.data, arguments.set, contender.sparse)
    with threadpoolctl.threadpool_limits(1):
        for outcome in measure(contender, data, parameters):
            print(json.dumps(outcome._asdict()), flush=True)


if __name__ == "__main__":
    main()
