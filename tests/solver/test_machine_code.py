"""Machine code does the same whether it was just compiled or is read from the cache."""

import os
import subprocess
import sys
from pathlib import Path

# Prints the bits of what a bank's experts weigh after 300 samples.
_LEARN = """
import numpy as np
from solver.adaptive.combination import combine, new_combination
random = np.random.default_rng(0)
prior = np.ones(34)
made = new_combination(prior, [0.03, 0.1, 0.3, 1.0])
scores = random.normal(size=(300, 30, 4))
awake, known = np.ones((300, 30), np.bool_), np.full(300, 3)
combine(made, prior, scores, awake, random.integers(0, 3, 300), known, np.ones(300))
print(made.weight.tobytes().hex())
"""


def test_a_second_process_computes_the_same_bits(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", _LEARN]
    first, second = (
        subprocess.run(command, env=environment, check=True, capture_output=True).stdout
        for _ in range(2)
    )
    assert first == second
