"""Raw tables for the default model: what it makes of columns as their owners have them.

    python -m benchmarks columns

Each stream is generated. `as it is` are rows as a file has them; `prepared` are the same ones after
a hand has made numbers of them, which the model should reach by itself. Blocks of 64 samples are
each predicted, then learned.
"""

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Options, Study
from benchmarks.results import Figures, crossed, mean
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import read_samples
from wolfstream.service.spec.model import read_spec

Random = np.random.Generator
Row = dict[str, Any]
_BLOCK = 64
_START = dt.datetime(2025, 3, 1)


class Table(NamedTuple):
    """Rows as they are and as a hand prepares them, with labels or targets."""

    raw: list[Row]
    prepared: list[Row]
    y: list[Any]


def bank(random: Random, n: int = 4000) -> Table:
    """Card payments, of which 2% are frauds: large ones, at night, or with a word that tells."""
    amount, share = np.exp(random.normal(3.5, 1.0, n)), random.random(n)
    at = np.cumsum(random.exponential(600.0, n))
    familiar, hour = random.random(n) < 0.6, (at / 3600.0) % 24.0
    tells = random.random(n) < 0.03
    places = ["corner shop", "web store", "petrol station", "hotel desk"]
    place = random.integers(0, 4, n)
    logit = -7.5 + 1.2 * (np.log(amount) - 3.5) + 4.5 * tells + 2.0 * (hour < 5) + 1.5 * ~familiar
    fraud = random.random(n) < 1.0 / (1.0 + np.exp(-logit - 2.0 * share))
    raw, prepared = list[Row](), list[Row]()
    for i in range(n):
        word = "gift card" if tells[i] else ("groceries", "books", "shoes")[i % 3]
        moment = _START + dt.timedelta(seconds=int(at[i]))
        raw.append(
            {
                "amount": f"${amount[i]:,.2f}",
                "limit used": f"{100.0 * share[i]:.1f}%",
                "when": moment.isoformat(" "),
                "known device": str(bool(familiar[i])),
                "note": f"Paid {word} at the {places[place[i]]}, order {random.integers(10**6)}",
            }
        )
        prepared.append(
            {
                "amount": round(float(amount[i]), 2),
                "limit used": float(share[i]),
                "hour": float(hour[i]),
                "known device": float(familiar[i]),
                "gift": float(tells[i]),
            }
        )
    return Table(raw, prepared, ["fraud" if value else "ok" for value in fraud])


_GOOD = ["love", "great", "happy", "thanks", "wonderful", "nice", "best", "enjoy", "sunny"]
_GOOD += ["perfect"]
_BAD = ["hate", "awful", "sad", "broken", "worst", "angry", "late", "rude", "cold", "boring"]
_PLAIN = ["the", "a", "my", "flight", "phone", "service", "today", "was", "is", "with", "and"]
_PLAIN += ["just", "so", "very", "day"]


def messages(random: Random, n: int = 4000) -> Table:
    """Short messages, glad or not by one or two of their words; prepared: sparse names of words."""
    raw, prepared, y = list[Row](), list[Row](), list[str]()
    others = [f"{a}{b}" for a in _PLAIN for b in ("", "er", "ing", "ish", "s")]
    for _ in range(n):
        glad = random.random() < 0.5
        own, other = (_GOOD, _BAD) if glad else (_BAD, _GOOD)
        words = [*random.choice(others, random.integers(4, 10)), *random.choice(own, 1)]
        if random.random() < 0.15:
            words += [*random.choice(other, 1)]
        random.shuffle(words)
        raw.append({"text": " ".join(words).capitalize() + "!"})
        prepared.append(dict.fromkeys(map(str, words), 1.0))
        y.append("glad" if glad else "sad")
    return Table(raw, prepared, y)


def rides(random: Random, n: int = 4000) -> Table:
    """Prices of rides by how long they took, with two moments of time; prepared: the difference."""
    took = random.gamma(4.0, 300.0, n)
    at = np.cumsum(random.exponential(400.0, n))
    price = 2.0 + took / 60.0 * 0.6 + random.normal(0.0, 0.4, n)
    raw, prepared = list[Row](), list[Row]()
    for i in range(n):
        left = _START + dt.timedelta(days=12, seconds=int(at[i]))
        arrived = left + dt.timedelta(seconds=int(took[i]))
        raw.append({"left": f"{left:%d/%m/%Y %H:%M:%S}", "arrived": f"{arrived:%d/%m/%Y %H:%M:%S}"})
        prepared.append({"took": float(int(took[i])), "hour": left.hour})
    return Table(raw, prepared, price.tolist())


