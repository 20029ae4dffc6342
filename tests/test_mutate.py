"""The mutants of a module, and which of them its tests do not notice."""

import subprocess
from pathlib import Path

import pytest

from tests.mutate import Source, survivors

SOURCE = b'''"""A text."""

def save(log, samples, most=3):
    """Append samples."""
    if len(samples) > most and log:
        raise ValueError("too many")
    log.append(samples)
    log.sync()
    return True
'''
MUTANTS = [
    "most=4",
    "if (not (len(samples) > most and log)):",
    "(len(samples) >= most)",
    "((len(samples) > most) or (log))",
    "pass",
    "log.append(samples)\n    if len(samples) > most",
    "log.sync()\n    log.append(samples)",
    "return False",
]


@pytest.mark.parametrize("text", MUTANTS)
def test_a_source_has_mutants(text: str) -> None:
    source = Source(SOURCE)
    changed = [mutant.apply(source.content).decode() for mutant in source.mutants()]
    assert any(text in one for one in changed)
    assert len(set(changed)) == len(changed)
    for one in changed:
        compile(one, "it", "exec")


def test_survivors_are_those_that_tests_do_not_notice(tmp_path: Path) -> None:
    root, copy = tmp_path / "root", tmp_path / "copy"
    root.mkdir()
    (root / "it.py").write_text("def least(a, b):\n    return a if a < b else b\n")
    test = "from it import least\ndef test_least():\n    assert least(1, 2) == 1\n"
    (root / "test_it.py").write_text(test)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    told = list(survivors([Path("it.py")], ["test_it.py"], root, copy))
    assert told == [None, "it.py:2: a < b  ->  (a <= b)"]
    assert (copy / "it.py").read_bytes() == (root / "it.py").read_bytes()
