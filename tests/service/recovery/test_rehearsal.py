"""After a crash, a model that crashes a process is left out of the next start."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.recovery.test_no_crash import ROOT
from tests.service.streams import two_classes
from tests.service.writer_bench import Bench
from wolfstream.service.recovery.rehearsal import leave_out_what_crashes
from wolfstream.service.storage.crash_marks import last_crash

# Ends the process by SIGSEGV where a method of the model `bad` is called.
_CRASHES = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Crashing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "wolfstream.service.recovery.first_use":  # what is used then is imported
            from wolfstream.service.model.learner import Learner
            inner = Learner.{method}
            def crash(self, *given, **named):
                if self.model.name == "bad":
                    os.kill(os.getpid(), signal.SIGSEGV)
                return inner(self, *given, **named)
            Learner.{method} = crash

sys.meta_path.insert(0, Crashing())
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three models, each with a snapshot and samples after it."""
    bench = Bench(tmp_path / "data")
    for name in ("good", "bad", "better"):
        model = bench.create({"asset": None}, name)
        bench.learn(model, two_classes(10))
        bench.snapshot(model)
        bench.learn(model, two_classes(5, 1))
    bench.kill()
    return tmp_path / "data"


@pytest.mark.parametrize("method", ["restore", "absorb"])
def test_a_model_that_crashes_is_left_out(
    data: Path, tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_CRASHES.format(method=method))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert leave_out_what_crashes(data) == [2]
    bench = Bench(data)
    status = {model.name: model.status for model in bench.writer.models.all()}
    assert status == {"good": "ok", "bad": "broken", "better": "ok"}
    bench.close()


def test_models_that_are_whole_are_not(data: Path) -> None:
    assert leave_out_what_crashes(data) == []


def test_a_crash_leaves_a_trace(tmp_path: Path) -> None:
    code = (
        "import ctypes, pathlib, sys; from wolfstream.service.storage import crash_marks;"
        "crash_marks.watch_for_crashes(pathlib.Path(sys.argv[1])); ctypes.string_at(0)"
    )
    path = tmp_path / "crash"
    assert last_crash(path) == ""
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=False)
    assert done.returncode < 0
    assert "Segmentation fault" in last_crash(path)
