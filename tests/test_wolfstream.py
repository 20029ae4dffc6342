"""The names of the package `wolfstream`: complete, typed, and imported when they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wolfstream

ROOT = Path(__file__).parents[1]
# What a program that only talks to a server should not wait for.
HEAVY = {"numba", "llvmlite", "scipy", "sklearn", "fastapi", "starlette", "pydantic", "uvicorn"}
CLIENT = {"httpx", "msgpack", "numpy"}


def imported_by(code: str) -> set[str]:
    """Top-level modules in a process that has run the code."""
    code += "; import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def names_for_type_checkers() -> dict[str, str]:
    """Each name under TYPE_CHECKING, with the module that it is imported from."""
    tree = ast.parse(Path(wolfstream.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_importing_it_imports_nothing_else():
    touched = imported_by("import wolfstream")
    assert not touched & (HEAVY | CLIENT | {"service", "solver", "websockets"})


@pytest.mark.parametrize("name", ["Client", "AsyncClient", "RemoteClassifier", "Refused"])
def test_the_client_comes_without_the_server_and_the_numerics(name: str):
    touched = imported_by(f"from wolfstream import {name}")
    assert "service" in touched
    assert not touched & (HEAVY | {"solver", "websockets"})


def test_an_estimator_comes_without_the_client_and_the_server():
    touched = imported_by("from wolfstream import SFWClassifier")
    assert {"numba", "sklearn"} <= touched
    assert not touched & {"httpx", "msgpack", "service", "fastapi", "pydantic"}


def test_all_names_are_there_and_their_types_are_known():
    assert sorted(wolfstream.__all__) == sorted(names_for_type_checkers()) == dir(wolfstream)
    for name, module in names_for_type_checkers().items():
        assert getattr(wolfstream, name).__name__ == name
        assert getattr(wolfstream, name).__module__ == module


@pytest.mark.parametrize("package", ["wolfstream", "service", "solver"])
def test_type_checkers_are_told_that_it_is_typed(package: str):
    assert (ROOT / package / "py.typed").exists()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'wolfstream' has no attribute 'LinearSVC'"):
        _ = wolfstream.LinearSVC  # type: ignore[attr-defined]


def test_a_missing_scikit_learn_is_named_with_the_extra():
    """In a process of its own, which does not find it; the client and the numerics work without."""
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "sklearn":
            raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
sys.meta_path.insert(0, Missing())
import wolfstream.solver.working_set.learner
from wolfstream import Client
try:
    from wolfstream import SFWClassifier
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == (
        "SFWClassifier needs scikit-learn: pip install '.[sklearn]' in a clone of wolfstream"
    ), done.stderr
