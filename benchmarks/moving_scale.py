"""The working set where the scale of its rows moves: stored as once scaled, or scaled anew.

    python -m benchmarks.moving_scale

Three ways to prepare rows for a set of 1,000 samples, prequential accuracy in %, three seeds:

    once      each row by the moments at its time, and stored so: what the service does
    frozen    all rows by the moments of the first 128
    anew      all rows by the same moments; where those have moved by half a deviation, or the
              deviation by a half, the last 1,000 rows are scaled and learned again
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.solver.prepare.scale import COMPRESSED, TAIL, Moments, no_moments, standardise

SAMPLES, COLUMNS, BLOCK, KEPT, LOOK = 8000, 4, 64, 1000, 1024
Rows = NDArray[np.float64]
Stream = tuple[str, Rows, list[bool]]


def streams(seed: int) -> Iterator[Stream]:
    """Yield rows in units that differ by up to six orders, and what changes in them."""
    random = np.random.default_rng(seed)
    units = 10.0 ** random.uniform(-3, 3, COLUMNS)
    Z = random.normal(size=(SAMPLES, COLUMNS))
    time = np.linspace(0.0, 1.0, SAMPLES)
    late = time >= 0.5
    y = list(Z[:, 0] * Z[:, 1] + Z[:, 2] > 0)
    yield "nothing moves", Z * units, y
    yield "all units x 1000 halfway", Z * units * np.where(late, 1000.0, 1.0)[:, None], y
    one = np.ones((SAMPLES, COLUMNS))
    one[late, 0] = 1e-3
    yield "one unit / 1000 halfway", Z * units * one, y
    drift = Z + 5.0 * time[:, None]
    y = list(np.sin(2.0 * drift[:, 0]) + drift[:, 1] > 5.0 * time)
    yield "rows drift by 5 deviations", drift * units, y
    spread = Z * (1.0 + 4.0 * time[:, None])
    y = list(spread[:, 0] + np.sin(2.0 * spread[:, 1]) > 0)
    yield "the spread grows fivefold", spread * units, y


def learner(prepare: dict[str, Any] | None) -> Learner:
    """Return a model with a working set alone."""
    spec = {"adaptive": None, "asset": None, "prepare": prepare, "working_set": {"max_size": KEPT}}
    return Learner(Model(1, "set", read_spec(spec)))


def learn(model: Learner, X: Rows, y: list[bool]) -> list[Any]:
    """Return what was predicted of each row before it was learned."""
    predicted: list[Any] = []
    for start in range(0, len(y), BLOCK):
        part = slice(start, start + BLOCK)
        block = Samples(np.ascontiguousarray(X[part]), [bool(label) for label in y[part]])
        predicted += model.absorb("working_set", block).prediction
    return predicted


def fixed(moments: Moments, X: Rows) -> Rows:
    """Return rows by moments that they do not change."""
    deviation = np.sqrt(moments.square)
    scaled = (X - moments.mean) / np.where(deviation > 0.0, deviation, np.inf)
    size = np.abs(scaled)
    beyond = TAIL + np.log(np.maximum(size, TAIL) / TAIL)
    return np.where(size > TAIL, np.sign(scaled) * np.minimum(beyond, COMPRESSED.furthest), scaled)


def frozen(X: Rows, y: list[bool]) -> list[Any]:
    """Return all rows by the moments of the first ones."""
    moments = no_moments(COLUMNS)
    standardise(moments, X[:128], COMPRESSED)
    return learn(learner(None), fixed(moments, X), y)


def anew(X: Rows, y: list[bool]) -> list[Any]:
    """Return the last rows scaled and learned again where the moments have moved."""
    moments, basis = no_moments(COLUMNS), no_moments(COLUMNS)
    model, predicted = learner(None), list[Any]()
    for start in range(0, len(y), BLOCK):
        part = slice(start, start + BLOCK)
        standardise(moments, X[part], COMPRESSED)
        if start <= 2 * BLOCK or (start % LOOK == 0 and _moved(basis, moments)):
            basis = Moments._make(field.copy() for field in moments)
            model, before = learner(None), slice(max(0, start - KEPT), start)
            learn(model, fixed(basis, X[before]), y[before])
        predicted += learn(model, fixed(basis, X[part]), y[part])
    return predicted


def _moved(before: Moments, now: Moments) -> bool:
    deviation = np.sqrt(before.square)
    far = np.abs(now.mean - before.mean) > 0.5 * deviation
    ratio = np.sqrt(now.square) / np.where(deviation > 0.0, deviation, 1.0)
    return bool((far | (ratio > 1.5) | (ratio < 1 / 1.5)).any())


WAYS = {"once": lambda X, y: learn(learner({}), X, y), "frozen": frozen, "anew": anew}


def main() -> None:
    """Print the table."""
    print(f"{'stream':30s}" + "".join(f"{name:>8s}" for name in WAYS))
    for of_seeds in zip(*map(streams, range(3)), strict=True):
        accuracy = [
            np.mean(
                [np.mean(np.array(way(X, y)[500:]) == np.array(y[500:])) for _, X, y in of_seeds]
            )
            for way in WAYS.values()
        ]
        print(f"{of_seeds[0][0]:30s}" + "".join(f"{100 * value:8.1f}" for value in accuracy))


if __name__ == "__main__":
    main()
