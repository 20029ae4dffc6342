"""The one harness of the benchmarks: contender x data x seed -> kept results -> table.

A study is plain data and functions. Its contenders take turns on each set of data, seed by seed, so
that all see the machine as it is; each result is kept as soon as it is there, and what is kept is
not measured again unless asked for.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from benchmarks import results
from benchmarks.datasets import MissingSet
from benchmarks.machine import facts
from benchmarks.results import Figures, Result, Results

_SHOWN = 150  # letters of a progress line
# What is not here is said, and no result; a process of its own ends with the status.
LEFT_OUT, _LEFT_OUT_STATUS = (MissingSet, ModuleNotFoundError), 3


class Options(NamedTuple):
    """What a run is asked for.

    folder: of the data sets.
    rows: a bound on the size of the data, whatever that is; None for all of it.
    limit: seconds of the processor that a contender may take, or None.
    """

    folder: Path
    rows: int | None = None
    seed: int = 0
    limit: float | None = None


class Study(NamedTuple):
    """What is compared, on what, and by which figures.

    contenders: by name, anything that `measure` takes.
    data: by name, a loader; what it returns may be a context manager, which is entered.
    measure: returns figures, or yields them as they come to be known, the last the fullest.
    table: makes Markdown of the kept results.
    seeds: of the data.
    rounds: whether seeds are rounds on data that are loaded once.
    apart: whether each contender runs in a process of its own, which its limit ends.
    takes: whether a contender is run on a set of data.
    draw: makes figures of the kept results.
    page: which has the table.
    """

    contenders: Mapping[str, Any]
    data: Mapping[str, Callable[[Options], Any]]
    measure: Callable[[Any, Any, Options], Figures | Iterator[Figures]]
    table: Callable[[Results], str]
    seeds: Sequence[int] = (0,)
    rounds: bool = False
    apart: bool = False
    limit: float | None = None
    takes: Callable[[str, str], bool] = lambda contender, data: True  # noqa: ARG005
    draw: Callable[[Results], object] = lambda kept: None  # noqa: ARG005
    page: Path = results.PAGE


class RunRequest(NamedTuple):
    """The arguments of a run; only: contenders and sets of data whose pair has this text."""

    name: str
    options: Options
    seeds: Sequence[int]
    only: str = ""
    again: bool = False
    folder: Path = results.FOLDER


def run(study: Study, request: RunRequest) -> Results:
    """Measure what is not kept yet, and return all that is kept."""
    kept = {result.key for result in results.read(request.name, request.folder)}
    for data in study.data:
        for seeds in [request.seeds] if study.rounds else [[seed] for seed in request.seeds]:
            wanted = [
                (seed, contender)
                for seed in seeds
                for contender in study.contenders
                if request.only in f"{contender} on {data}" and study.takes(contender, data)
                if request.again or (contender, data, seed, request.options.rows) not in kept
            ]
            if wanted:
                try:
                    _run_on(study, data, wanted, request)
                except LEFT_OUT as missing:
                    print(f"{data} is left out: {missing}", flush=True)
    return read(study, request.name, request.options.rows, request.folder)


def _run_on(
    study: Study, data: str, wanted: Sequence[tuple[int, str]], request: RunRequest
) -> None:
    """Measure contenders on a set of data, and keep each result."""
    limit = study.limit if request.options.limit is None else request.options.limit
    options = request.options._replace(seed=wanted[0][0], limit=limit)
    with nullcontext() if study.apart else _entered(study.data[data](options)) as loaded:
        for seed, name in wanted:
            options = options._replace(seed=seed)
            try:
                if study.apart:
                    figures = _apart(request.name, data, name, options)
                else:
                    figures = _last(study.measure(study.contenders[name], loaded, options))
            except LEFT_OUT as missing:
                print(f"{name} on {data} is left out: {missing}", flush=True)
                continue
            print(f"{name} on {data}, {seed}: {figures}"[:_SHOWN], flush=True)
            result = Result(name, data, seed, options.rows, figures, facts())
            results.keep(request.name, result, request.folder)


def _entered(loaded: Any) -> AbstractContextManager[Any]:
    return loaded if isinstance(loaded, AbstractContextManager) else nullcontext(loaded)


def _last(figures: Figures | Iterator[Figures]) -> Figures:
    if isinstance(figures, dict):
        return figures
    *_, last = figures
    return last


def _apart(study: str, data: str, contender: str, options: Options) -> Figures:
    """Measure in a Python process of its own, on one thread, to its end or to its limit.

    The limit is in seconds of the processor, as all figures are: other programs take nothing of it.
    """
    command = [sys.executable, "-m", "benchmarks", study, "--one", data, contender]
    command += ["--data", str(options.folder), "--seeds", str(options.seed)]
    command += [] if options.rows is None else ["--rows", str(options.rows)]
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | one_thread,
    )
    if options.limit is not None:
        limit = int(options.limit)
        # The soft limit would end it with a core file; the hard one kills it.
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit + 1))
    output, errors = process.communicate()
    lines = [json.loads(line) for line in output.splitlines() if line.endswith("}")]
    figures: Figures = lines[-1] if lines else {}
    if process.returncode == -signal.SIGXCPU:
        return figures | {"instead": f"> {options.limit:.0f} s"}
    if process.returncode == _LEFT_OUT_STATUS:
        raise MissingSet(errors.strip())
    if process.returncode:
        printed = errors.strip().splitlines() or [f"status {process.returncode}"]
        return figures | {"instead": f"failed: {printed[-1]}"}
    return figures


def run_one(study: Study, pair: tuple[str, str], options: Options) -> None:
    """Measure a contender on data in this process, and print figures as lines of JSON."""
    data, contender = pair
    try:
        with _entered(study.data[data](options)) as loaded:
            figures = study.measure(study.contenders[contender], loaded, options)
            for each in [figures] if isinstance(figures, dict) else figures:
                print(json.dumps(each), flush=True)
    except LEFT_OUT as missing:
        print(missing, file=sys.stderr)
        raise SystemExit(_LEFT_OUT_STATUS) from None


def read(
    study: Study, name: str, rows: int | None = None, folder: Path = results.FOLDER
) -> Results:
    """Return the kept results for a bound on the data's size, in the study's order.

    Contenders that are in the results alone, as earlier versions, come first.
    """
    contenders, sets = list(study.contenders), list(study.data)

    def place(result: Result) -> tuple[int, int]:
        return (
            sets.index(result.data) if result.data in sets else -1,
            contenders.index(result.contender) if result.contender in contenders else -1,
        )

    chosen = [result for result in results.read(name, folder) if result.rows == rows]
    ordered = Results(sorted(chosen, key=place))
    ordered.contenders.sort(key=lambda name: contenders.index(name) if name in contenders else -1)
    return ordered


def one_thread() -> AbstractContextManager[object]:
    """Let numerics have one thread, and say nothing of numbers that overflow."""
    np.seterr(all="ignore")
    limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1)
    return limits
