"""The names of heads, learning calls and training algorithms.

Plain data without imports, so the command line can offer these choices before it loads anything.
"""

from typing import Literal, NamedTuple, TypeAlias, get_args

HeadName: TypeAlias = Literal[
    "working_set", "asset", "semiparametric", "adaptive", "custom", "novelty"
]
TaskName: TypeAlias = Literal["classification", "regression"]
# The calls that teach samples, by their names under /v1/models/{name}.
LearningCall: TypeAlias = Literal["samples", "asset"]
SetAlgorithm: TypeAlias = Literal["sfw", "msfw"]
AssetAlgorithm: TypeAlias = Literal["asset", "asset*"]

HEADS: tuple[HeadName, ...] = get_args(HeadName)
LEARNING_CALLS: tuple[LearningCall, ...] = get_args(LearningCall)
# The bound on a working set, by default and at most.
DEFAULT_SET, LARGEST_SET = 5000, 500_000
# The heads that the learning calls name, to be compared on one stream.
BOTH: tuple[HeadName, HeadName] = ("working_set", "asset")
# How an algorithm trains. stream: sample by sample, as the server learns. pairs: one batch problem
# for each pair of classes. fit: one problem over all samples, whose rows are arrays.
Way: TypeAlias = Literal["stream", "pairs", "fit"]


class Algorithm(NamedTuple):
    """A choice of `wolfstream train --algorithm`: the head that it trains, how, and for what."""

    head: HeadName
    way: Way
    task: tuple[TaskName, ...]


ALGORITHMS: dict[str, Algorithm] = {
    "msfw": Algorithm("working_set", "stream", ("classification", "regression")),
    "sfw": Algorithm("working_set", "stream", ("classification", "regression")),
    "asset": Algorithm("asset", "stream", ("classification", "regression")),
    "asset*": Algorithm("asset", "stream", ("classification", "regression")),
    "fw": Algorithm("working_set", "pairs", ("classification",)),
    "mfw": Algorithm("working_set", "pairs", ("classification",)),
    "swap": Algorithm("working_set", "pairs", ("classification",)),
    "partan": Algorithm("working_set", "pairs", ("classification",)),
    "smo": Algorithm("working_set", "pairs", ("classification",)),
    "semiparametric": Algorithm("semiparametric", "fit", ("regression",)),
    "adaptive": Algorithm("adaptive", "stream", ("classification", "regression")),
}
# The default of `wolfstream train`, which learns like a server's default model.
DEFAULT_ALGORITHM = "adaptive"
# head -> options of the command line that go into its part of the spec.
HEAD_OPTIONS: dict[HeadName, tuple[str, ...]] = {
    "working_set": ("C", "class_weight", "corrective_steps", "max_size", "epsilon"),
    "asset": ("class_weight", "features", "dimension", "lambda", "epsilon", "horizon"),
    "semiparametric": ("C", "basis", "epsilon", "solver", "window"),
    "adaptive": (),
    "custom": (),
    "novelty": (),
}
# way -> default of --tol: the relative gap of a batch solver, or the KKT violation of a fit.
TOLERANCE: dict[Way, float] = {"pairs": 0.1, "fit": 1e-4}
# way -> options of the command line that only it uses.
WAY_OPTIONS: dict[Way, tuple[str, ...]] = {
    "stream": ("epochs", "shuffle"),
    "pairs": ("tol", "max_iter", "sampling", "cache_mb"),
    "fit": ("tol",),
}


def algorithms_of(way: Way) -> tuple[str, ...]:
    """Return the algorithms that train in a way."""
    return tuple(name for name, algorithm in ALGORITHMS.items() if algorithm.way == way)
