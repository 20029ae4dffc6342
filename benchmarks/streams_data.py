"""Streams for `benchmarks.streams`: real ones from a folder, and River's generators with change.

A generated stream has four concepts of equal length, or one that moves all the time, and the
noise that is River's default or, where that is none, 10%.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from river.datasets import synth

from benchmarks.datasets import load

CONCEPTS = 4
# Rows of a real stream that are taken at most.
REAL = {
    "elec2": 45_312,
    "powersupply": 29_928,
    "covtype": 100_000,
    "spam_corpora": 9_324,
    "pendigits": 7_494,
    "a9a": 32_561,
    "bike_hour": 17_379,
    "cal_housing": 20_640,
    "abalone": 4_177,
}
REGRESSION = {"bike_hour", "cal_housing", "abalone", "friedman"}
# Too wide for a dense array.
SPARSE = {"spam_corpora"}

Samples = Iterator[tuple[dict[Any, float], Any]]


class Stream(NamedTuple):
    """Rows as they come and labels: codes in order of appearance, or targets."""

    name: str
    X: Any
    y: NDArray[Any]

    @property
    def regression(self) -> bool:
        """Whether y are targets."""
        return self.name in REGRESSION


def _sea(concept: int, seed: int) -> Samples:
    return iter(synth.SEA(variant=concept, noise=0.1, seed=seed))


def _agrawal(concept: int, seed: int) -> Samples:
    return iter(synth.Agrawal(classification_function=2 * concept, seed=seed))


def _agrawal_noisy(concept: int, seed: int) -> Samples:
    function = (1, 3, 5, 8)[concept]
    return iter(synth.Agrawal(classification_function=function, seed=seed, perturbation=0.1))


def _led(concept: int, seed: int) -> Samples:
    drifting = (0, 3, 5, 7)[concept]
    return iter(
        synth.LEDDrift(
            seed=seed, noise_percentage=0.1, irrelevant_features=True, n_drift_features=drifting
        )
    )


def _sine(concept: int, seed: int) -> Samples:
    return iter(synth.Sine(classification_function=concept, seed=seed))


def _mixed(concept: int, seed: int) -> Samples:
    return iter(synth.Mixed(classification_function=concept % 2, seed=seed))


def _hyperplane(_: int, seed: int) -> Samples:
    return iter(synth.Hyperplane(seed=seed, n_drift_features=5, mag_change=0.001))


def _moving_centroids(_: int, seed: int) -> Samples:
    return iter(
        synth.RandomRBFDrift(
            seed_model=seed,
            seed_sample=seed,
            n_classes=4,
            change_speed=0.001,
            n_drift_centroids=50,
        )
    )


def _waveform(_: int, seed: int) -> Samples:
    return iter(synth.Waveform(seed=seed, has_noise=True))


def _friedman(_: int, seed: int) -> Samples:
    return iter(synth.FriedmanDrift(drift_type="gra", position=(7_000, 14_000), seed=seed))


# Each with whether its concepts follow each other.
GENERATORS: dict[str, tuple[Callable[[int, int], Samples], bool]] = {
    "sea": (_sea, True),
    "agrawal": (_agrawal, True),
    "agrawal_noisy": (_agrawal_noisy, True),
    "led": (_led, True),
    "sine": (_sine, True),
    "mixed": (_mixed, True),
    "hyperplane": (_hyperplane, False),
    "rbf_drift": (_moving_centroids, False),
    "waveform": (_waveform, False),
    "friedman": (_friedman, False),
}


def generated(name: str, seed: int, rows: int) -> Stream:
    """So many rows of a generator."""
    make, concepts = GENERATORS[name]
    count = CONCEPTS if concepts else 1
    parts = [islice(make(concept, seed + concept), rows // count) for concept in range(count)]
    samples = [(list(map(float, x.values())), y) for part in parts for x, y in part]
    X = np.array([x for x, _ in samples])
    y = np.array([y for _, y in samples])
    return Stream(name, X, y.astype(np.float64) if name in REGRESSION else codes(y))


def real(folder: Path, name: str) -> Stream:
    """Return the first rows of a real stream."""
    data = load(folder, name, sparse=name in SPARSE)
    X, y = data.X[: REAL[name]], data.y[: REAL[name]]
    if name not in REGRESSION:
        return Stream(name, X, codes(y))
    # `load` reads labels as integers; targets are not.
    with np.load(folder / f"{name}.npz") as archive:
        return Stream(name, X, archive["y"][: REAL[name]].astype(np.float64))


def codes(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Class codes 0, 1, 2, ... in order of appearance."""
    number: dict[Any, int] = {}
    return np.array([number.setdefault(label, len(number)) for label in labels.tolist()], np.int64)
