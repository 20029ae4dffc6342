"""The scores of a merged head, from those of the heads of its partitions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.hits import Hits
from wolfstream.service.heads.recent import LENGTH
from wolfstream.solver.arrays import Float64Array

# The first columns of the last samples are class codes: the label, and the prediction.
_CODES = 2


def add_hits(
    total: Hits, each: Sequence[Hits], places: Sequence[NDArray[np.int64]], classes: int
) -> None:
    """Make new scores those of all samples that several heads have counted.

    Totals are added. Of the last samples there are as many of each head as there is room for.
    Changes are left out: each head reports its own.

    Args:
        total: scores that have counted nothing.
        each: the scores to add.
        places: for each of them, the codes in the total of the classes that it has met, (K_k,).
        classes: the number of classes in the total.
    """
    states = [hits.state() for hits in each]
    met, confusion = np.zeros(classes, np.int64), np.zeros((classes, classes), np.int64)
    for state, place in zip(states, places, strict=True):
        codes = place[: len(state["met"])]  # it may not have counted the classes that came last
        met[codes] += np.array(state["met"], np.int64)
        pairs = np.array(state["confusion"], np.int64).reshape(2 * [len(codes)])
        confusion[np.ix_(codes, codes)] += pairs
    last = max(range(len(each)), key=lambda k: each[k].judged)
    before = states[last]["rules"][2]
    total.restore(
        {
            "confusion": confusion.tolist(),
            "met": met.tolist(),
            "rules": [
                sum(state["rules"][0] for state in states),
                sum(state["rules"][1] for state in states),
                int(places[last][before]) if before >= 0 else -1,
                int(np.argmax(met)) if met.any() else -1,
            ],
            "log_loss": [sum(state["log_loss"][k] for state in states) for k in (0, 1)],
            "recent": _ring(_recent(each, places), int(confusion.sum())).tolist(),
        }
    )


def _recent(each: Sequence[Hits], places: Sequence[NDArray[np.int64]]) -> Float64Array:
    """Return the last judged samples of all heads, youngest last, (5, at most 1,000)."""
    columns, ages = list[Float64Array](), list[NDArray[np.int64]]()
    for hits, place in zip(each, places, strict=True):
        own = hits.recent().copy()
        own[:_CODES] = place[own[:_CODES].astype(np.int64)]
        columns.append(own)
        ages.append(np.arange(own.shape[1])[::-1])
    order = np.argsort(-np.concatenate(ages), kind="stable")[-LENGTH:]
    return np.concatenate(columns, axis=1)[:, order]


def _ring(columns: Float64Array, seen: int) -> Float64Array:
    """Return columns in the order in which `RecentColumns.state` has them."""
    return np.roll(columns, seen % LENGTH, axis=1) if seen > LENGTH else columns
