"""Small streams for tests of the service."""

from itertools import islice, product
from typing import Any

import numpy as np

from tests.service.specs import PAPERS
from wolfstream.service.model.learner import Learner
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.validation import Samples
from wolfstream.solver.prepare.named_rows import NamedRows, named_rows


def two_classes(n: int, seed: int = 0, features: int = 4) -> Samples:
    """A noisy, not linearly separable stream with labels "no" and "yes"."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, features))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.2 * random.standard_normal(n)
    labels: list[Label] = ["yes" if value > 0 else "no" for value in score]
    return Samples(X, labels)


def three_classes(n: int, seed: int = 0) -> Samples:
    """Three overlapping clusters with integer labels; the third comes late."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, n)
    codes[: n // 3] %= 2
    X = random.standard_normal((n, 3)) + 2.5 * np.eye(3)[codes]
    labels: list[Label] = [int(code) * 10 for code in codes]
    return Samples(X, labels)


def curve(n: int, seed: int = 0) -> Samples:
    """A smooth surface with noise, its values far from zero: targets of a regression."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3))
    y = 200.0 + 50.0 * np.sin(X[:, 0]) + 20.0 * X[:, 1] + 5.0 * random.standard_normal(n)
    return Samples(X, y)


def word_counts(n: int, seed: int = 0) -> Samples:
    """Few words, and the number that their counts make: targets of a regression."""
    samples = few_words(n, seed)
    y = [sum(c * (1.0 + len(word) % 3) for word, c in row.items()) for row in plain_rows(samples)]
    return Samples(samples.X, np.array(y) + 0.1)


def few_words(n: int, seed: int = 0) -> Samples:
    """Texts of three topics as counts of their words; new words come all the time."""
    random = np.random.default_rng(seed)
    topics = random.integers(0, 3, n)
    topics[: n // 3] %= 2
    rows = []
    for i, topic in enumerate(topics.tolist()):
        common = [f"word {k}" for k in random.integers(0, 12 + i // 8, random.integers(0, 6))]
        own = [f"{'abc'[topic]} {k}" for k in random.integers(0, 5 + i // 20, 2)]
        rows.append({word: float(random.integers(1, 4)) / 2 for word in common + own})
    labels: list[Label] = ["abc"[topic] for topic in topics.tolist()]
    return Samples(named_rows(rows), labels)


def named(samples: Samples) -> Samples:
    """The samples with each column under a name."""
    rows = [{f"x{k}": value for k, value in enumerate(row)} for row in samples.X.tolist()]
    return Samples(named_rows(rows), samples.y)


def plain_rows(samples: Samples) -> list[Any]:
    """The rows as JSON has them."""
    if not isinstance(samples.X, NamedRows):
        return samples.X.tolist()
    names, lengths, places, values, *_ = samples.X
    entries = iter(zip(places.tolist(), values.tolist(), strict=True))
    return [{names[k]: value for k, value in islice(entries, n)} for n in lengths.tolist()]


def part(samples: Samples, start: int, stop: int) -> Samples:
    """A run of samples."""
    labels = samples.y[start:stop]
    if isinstance(samples.X, NamedRows):
        return Samples(named_rows(plain_rows(samples)[start:stop]), labels)
    return Samples(samples.X[start:stop], labels)


def body(samples: Samples) -> dict[str, object]:
    """The JSON body that posts them."""
    return {"x": plain_rows(samples), "y": plain_y(samples)}


def plain_y(samples: Samples) -> list[Any]:
    """The labels or targets as JSON has them."""
    return samples.y if isinstance(samples.y, list) else samples.y.tolist()


FEATURES = (
    ("rbf", "fourier"),
    ("rbf", "nystrom"),
    ("polynomial", "nystrom"),
    ("linear", "nystrom"),
    ("linear", "identity"),
)


def asset_specs() -> dict[str, dict[str, Any]]:
    """A spec, with ASSET alone, for each task, algorithm, kernel and feature map, by a name."""
    found = {}
    for task, algorithm in product(("classification", "regression"), ("asset", "asset*")):
        for kernel, features in FEATURES:
            asset: dict[str, Any] = {"algorithm": algorithm, "features": features, "lambda": 1e-3}
            if features != "identity":
                asset["dimension"] = 24
            found[f"{task} {algorithm} {kernel} {features}"] = {
                **PAPERS,
                "task": task,
                "kernel": {"type": kernel},
                "working_set": None,
                "asset": asset,
                "seed": 7,
            }
    return found


def saved(learner: Learner) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state for a snapshot, from which the learner goes on."""
    checkpoint = learner.checkpoint()
    learner.go_on_from(checkpoint)
    return checkpoint.plain, checkpoint.arrays
