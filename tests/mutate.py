"""Which changes of the code no test notices: `python -m tests.mutate service/storage tests/...`.

Each mutant is a copy of the repository with one change. Tools from PyPI take no calls away and do
not exchange statements, which is what breaks promises such as "durable before it is acknowledged",
and they change the files in place, or expect modules under the names of their folders. A survivor
is a test that is missing, or a change that means nothing: a reader has to tell.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).parents[1]
# It is kept, with the machine code that was compiled for it, and `make clean` removes it.
COPY = ROOT / ".venv" / "mutated"
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
}
Node: TypeAlias = ast.expr | ast.stmt


class Mutant(NamedTuple):
    """A change of a source. start, stop: of the bytes that are replaced."""

    line: int
    start: int
    stop: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


class Source:
    """The text of a module, and where its nodes are."""

    def __init__(self, content: bytes) -> None:
        self.content, self.tree = content, ast.parse(content)
        lines = content.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: Node) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def stop(self, node: Node) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: Node) -> str:
        return self.content[self.start(node) : self.stop(node)].decode()

    def replaced(self, node: Node, text: str) -> Mutant:
        return Mutant(node.lineno, self.start(node), self.stop(node), text)

    def mutants(self) -> Iterator[Mutant]:
        """Yield all changes, in the order of the text."""
        found = [mutant for node in ast.walk(self.tree) for mutant in self._of(node)]
        yield from sorted(found, key=lambda one: (one.start, one.stop))

    def _of(self, node: ast.AST) -> Iterator[Mutant]:
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list):
                yield from self._of_block(block)
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                yield self.replaced(node.test, f"(not ({self.text(node.test)}))")
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                text = f"{self.text(left)} {_COMPARISONS[type(op)]} {self.text(right)}"
                yield self.replaced(node, f"({text})")
            case ast.BoolOp(op=op, values=values):
                word = " or " if isinstance(op, ast.And) else " and "
                yield self.replaced(node, f"({word.join(f'({self.text(v)})' for v in values)})")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                text = f"({self.text(left)}) {_OPERATIONS[type(op)]} ({self.text(right)})"
                yield self.replaced(node, f"({text})")
            case ast.Constant(value=bool() as value):
                yield self.replaced(node, str(not value))
            case ast.Constant(value=int() as value):
                yield self.replaced(node, str(value + 1))
            case ast.Break():
                yield self.replaced(node, "continue")
            case ast.Continue():
                yield self.replaced(node, "break")

    def _of_block(self, block: list[ast.stmt]) -> Iterator[Mutant]:
        """Yield changes that take a call or a raise away, or put a call before what precedes it."""
        for statement in block:
            if isinstance(statement, ast.Raise) or _is_call(statement):
                yield self.replaced(statement, "pass")
        for before, after in pairwise(block):
            if _is_call(after) and not _is_text(before):
                between = self.content[self.stop(before) : self.start(after)].decode()
                text = f"{self.text(after)}{between}{self.text(before)}"
                yield Mutant(after.lineno, self.start(before), self.stop(after), text)


def _is_call(statement: ast.stmt) -> bool:
    """Return whether a statement is a call for its effect, but for lines in the log."""
    if not isinstance(statement, ast.Expr):
        return False
    call = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
    return isinstance(call, ast.Call) and not ast.unparse(call.func).startswith("logger.")


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def copied(root: Path, to: Path) -> None:
    """Copy what git knows, or would; files that are as they were keep their times."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        source, target = root / name, to / name
        if not source.is_symlink() and not source.exists():
            continue  # it was deleted
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.unlink(missing_ok=True)
            target.symlink_to(source.readlink())
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy2(source, target)


def passes(tests: list[str], cwd: Path, seconds: float | None = None) -> bool:
    """Return whether tests pass, in this time."""
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [*command, *tests], cwd=cwd, stdout=quiet, stderr=quiet, start_new_session=True
    ) as process:
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)


def survivors(files: list[Path], tests: list[str], root: Path, copy: Path) -> Iterator[str | None]:
    """Yield for each mutant of files what it is if tests pass with it; None if they fail."""
    copied(root, copy)
    began = time.monotonic()
    passes(tests, copy)  # compiles
    began = time.monotonic()
    if not passes(tests, copy):
        raise SystemExit("the tests fail as it is: run them by themselves first")
    seconds = 10.0 + 3.0 * (time.monotonic() - began)
    for file in files:
        source, target = Source((root / file).read_bytes()), copy / file
        for mutant in source.mutants():
            target.write_bytes(mutant.apply(source.content))
            try:
                noticed = not passes(tests, copy, seconds)
            finally:
                target.write_bytes(source.content)
                shutil.copystat(root / file, target)
            yield None if noticed else f"{file}:{mutant.line}: {_in_words(source, mutant)}"


def _in_words(source: Source, mutant: Mutant) -> str:
    before = source.content[mutant.start : mutant.stop].decode()
    return f"{' '.join(before.split())}  ->  {' '.join(mutant.text.split())}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder of modules, or a module")
    parser.add_argument("tests", nargs="*", help="those that should notice; by default its mirror")
    given = parser.parse_args()
    folder: Path = given.folder
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]
    mirror = Path("tests") / (folder if folder.is_dir() else folder.parent)
    count, left = 0, 0
    for survivor in survivors(files, given.tests or [str(mirror)], ROOT, COPY):
        count += 1
        if survivor is not None:
            left += 1
            print(survivor, flush=True)
    print(f"{count} mutants, {left} of which no test noticed")


if __name__ == "__main__":
    main()
