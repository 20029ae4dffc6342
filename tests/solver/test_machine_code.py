"""Machine code does the same whether it was just compiled or is read from the cache."""

import os
import subprocess
import sys
from pathlib import Path

# Prints the bits of what a bank's experts weigh after 300 samples.
_LEARN = """
import numpy as np
from wolfstream.solver.adaptive.combination import Combiner, new_combination
random = np.random.default_rng(0)
prior = np.ones(34)
made = new_combination(prior, [0.03, 0.1, 0.3, 1.0])
scores = random.normal(size=(300, 30, 4))
awake, known = np.ones((300, 30), np.bool_), np.full(300, 3)
Combiner(prior).combine(made, scores, awake, random.integers(0, 3, 300), known, np.ones(300))
print(made.weight.tobytes().hex())
"""

# Prints how many functions of the package have become machine code, of one that calls another.
_COUNT = """
from numba.core.codegen import JITCPUCodegen
from wolfstream.solver.frank_wolfe.problem import best_vertex, empty_problem
made, add = [], JITCPUCodegen._add_module
def note(codegen, module):
    made.append({f.name for f in module.functions if not f.is_declaration})
    return add(codegen, module)
JITCPUCodegen._add_module = note
best_vertex(empty_problem(2))
print(sum(any(name.startswith("_ZN10wolfstream6solver") for name in names) for names in made))
"""


def printed(program: str, cache: Path) -> bytes:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, check=True, capture_output=True).stdout


def test_a_second_process_computes_the_same_bits(tmp_path: Path) -> None:
    first, second = (printed(_LEARN, tmp_path) for _ in range(2))
    assert first == second


def test_only_what_python_can_call_becomes_machine_code(tmp_path: Path) -> None:
    assert int(printed(_COUNT, tmp_path)) == 1
