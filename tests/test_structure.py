"""Packages import what the table in CONTRIBUTING.md allows, and imports point downwards."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
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
# A fit that keeps a trace says when each point was reached; the solvers are handed the clock. Dates
# that are given are read, and none is asked for. River is told of the estimators where a program
# has loaded it. Fits go on beside learning on one thread, and no result depends on when they end.
# Machine code is kept in a directory of the user's, by the hash of what it was compiled of.
EXEMPT = {
    "solver.compile_cache": {"os", "pathlib", "sys", "tempfile"},
    "solver.sources": {"pathlib"},
    "solver.estimators.batch": {"time"},
    "solver.estimators.stream": {"sys"},
    "solver.prepare.cells": {"datetime"},
    "solver.refits": {"os", "threading"},
}
# The modules of the service that tell tasks apart, besides the tables in `service.samples.tasks`,
# `service.heads.new_head` and `service.spec.task_fields`: options of the command, what it prints,
# files, which are below all of these, and learners whose interface has `regression`.
TELL_TASKS_APART = {
    "service.cli.train_options",
    "service.cli.training_display",
    "service.files.labelled",
    "service.heads.adaptive",
    "service.heads.custom",
    "service.offline.stream_conversion",
}
# Folders of packages, which hold no modules of their own but leaves.
FOLDERS = {"service", "service.web", "solver"}
# Names of well-known modules, which a reader would expect behind a module of ours.
FAMOUS = {"http", "queue", "requests", "logging", "json", "sqlite3", "asyncio", "numpy"}


def module_name(file: Path) -> str:
    """The name of a module as CONTRIBUTING.md has it: by its path in the repository."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {
    module_name(file): file
    for file in [
        *sorted((ROOT / "wolfstream").glob("*.py")),
        *sorted((ROOT / "service").rglob("*.py")),
        *sorted((ROOT / "solver").rglob("*.py")),
    ]
}
PACKAGES = {name for name, file in MODULES.items() if file.name == "__init__.py"}


def imported_names(file: Path) -> set[str]:
    """Full names of all modules and members that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def module_of(name: str) -> str | None:
    """The module of the project that a name stands in, or is."""
    if name.startswith(("wolfstream.service", "wolfstream.solver")):
        name = name.removeprefix("wolfstream.")
    while name not in MODULES:
        if "." not in name:
            return None
        name = name.rpartition(".")[0]
    return name


def imports_of(module: str) -> set[str]:
    return {found for name in imported_names(MODULES[module]) if (found := module_of(name))}


def package_of(module: str) -> str:
    """The row of the table that a module belongs to; a leaf at the top is one of its own."""
    package = module if module in PACKAGES else module.rpartition(".")[0]
    return module if package in FOLDERS else package


GRAPH = {module: imports_of(module) - {module} for module in MODULES}


def backticked(text: str) -> list[str]:
    return re.findall(r"`([a-z_.]+)`", text)


def table() -> dict[str, set[str]]:
    """The rows of CONTRIBUTING.md: each package with the packages that it may import."""
    section = CONTRIBUTING.partition("| package | holds | may import |")[2].partition("\n\n")[0]
    rows = [line.split("|") for line in section.strip().splitlines()[1:]]
    return {backticked(row[1])[0]: set(backticked(row[3])) for row in rows}


ALLOWED = table()
# Whatever any module may import, as the sentence below the table says.
LEAVES = set(backticked(CONTRIBUTING.partition("Every package may import")[2].partition("\n\n")[0]))
USED = {
    package: {
        target
        for module in MODULES
        if package_of(module) == package
        for target in map(package_of, GRAPH[module])
    }
    - {package, *FOLDERS}
    for package in ALLOWED
}


def test_the_table_has_all_packages_and_leaves():
    assert {"service.errors", "solver.arrays", "solver.compiled", "solver.iteration"} <= LEAVES
    assert set(ALLOWED) | LEAVES | FOLDERS == {package_of(module) for module in MODULES}


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_what_the_table_allows(package: str):
    assert USED[package] - LEAVES <= ALLOWED[package]


@pytest.mark.parametrize("package", ALLOWED)
def test_the_table_allows_nothing_that_is_not_used(package: str):
    assert ALLOWED[package] <= USED[package]


def test_imports_point_downwards_in_the_table():
    order = list(ALLOWED)
    upwards = [
        (package, target)
        for package in order
        for target in ALLOWED[package]
        if order.index(target) <= order.index(package)
    ]
    assert upwards == []


def test_imports_point_downwards_in_the_picture():
    picture = CONTRIBUTING.partition("```text")[2].partition("```")[0]
    order = re.findall(r"wolfstream|(?:service|solver)\.[a-z_.]+", picture)
    assert sorted(order) == sorted(ALLOWED)
    for package, targets in ALLOWED.items():
        assert all(order.index(target) > order.index(package) for target in targets), package


def test_leaves_import_nothing_but_leaves():
    imported = {
        module: {target for target in GRAPH[module] if package_of(target) not in LEAVES}
        for module in MODULES
        if package_of(module) in LEAVES
    }
    assert {module: targets for module, targets in imported.items() if targets} == {}


@pytest.mark.parametrize("folder", ["wolfstream", "service", "solver", "tests", "benchmarks"])
def test_everything_is_imported_under_one_name(folder: str):
    """A user's own `service` or `solver` is never in the way."""
    bare = {
        file.name: names
        for file in (ROOT / folder).rglob("*.py")
        if (names := {n for n in imported_names(file) if n.split(".")[0] in ("service", "solver")})
    }
    assert bare == {}


def test_no_module_imports_itself_through_others():
    order = list(TopologicalSorter(GRAPH).static_order())
    assert set(order) == set(MODULES)


def test_the_graph_sees_imports():
    assert {"solver.frank_wolfe.problem", "solver.working_set.hessian"} <= GRAPH[
        "solver.working_set.sfw"
    ]
    assert "service.web.formats.wire" in GRAPH["service.web.routes.models"]


def test_no_module_is_named_like_its_package_or_a_famous_one():
    leaves = {name: name.split(".") for name in MODULES if name not in PACKAGES}
    assert [name for name, parts in leaves.items() if parts[-1] in {parts[-2], *FAMOUS}] == []


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("solver")])
def test_numerics_know_neither_the_world_nor_the_service(module: str):
    imported = imported_names(MODULES[module])
    touched = {name.split(".")[0] for name in imported}
    assert not touched & (WORLD - EXEMPT.get(module, set()))
    assert not [name for name in imported if name.startswith("wolfstream.service")]


def compares_tasks(file: Path) -> bool:
    """Whether a module compares anything with the name of a task."""
    compared = (
        node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Compare)
    )
    values = (
        part.value for node in compared for part in ast.walk(node) if isinstance(part, ast.Constant)
    )
    return not {"regression", "classification"}.isdisjoint(values)


def test_tasks_are_told_apart_by_tables():
    service = {name: file for name, file in MODULES.items() if name.startswith("service")}
    assert {name for name, file in service.items() if compares_tasks(file)} == TELL_TASKS_APART
