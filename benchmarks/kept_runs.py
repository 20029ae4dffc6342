"""Runs of contenders that are kept in a file of JSON lines, so that none is run twice."""

import json
from pathlib import Path
from typing import NamedTuple

from benchmarks.contest import enter


class Run(NamedTuple):
    """What came of one contender on one problem.

    seconds: of the processor, to learn. accuracy: in % of the rows to test. support: vectors.
    instead: of the figures, where the run did not end.
    """

    contender: str
    problem: str
    seconds: float
    accuracy: float
    support: int
    peak_bytes: int
    instead: str = ""


class KeptRuns:
    """The runs in a file, which is made with the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        runs = [Run(**json.loads(line)) for line in lines]
        self._runs = {(one.contender, one.problem): one for one in runs}

    @property
    def stopped(self) -> set[str]:
        """The contenders of which a run did not end."""
        return {one.contender for one in self._runs.values() if one.instead}

    def get(self, contender: str, problem: str) -> Run | None:
        """Return a run that is kept."""
        return self._runs.get((contender, problem))

    def enter(self, contender: str, problem: str, data: Path, limit_seconds: int) -> Run:
        """Return the run that is kept, or run it now, in a process of its own, and keep it."""
        kept = self.get(contender, problem)
        if kept is None:
            kept = self._runs[contender, problem] = _run(contender, problem, data, limit_seconds)
            with self._path.open("a") as file:
                file.write(json.dumps(kept._asdict()) + "\n")
        return kept


def _run(contender: str, problem: str, data: Path, limit_seconds: int) -> Run:
    said = enter("contenders", problem, contender, "--data", data, limit_seconds=limit_seconds)
    found = json.loads(said.lines[-1]) if said.lines else {}
    if found.get("accuracy") is None:
        return Run(contender, problem, 0.0, 0.0, 0, 0, said.instead or "no figures")
    fitted = found["fit_seconds"], 100.0 * found["accuracy"], found["support"]
    return Run(contender, problem, *fitted, found["peak_bytes"])
