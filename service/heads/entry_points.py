"""The base class of learners from other Python distributions, and how they are loaded.

A distribution registers its learners as entry points:

    [project.entry-points."wolfstream.heads"]
    nearest_mean = "my_package:NearestMean"

The spec `{"custom": {"learner": "nearest_mean"}}` creates a model with it, on a server whose
operator permits it: WOLFSTREAM_HEADS=nearest_mean.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from importlib.metadata import entry_points
from typing import Any, ClassVar, NoReturn

from numpy.typing import NDArray

from wolfstream.service.errors import Invalid
from wolfstream.solver.arrays import Float64Array

GROUP = "wolfstream.heads"


class CustomLearner(ABC):
    """A learner of classes or of numbers, which a server runs as a head.

    Classes are numbered from 0, in the order in which labels come. A learner must be deterministic:
    the same samples in the same order must lead to the same arrays, because a server that restarts
    learns its log again. Only one thread uses an object at a time.

    A subclass defines `learn`, `predict`, `state` and `restore`. For example, the running mean as a
    learner of numbers:

        class RunningMean(CustomLearner):
            def __init__(self, options, *, regression, seed):
                super().__init__(options, regression=regression, seed=seed)
                self.sums = np.zeros(2)

            def learn(self, X, y, weight):
                self.sums += [weight @ y, weight.sum()]

            def predict(self, X):
                return np.full(len(X), self.sums[0] / self.sums[1])

            def state(self):
                return {"sums": self.sums}

            def restore(self, arrays):
                self.sums = np.array(arrays["sums"], np.float64).reshape(2)
    """

    # Whether `state` contains pickles. If so, whoever uploads a state can run code, so an operator
    # has to permit it with WOLFSTREAM_PICKLE_HEADS.
    pickles: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any], *, regression: bool, seed: int) -> None:
        """Create a learner that has learned nothing.

        Args:
            options: the options of the spec.
            regression: whether it learns numbers instead of classes.
            seed: the seed of the spec, for all randomness.

        Raises ValueError for invalid options.
        """
        self.options, self.regression, self.seed = options, regression, seed

    @abstractmethod
    def learn(self, X: Float64Array, y: NDArray[Any], weight: Float64Array) -> None:
        """Learn samples.

        Args:
            X: prepared rows, (n, d), without NaN. d may grow as new columns come.
            y: class numbers, (n,) int64, or targets, (n,) float64.
            weight: the weights of the samples, (n,).
        """

    @abstractmethod
    def predict(self, X: Float64Array) -> Float64Array:
        """Return probabilities of the classes learned so far, (n, K), or numbers, (n,).

        Called only after a sample was learned. It must not change the learner.
        """

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """Return arrays of numbers from which `restore` continues bit for bit."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the learner's state.

        Args:
            arrays: what `state` returned, or a forgery.

        Raises ValueError, KeyError or TypeError for invalid arrays.
        """


class _Permitted:
    """The entry points that this process may load, and which of them may pickle."""

    names: frozenset[str] = frozenset()
    pickling: frozenset[str] = frozenset()


def permit(names: Collection[str], pickling: Collection[str]) -> None:
    """Set the learners that models of this process may use.

    Args:
        names: names of entry points.
        pickling: names of entry points that may also save and load pickles.
    """
    _Permitted.names, _Permitted.pickling = frozenset(names) | set(pickling), frozenset(pickling)


def learner_class(name: str) -> type[CustomLearner]:
    """Return the class that an entry point names. Raises Invalid, with the remedy."""
    if name not in _Permitted.names:
        permitted = ", ".join(sorted(_Permitted.names)) or "none"
        _refuse(
            f"the learner {name!r} is not among those that the server's operator permits "
            f"({permitted}): the operator can add it to WOLFSTREAM_HEADS"
        )
    points = list(entry_points(group=GROUP, name=name))
    if len(points) != 1:
        installed = ", ".join(sorted({point.name for point in entry_points(group=GROUP)}))
        _refuse(
            f"{'several distributions have' if points else 'no installed distribution has'} a "
            f"learner {name!r} (entry points {GROUP}: {installed or 'none'})"
        )
    try:
        loaded = points[0].load()
    except (Exception, SystemExit) as error:  # third-party code
        _refuse(f"the learner {name!r} cannot be loaded: {type(error).__name__}: {error}")
    if not isinstance(loaded, type) or not issubclass(loaded, CustomLearner):
        _refuse(f"the learner {name!r} is no subclass of wolfstream.CustomLearner")
    if loaded.pickles and name not in _Permitted.pickling:
        _refuse(
            f"the learner {name!r} saves pickles, so whoever may upload a model could run code: "
            "if that is acceptable, the operator can add it to WOLFSTREAM_PICKLE_HEADS"
        )
    return loaded


def _refuse(detail: str) -> NoReturn:
    raise Invalid(detail, [{"pointer": "/custom/learner", "detail": detail}])
