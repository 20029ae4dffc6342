"""The package's map from papers to functions leads to functions that exist."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import solver

ROOT = Path(__file__).parents[2]
TABLE = solver.__doc__.split("How they stand")[0]
PLACES = sorted(set(re.findall(r"(?<![\w`])([a-z_]+)\.([A-Za-z_]+)(?![\w(])", TABLE)))
MODULES = {file.stem for file in (ROOT / "solver").glob("*.py")} - {"__init__"}


def test_the_map_was_found():
    assert len(PLACES) > 25
    for paper in ("P1 Algorithm 4", "P2 ", "P4 eq. 13", "P5 Algorithm 1"):
        assert paper in TABLE


@pytest.mark.parametrize(("module", "name"), PLACES)
def test_each_place_on_the_map_exists(module, name):
    place = getattr(importlib.import_module(f"solver.{module}"), name)
    assert place.__doc__


def test_every_module_stands_in_the_import_order():
    order = solver.__doc__.split("How they stand")[1]
    assert set(re.findall(r"[a-z_]+", order)) >= MODULES


def test_the_server_does_not_import_scikit_learn():
    code = (
        "import service.server, solver, sys; "
        "assert 'sklearn' not in sys.modules; solver.SFWClassifier; "
        "assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'LinearSVC'"):
        solver.LinearSVC  # noqa: B018
