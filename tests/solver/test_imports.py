"""Who may import whom: the modules form layers, and numerics know nothing of the world."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Numerics do no input or output, know no clock and start no thread.
WORLD = {
    "asyncio",
    "datetime",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "pickle",
    "random",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
}
# A fit that keeps a trace says when each point was reached; the solvers are handed the clock.
EXEMPT = {"batch_estimator": {"time"}}


def imported_names(file, package):
    """Full names of all modules and members that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = f"{package}.{base}".rstrip(".")
            yield from (f"{base}.{alias.name}" for alias in node.names)


def source_files(package):
    return sorted((ROOT / package).glob("*.py"))


def import_graph(package):
    """Each module of a package with the modules of the same package that it imports."""
    modules = {file.stem for file in source_files(package)} - {"__init__"}
    graph = {}
    for module in modules:
        names = imported_names(ROOT / package / f"{module}.py", package)
        parts = [name.split(".") for name in names]
        graph[module] = {part[1] for part in parts if part[0] == package and part[1] in modules}
    return graph


@pytest.mark.parametrize("package", ["solver", "service"])
def test_no_module_imports_itself_through_others(package):
    graph = import_graph(package)
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle in {package}: {' -> '.join(error.args[1])}")
    assert set(order) == set(graph)


def test_the_graph_sees_imports():
    graph = import_graph("solver")
    assert {"simplex", "hessian"} <= graph["online"]
    assert graph["compiled"] == set()


@pytest.mark.parametrize("file", source_files("solver"), ids=lambda file: file.stem)
def test_numerics_do_not_touch_the_world(file):
    touched = {name.split(".")[0] for name in imported_names(file, "solver")}
    assert not touched & WORLD - EXEMPT.get(file.stem, set())


@pytest.mark.parametrize("file", source_files("solver"), ids=lambda file: file.stem)
def test_numerics_do_not_know_the_service(file):
    assert "service" not in {name.split(".")[0] for name in imported_names(file, "solver")}
