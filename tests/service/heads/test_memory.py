"""What a head takes is what docs/models.md says, and no array is left out."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wolfstream.service.heads.online_learner import Batch
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import read_spec

PAGE = Path(__file__).resolve().parents[3] / "docs" / "models.md"
FORMULAS = dict(re.findall(r"^(adaptive|asset|working_set) = (.+)$", PAGE.read_text(), re.M))
HEADS: dict[HeadName, dict[str, Any]] = {
    "adaptive": {"working_set": None, "asset": None},
    "asset": {"working_set": None, "adaptive": None, "asset": {"dimension": 512}},
    "working_set": {"asset": None, "adaptive": None, "working_set": {"max_size": 200}},
}


def said_by_the_page(head: str, **sizes: float) -> float:
    """The formula's value; its names are these."""
    return float(eval(FORMULAS[head], {"__builtins__": {}}, sizes))  # noqa: S307


def learned(spec: dict[str, Any], head: HeadName, d: int, classes: int) -> Learner:
    random = np.random.default_rng(d)
    learner = Learner(Model(1, "m", read_spec(spec)))
    for _ in range(24):
        y = random.integers(0, classes, 64).tolist() if classes else random.normal(size=64)
        learner.absorb(head, Samples(random.normal(size=(64, d)), y))
    learner.publish()
    return learner


def arrays_in(thing: Any, found: dict[int, Any]) -> dict[int, Any]:
    """The arrays that are reached from anything, each with its memory once."""
    if id(thing) in found:
        return found
    if isinstance(thing, np.ndarray):
        while isinstance(thing.base, np.ndarray):
            thing = thing.base
        found[id(thing)] = thing
    elif isinstance(thing, dict):
        for value in thing.values():
            arrays_in(value, found)
    elif isinstance(thing, list | tuple):
        for value in thing:
            arrays_in(value, found)
    elif hasattr(thing, "__dict__") and not isinstance(thing, type):
        found[id(thing)] = None
        arrays_in(vars(thing), found)
    return found


@pytest.mark.parametrize(("d", "classes"), [(3, 2), (20, 7), (3, 0)])
@pytest.mark.parametrize("head", HEADS)
def test_a_head_takes_what_the_page_says(head: HeadName, d: int, classes: int):
    task = {} if classes else {"task": "regression"}
    learner = learned({**HEADS[head], **task}, head, d, classes)
    if head == "working_set":
        classes = classes or 2
    stats = learner.model.published.heads[head].stats
    sizes: dict[str, float] = {
        "d": d,
        "K": classes,
        "D": d + 257,
        "F": 512,
        "S": 200,
        "p": d,
        "R": 8192,
    }
    sizes["V"] = 0.5 if "task" not in task else 4
    sizes["E"] = stats.get("learners", 0)
    expected = said_by_the_page(head, **sizes)
    if head == "working_set":
        # A regression keeps no past, since nothing fades.
        least = 0.2 if "task" not in task else 0.1
        assert least * expected < stats["bytes"] < expected
    else:
        more = learner.heads[head].growth(Batch(10**6, 64, d, d)) if head == "adaptive" else 0
        assert stats["bytes"] + more == pytest.approx(expected, rel=0.01 + 0.02 * (not classes))


@pytest.mark.parametrize("head", HEADS)
def test_no_array_is_left_out(head: HeadName):
    learner = learned(HEADS[head], head, 3, 4)
    stats = learner.model.published.heads[head].stats
    own = arrays_in(learner.heads[head].learner, {}).values()
    held = sum(array.nbytes for array in own if array is not None)
    assert held <= stats["bytes"] * 1.02
