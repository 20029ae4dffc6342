"""The problems of `make bench-solvers`: sets, splits and parameters from the papers.

P1 Table 2 gives sigma, gamma = 1/(2 sigma^2), and two numbers C: of the squared hinge, which
is this package's, and of the hinge, which is LIBSVM's and the other peers'. P2 takes gamma
from the mean squared distance of the training rows.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.datasets import Dataset, Rows, load
from wolfstream.solver.kernels.bandwidth import gamma_from_rows

SEED = 0
COVTYPE_TEST, COVTYPE_PEERS = 100_000, 60_000
# Rows of covtype that `benchmarks.growing` learns, and those on which it tests what was learned.
GROWING, GROWING_TEST = (5_000, 10_000, 20_000, 40_000, 80_000, 160_000), 20_000


class Parameters(NamedTuple):
    """The kernel's gamma, and C of the squared hinge and of the hinge."""

    gamma: float
    C: float
    C_hinge: float


class Problem(NamedTuple):
    """A set as it is learned.

    gamma: None for P2's rule.
    about: what a reader must know of the split, in a few words.
    split: makes of the source what is learned and tested.
    sparse: whether contenders that take CSR get it. At a9a's one value in nine LIBSVM learns
        faster from dense rows, at w3a's one in 25 from CSR.
    peers: whether the peers learn it, too.
    """

    file: str
    gamma: float | None
    C: float
    C_hinge: float
    about: str = ""
    split: Callable[[Dataset], Dataset] = lambda data: data
    sparse: bool = False
    peers: bool = True


def gamma_of(sigma: float) -> float:
    """P1's width."""
    return 1.0 / (2.0 * sigma**2)


def covtype(rows: int | None, tested: int = COVTYPE_TEST) -> Callable[[Dataset], Dataset]:
    """Class 2 against the rest: shuffled, the first `rows` to learn, `tested` of the last to test.

    Whatever is learned, the last 100,000 are not.
    """

    def split(data: Dataset) -> Dataset:
        order = np.random.default_rng(SEED).permutation(len(data.y))
        train, test = order[:-COVTYPE_TEST][:rows], order[-COVTYPE_TEST:][:tested]
        y = (data.y == 2).astype(np.int64)
        return Dataset(data.X[train], y[train], data.X[test], y[test])

    return split


def first_rows(train: int) -> Callable[[Dataset], Dataset]:
    """Return the first rows to learn; the others to test where the source has no test part."""

    def split(data: Dataset) -> Dataset:
        if len(data.y_test):
            return data._replace(X=data.X[:train], y=data.y[:train])
        return Dataset(data.X[:train], data.y[:train], data.X[train:], data.y[train:])

    return split


def shuffled(data: Dataset) -> Dataset:
    """Training rows in another order: a file sorted by class is no stream (P1 alternated)."""
    order = np.random.default_rng(SEED).permutation(len(data.y))
    return data._replace(X=data.X[order], y=data.y[order])


def mnist(data: Dataset) -> Dataset:
    """0-4 against 5-9, values in [0, 1]."""
    halves = [(y >= 5).astype(np.int64) for y in (data.y, data.y_test)]
    return Dataset(data.X / 255.0, halves[0], data.X_test / 255.0, halves[1])


PROBLEMS = {
    "svmguide1": Problem("svmguide1", gamma_of(20.0), 0.4, 1.0, "shuffled", shuffled),
    "w3a": Problem("w3a", gamma_of(4.0), 5.0, 18.0, "shuffled", shuffled, sparse=True),
    "a9a": Problem("a9a", gamma_of(10.0), 0.5, 1.5),
    "ijcnn1": Problem(
        "ijcnn1", gamma_of(0.61), 5.0, 7.0, "the first 35,000 rows", first_rows(35_000)
    ),
    "covtype-60k": Problem(
        "covtype", gamma_of(100.0), 1000.0, 10_000.0,
        "class 2 against the rest, shuffled; 60,000 rows, 100,000 others to test",
        covtype(COVTYPE_PEERS),
    ),
    "covtype": Problem(
        "covtype", gamma_of(100.0), 1000.0, 10_000.0,
        "the same, all rows but the 100,000 to test; too long for the peers",
        covtype(None), peers=False,
    ),
    "usps": Problem("usps", None, 1.0, 1.0, "10 classes"),
    "pendigits": Problem("pendigits", None, 1.0, 1.0, "10 classes"),
    # P5's lambda is 1/(C n); it gives no C for the squared hinge, so both are the same.
    "mnist": Problem(
        "mnist", 0.01, 1.0 / (1.72e-7 * 60_000), 1.0 / (1.72e-7 * 60_000),
        "0-4 against 5-9, values / 255", mnist,
    ),
    "spam_corpora": Problem(
        "spam_corpora", None, 1.0, 1.0,
        "the first 7,000 rows, the others to test", first_rows(7000), sparse=True,
    ),
}  # fmt: skip
# All of covtype takes longer than a bound that suits the others; mnist is for other tables.
DEFAULT = tuple(name for name in PROBLEMS if name not in ("covtype", "mnist"))
# For `benchmarks.growing`, by their sizes.
PROBLEMS |= {
    f"covtype-{rows}": PROBLEMS["covtype"]._replace(split=covtype(rows, GROWING_TEST))
    for rows in GROWING
}


def load_problem(folder: Path, name: str, sparse: bool) -> tuple[Dataset, Parameters]:
    """Return the split set with class codes for labels, and the parameters. Raises MissingSet.

    Codes follow the order in which the classes come. sparse: the contender takes CSR.
    """
    problem = PROBLEMS[name]
    data = problem.split(load(folder, problem.file, sparse and problem.sparse))
    classes, first = np.unique(data.y, return_index=True)
    code_of = np.empty(len(classes), np.int64)
    code_of[np.argsort(first)] = np.arange(len(classes))
    y, y_test = (code_of[np.searchsorted(classes, labels)] for labels in (data.y, data.y_test))
    gamma = mean_distance_gamma(data.X) if problem.gamma is None else problem.gamma
    parameters = Parameters(gamma, problem.C, problem.C_hinge)
    return Dataset(data.X, y, data.X_test, y_test), parameters


def mean_distance_gamma(X: Rows) -> float:
    """P2's rule, `kernels.bandwidth.gamma_from_rows`, for CSR without making it dense."""
    if not isinstance(X, csr_array):
        return gamma_from_rows(X)
    n = X.shape[0]
    mean: NDArray[np.float64] = np.asarray(X.mean(axis=0))
    square = float((X.data**2).sum()) - n * float(mean @ mean)
    return float((n - 1) / (2.0 * square))
