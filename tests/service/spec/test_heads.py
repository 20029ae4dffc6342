"""The names of heads and algorithms stand once, and the spec loads no numerics."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.spec.asset import AssetSpec
from wolfstream.service.spec.heads import ALGORITHMS, HEAD_OPTIONS, HEADS, WAY_OPTIONS
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.working_set import WorkingSetSpec

SERVICE = Path(__file__).parents[3] / "service"
# What may name heads: the spec, the kinds themselves, the client (which imports nothing of the
# rest), and the types of responses, which have fields of theirs; and which estimator has which
# head.
# A chain is of the two heads that a default model predicts with.
CONVERSIONS = {
    "offline/conversion.py",
    "offline/estimator_files.py",
    "offline/semiparametric_conversion.py",
    "offline/stream_conversion.py",
    "offline/working_set_conversion.py",
}
MAY_NAME_HEADS = {"spec", "heads", "client", "calls", "model/chains.py", *CONVERSIONS}
# "asset" is also the name of a learning call, and of a solver.
CALLS = {"asset"}


def test_the_spec_loads_no_numerics():
    loaded = "{'numba', 'numpy'} & set(sys.modules)"
    script = f"import wolfstream.service.spec.model, sys; assert not {loaded}, {loaded}"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_names_load_nothing():
    script = "import wolfstream.service.spec.heads, sys; assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_head_has_a_kind_and_a_part_of_the_spec():
    assert tuple(KINDS) == HEADS
    assert set(HEADS) <= ModelSpec.model_fields.keys()
    assert HEAD_OPTIONS.keys() == set(HEADS)


def test_every_algorithm_trains_a_head_that_can_be_trained_so():
    for name, algorithm in ALGORITHMS.items():
        kind = KINDS[algorithm.head]
        way = {"stream": kind.passes, "pairs": kind.pairs, "fit": kind.refitting}[algorithm.way]
        assert way is not None, name
        assert WAY_OPTIONS[algorithm.way]


@pytest.mark.parametrize(("part", "head"), [(WorkingSetSpec, "working_set"), (AssetSpec, "asset")])
def test_a_spec_offers_the_algorithms_that_learn_online(part: type, head: str):
    streams = {n for n, a in ALGORITHMS.items() if a.head == head and a.way == "stream"}
    assert set(get_args(part.__annotations__["algorithm"])) == streams


def names_of_heads(file: Path) -> set[str]:
    """Heads that a module's code names: as a string alone, or as part of an identifier."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        words = [getattr(node, field, None) for field in ("id", "attr", "arg", "name")]
        if isinstance(node, ast.ImportFrom):
            words.append(node.module)
        texts = [word.lower() for word in words if isinstance(word, str)]
        found |= {head for head in HEADS for text in texts if head in text}
        if isinstance(node, ast.Constant) and node.value in HEADS:
            found.add(str(node.value))
    return found - CALLS


def test_nothing_else_names_a_head():
    others = [
        file
        for file in sorted(SERVICE.rglob("*.py"))
        if not any(file.is_relative_to(SERVICE / place) for place in MAY_NAME_HEADS)
    ]
    assert len(others) > 50
    named = {str(file.relative_to(SERVICE)): names_of_heads(file) for file in others}
    assert {file: names for file, names in named.items() if names} == {}
    assert "working_set" in names_of_heads(SERVICE / "heads" / "working_set.py")
