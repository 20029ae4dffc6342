"""Names of saved arrays, by which earlier snapshots are read and uploads are checked."""

import numpy as np
import pytest

from wolfstream.solver.asset.run import Run
from wolfstream.solver.asset.runs import Runs


def test_names_of_further_runs_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Run, "state", lambda _, prefix: {f"{prefix}direction": np.zeros(1)})
    runs = Runs.__new__(Runs)
    runs.each = [Run.__new__(Run), Run.__new__(Run)]
    runs.lost = np.zeros(2)
    assert set(runs.state()) == {"direction", "course1_direction", "lost"}
