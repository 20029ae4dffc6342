"""Isolates third-party learners: their failures do not stop the process or other heads.

They get copies, which they may keep and change. What they return is checked and copied. Whatever
they raise, including SystemExit, becomes a `LearnerFailed` with a short text. Neither their time
nor their memory is bounded: an operator who permits a learner trusts it with both.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import visible
from wolfstream.service.heads.entry_points import CustomLearner
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.solver.arrays import Float64Array

_LONGEST_TEXT = 500
_LONGEST_NAME = 200


class LearnerFailed(Exception):
    """The code of a third-party learner failed; the message names the learner."""


@contextmanager
def third_party_code(learner: str, failed: str = "failed") -> Iterator[None]:
    """Turn all exceptions except KeyboardInterrupt into LearnerFailed.

    Args:
        learner: the name of the learner whose code runs.
        failed: what the message says about the learner.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LearnerFailed(f"the learner {learner!r} {failed}: {_text_of(error)}") from error


class GuardedLearner:
    """A third-party learner. Each method raises LearnerFailed."""

    def __init__(self, name: str, make: Callable[[], CustomLearner]) -> None:
        self._name = name
        with third_party_code(name, "does not take these options"):
            self._learner = make()

    def learn(self, X: Float64Array, y: NDArray[Any], weight: Float64Array) -> None:
        """See `CustomLearner`."""
        with third_party_code(self._name):
            self._learner.learn(X.copy(), y.copy(), weight.copy())

    def predict(self, X: Float64Array, classes: int) -> Float64Array:
        """Return (n, classes) probabilities or, if `classes` is 0, (n,) numbers.

        Values that are not finite or exceed the largest target are replaced by NaN.
        """
        with third_party_code(self._name):
            answer = np.array(self._learner.predict(X.copy()), np.float64)
            wanted = (len(X), classes) if classes else (len(X),)
            if answer.shape != wanted:
                raise ValueError(f"its predictions have shape {answer.shape}, expected {wanted}")
        return np.where(np.abs(answer) <= LARGEST_TARGET, answer, np.nan)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of its arrays, checked to be fit for a model file."""
        with third_party_code(self._name):
            return {_checked_name(name): _numbers(name, a) for name, a in self._items()}

    def _items(self) -> Any:
        state = self._learner.state()
        if not isinstance(state, Mapping):
            raise TypeError(f"its state is a {type(state).__name__}, not a dictionary")
        return state.items()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `CustomLearner`."""
        with third_party_code(self._name):
            self._learner.restore({name: array.copy() for name, array in arrays.items()})


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"its state has an array named {ascii(name)[:_LONGEST_NAME]}: names must be printable "
            f"strings of at most {_LONGEST_NAME} characters"
        )
    return name


def _numbers(name: str, array: Any) -> NDArray[Any]:
    numbers = np.array(array)
    numbers = numbers.astype(numbers.dtype.newbyteorder("="))
    if numbers.dtype.kind not in "biuf":  # as in any model file
        raise TypeError(f"its state has an array {name!r} of {numbers.dtype}, not of numbers")
    return numbers


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # __str__ is third-party code, too
        text = ""
    text = visible(text[:_LONGEST_TEXT])[:_LONGEST_TEXT]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