def codes(random: Random, n: int = 4000) -> Table:
    """Targets of quantities with units, ranges and holes, beside names that no row shares."""
    memory, weight = 2.0 ** random.integers(1, 6, n), random.uniform(0.9, 3.0, n)
    pages = random.integers(100, 900, n)
    y = 100.0 * np.log2(memory) - 80.0 * weight + 0.1 * pages + random.normal(0.0, 10.0, n)
    raw, prepared = list[Row](), list[Row]()
    for i in range(n):
        missing = random.random() < 0.05
        raw.append(
            {
                "sku": f"X{random.integers(10**9):09d}{i}",
                "memory": f"{memory[i]:.0f}GB",
                "weight": "-" if missing else f"{weight[i]:.2f} kg",
                "pages": f"{pages[i]}-{pages[i] + 4}",
            }
        )
        prepared.append(
            {
                "memory": float(memory[i]),
                "weight": None if missing else round(float(weight[i]), 2),
                "pages": float(pages[i]),
            }
        )
    return Table(raw, prepared, y.tolist())


STREAMS: dict[str, Callable[[Random], Table]] = {
    "bank": bank,
    "messages": messages,
    "rides": rides,
    "codes": codes,
}


def scored(rows: list[Row], y: list[Any], spec: Row) -> tuple[float, Learner]:
    """Return the AUC or mean absolute error of predictions before learning, and the learner."""
    numeric = isinstance(y[0], float)
    learner = Learner(Model(1, "columns", read_spec(spec)))
    said = list[Any]()
    for start in range(0, len(y), _BLOCK):
        body = {"x": rows[start : start + _BLOCK], "y": y[start : start + _BLOCK]}
        samples = read_samples(body, learner.model.spec.task, prepared=True)
        answers = learner.absorb("asset" if numeric else "working_set", samples)
        said += answers.prediction if numeric else answers.decision
    learner.publish()
    if numeric:
        pairs = [(a, b) for a, b in zip(said, y, strict=True) if a is not None]
        return float(np.mean([abs(a - b) for a, b in pairs])), learner
    classes = learner.model.published.heads["adaptive"].classes
    assert classes is not None
    sign = [value if isinstance(value, float) else 0.0 for value in said]
    return _auc(np.array(sign), np.array([label == classes[1] for label in y])), learner


def _auc(score: np.ndarray[Any, Any], positive: np.ndarray[Any, Any]) -> float:
    order = np.argsort(score, kind="stable")
    rank = np.empty(len(score))
    rank[order] = np.arange(1, len(score) + 1)
    many, few = positive.sum(), (~positive).sum()
    return float((rank[positive].sum() - many * (many + 1) / 2) / (many * few))


def load(name: str, options: Options) -> Table:
    """Return a stream with the run's seed."""
    return STREAMS[name](np.random.default_rng(options.seed))


def measure(form: str, table: Table, options: Options) -> Figures:
    """Return the score of rows in a form, and what the model takes columns for."""
    numeric = isinstance(table.y[0], float)
    spec: Row = {"task": "regression", "working_set": None} if numeric else {}
    rows: list[Row] = getattr(table, form)[: options.rows]
    score, learner = scored(rows, table.y[: options.rows], spec)
    kinds = {column["name"]: column["kind"] for column in learner.model.describe()["columns"]}
    return {"mae" if numeric else "auc": score, "columns": kinds}


def score_cell(figures: list[Figures]) -> str:
    """Return the AUC or the mean absolute error."""
    return mean("auc" if "auc" in figures[0] else "mae", ".4f")(figures)


STUDIES = {
    "columns": Study(
        {"as it is": "raw", "prepared": "prepared"},
        {name: partial(load, name) for name in STREAMS},
        measure,
        partial(crossed, cell=score_cell, corner="AUC, or mean absolute error of rides and codes"),
    )
}
