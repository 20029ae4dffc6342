"""The boundary to learners of others: whatever they do, the process and other heads go on.

They are given copies, which they may keep and change. What they return is checked and copied. What
they raise, exits included, becomes a `LearnerFailed` with a short text. It bounds neither their
time nor their memory: an operator who permits a learner trusts it with both.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors.visible_text import visible
from wolfstream.service.heads.entry_points import CustomLearner
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.solver.arrays import Float64Array

_LONGEST_TEXT = 500
_LONGEST_NAME = 200


class LearnerFailed(Exception):
    """The code of a learner of others failed; the message names the learner."""


@contextmanager
def code_of_others(learner: str, failed: str = "failed") -> Iterator[None]:
    """Run code of others. Raises LearnerFailed for all that it raises but KeyboardInterrupt.

    failed: what the message says of the learner.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LearnerFailed(f"the learner {learner!r} {failed}: {_text_of(error)}") from error


class GuardedLearner:
    """A learner of others. Each method raises LearnerFailed."""

    def __init__(self, name: str, make: Callable[[], CustomLearner]) -> None:
        self._name = name
        with code_of_others(name, "does not take these options"):
            self._learner = make()

    def learn(self, X: Float64Array, y: NDArray[Any], weight: Float64Array) -> None:
        """See `CustomLearner`."""
        with code_of_others(self._name):
            self._learner.learn(X.copy(), y.copy(), weight.copy())

    def predict(self, X: Float64Array, classes: int) -> Float64Array:
        """Return (n, classes) probabilities, or (n,) numbers if there are no classes.

        What is not finite, or no number that can be a target, is NaN.
        """
        with code_of_others(self._name):
            answer = np.array(self._learner.predict(X.copy()), np.float64)
            wanted = (len(X), classes) if classes else (len(X),)
            if answer.shape != wanted:
                raise ValueError(
                    f"it predicts an array of shape {answer.shape}, where {wanted} is needed"
                )
        return np.where(np.abs(answer) <= LARGEST_TARGET, answer, np.nan)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of its arrays, which a model file can have."""
        with code_of_others(self._name):
            return {_checked_name(name): _numbers(name, a) for name, a in self._items()}

    def _items(self) -> Any:
        state = self._learner.state()
        if not isinstance(state, Mapping):
            raise TypeError(f"its state is no dictionary, but of type {type(state).__name__}")
        return state.items()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `CustomLearner`."""
        with code_of_others(self._name):
            self._learner.restore({name: array.copy() for name, array in arrays.items()})


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"its state has an array named {ascii(name)[:_LONGEST_NAME]}: names are printable "
            f"texts of at most {_LONGEST_NAME} characters"
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
    except Exception:  # its text is code of others, too
        text = ""
    text = visible(text[:_LONGEST_TEXT])[:_LONGEST_TEXT]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
