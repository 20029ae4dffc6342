"""States that no check has seen: learning from them may fail, but never ends the process."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Compiled code that walked on until it found the largest gradient left its arrays, where none was.
FORGED = {
    "a kernel without a width": ("a set of numbers", "novelty.auto_gamma", "nan"),
    "evidence without end": ("a set of numbers", "adaptive.endless0_own_evidence", "inf"),
    "labels of neighbours": ("default", "adaptive.neighbours_target", "1e300"),
}
CODE = """
import sys
from tests.service.forging import state_of, streams
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import read_spec

name, key, value = sys.argv[1:]
given, samples, _ = streams()[name]
plain, arrays = state_of(name)
if key.endswith("evidence"):
    arrays[key][0] = float(value)  # then comes an age
else:
    arrays[key][...] = float(value)
learner = Learner(Model(1, "m", read_spec(given)))
try:
    learner.restore(plain, arrays)
    for head in [*learner.heads] * 2:
        learner.absorb(head, samples)
        learner.publish()
except Exception as error:
    print(repr(error)[:200])
"""


@pytest.mark.parametrize("which", FORGED)
def test_what_is_no_number_ends_no_process(which: str) -> None:
    code = [sys.executable, "-c", CODE, *FORGED[which]]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
