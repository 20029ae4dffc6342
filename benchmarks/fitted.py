"""What a contender of `make bench-solvers` gets and gives."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Rows
from benchmarks.papers import Parameters

Codes = NDArray[np.int64]


class Clock:
    """Seconds spent inside `running`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens within."""
        start = time.process_time()
        yield
        self.seconds += time.process_time() - start


class Fitted(NamedTuple):
    """A model: class codes of rows, and how many support vectors or features it has.

    support: asked for after the predictions.
    """

    predict: Callable[[Rows, Clock], Codes]
    support: Callable[[], int]


Learning: TypeAlias = Callable[[Rows, Codes, Parameters, Clock], Fitted]
