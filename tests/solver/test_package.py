"""The map from papers to functions leads to functions that exist."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "papers.md").read_text()
PLACES = sorted(set(re.findall(r"`([a-z_.]+)\.([A-Za-z_]+)`", TABLE)))


def test_the_map_was_found():
    assert len(PLACES) > 25
    for paper in ("P1 Algorithm 4", "P2 ", "P4 eq. 13", "P5 Algorithm 1"):
        assert paper in TABLE


@pytest.mark.parametrize(("module", "name"), PLACES)
def test_each_place_on_the_map_exists(module, name):
    place = getattr(importlib.import_module(f"wolfstream.solver.{module}"), name)
    assert place.__doc__


def test_the_server_does_not_import_scikit_learn():
    code = "import sys, wolfstream.service.server.main_process; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
