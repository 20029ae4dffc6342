"""Functions that count no references to arrays, and those that make arrays, stay apart.

One that counts would release an array that one that does not count gave it, once too often; the
other way round the array would never be released.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNCOUNTED = {"compiled", "inner"}
ALLOCATING = {"compiled_allocating", "inner_allocating"}


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


TREES = {
    module_of(file): ast.parse(file.read_text()) for file in sorted((ROOT / "solver").rglob("*.py"))
}


def decorated(tree: ast.Module) -> dict[str, tuple[str, ast.FunctionDef]]:
    """By name, the functions of a module that are compiled, with their decorators."""
    return {
        node.name: (mark.id, node)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
        if isinstance(mark, ast.Name) and mark.id in UNCOUNTED | ALLOCATING
    }


COMPILED = {module: decorated(tree) for module, tree in TREES.items()}
PLAIN = {"None", "bool", "int", "float", "str", "tuple", "np", "uint64"}


def arrays_in(function: ast.FunctionDef) -> set[str]:
    """The names in what a function returns that may stand for arrays."""
    if function.returns is None:
        return set()
    text = ast.unparse(function.returns)
    names = {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    return names - PLAIN


def calls(module: str, function: ast.FunctionDef) -> list[tuple[str, ast.FunctionDef]]:
    """The compiled functions that a function of a module calls."""
    known = dict(COMPILED[module])
    for node in TREES[module].body:
        if isinstance(node, ast.ImportFrom) and node.module in COMPILED:
            there = COMPILED[node.module]
            known |= {alias.name: there[alias.name] for alias in node.names if alias.name in there}
    names = {
        node.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return [known[name] for name in sorted(names & known.keys())]


ALL = [
    pytest.param(module, mark, function, id=f"{module}.{function.name}")
    for module, functions in COMPILED.items()
    for mark, function in functions.values()
]


def test_all_compiled_functions_are_found() -> None:
    assert len(ALL) > 150
    assert {mark for functions in COMPILED.values() for mark, _ in functions.values()} == (
        UNCOUNTED | ALLOCATING
    )


@pytest.mark.parametrize(("module", "mark", "function"), ALL)
def test_no_array_passes_between_the_two_kinds(
    module: str, mark: str, function: ast.FunctionDef
) -> None:
    for other, called in calls(module, function):
        if mark in UNCOUNTED:
            assert other in UNCOUNTED, called.name
        elif other in UNCOUNTED:
            assert not arrays_in(called), called.name
