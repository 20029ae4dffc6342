"""P5's Figures 1 and 2: test error by the number of features, and against time with many of them.

    python -m benchmarks.asset_dimensions --data FOLDER [--write benchmarks/README.md]

Figure 1 has ASSET on s Nystrom features, s = 2, 4, ..., 1024, after as many passes as in
`benchmarks.asset` (P5: 1,000).
Figure 2 has ASSET and ASSET* on Fourier features in one pass; P5's million rows of MNIST-E are not
here, so the rows are mnist's, with P5's lambda of MNIST-E. Seconds are those of the processor, one
thread. Results are kept in `benchmarks/results/asset_dimensions.jsonl`; both figures are drawn of
them, and `--write` makes the page's tables. Error against time on Nystrom features, beside peers,
is in the figures of `python -m benchmarks.asset`.
"""

import argparse
import time
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import threadpoolctl
from matplotlib.figure import Figure
from sklearn.utils import check_random_state

from benchmarks import kept_tables
from benchmarks.asset_contenders import CHUNK, error_of, in_chunks
from benchmarks.asset_problems import P5_PROBLEMS, SEED, P5Problem, Split, load_split
from benchmarks.datasets import MissingSet
from benchmarks.machine import machine_line
from wolfstream.solver.asset.features import transform
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.nystrom import BATCH_EIGENVALUE_CUT
from wolfstream.solver.kernels.functions import Kernel

RESULTS, MARK = "asset_dimensions.jsonl", "P5 Figures 1 and 2"
FIGURES = Path(__file__).parent / "figures"
DIMENSIONS = tuple(2**k for k in range(1, 11))
# Of Figure 2: dimensions, P5's lambda of MNIST-E, and looks at the test error in the pass.
FOURIER, FOURIER_LAMBDA, LOOKS = (1024, 4096, 16_384), 1e-8, 10
Algorithm = Literal["asset", "asset*"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
# P5 Table 3, test error % of SVM-Light, to which the curves of Figure 1 tend.
SVM_LIGHT = {"a9a": 15.1, "ijcnn1": 0.7, "mnist": 1.2, "covtype": 13.8}
Line = dict[str, Any]


def main() -> None:
    """Measure, keep, draw and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="*", choices=SVM_LIGHT, default=list(SVM_LIGHT))
    parser.add_argument("--fourier", nargs="*", type=int, choices=FOURIER, default=FOURIER)
    parser.add_argument("--write", type=Path, help="a page to write the tables into")
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread\n", flush=True)
    with threadpoolctl.threadpool_limits(1):
        try:
            for name in arguments.sets:
                split, problem = load_split(arguments.data, name), P5_PROBLEMS[name]
                for s in DIMENSIONS:
                    line = {"figure": 1, "set": name, "s": s}
                    keep(line | {"error": nystrom_error(split, problem, s)})
            for s in arguments.fourier:
                split = load_split(arguments.data, "mnist")
                keep({"figure": 2, "set": "mnist", "s": s} | progress(split, s))
        except MissingSet as missing:
            raise SystemExit(str(missing)) from None
    lines = kept_tables.read(RESULTS)
    print(f"\n{tables(lines)}")
    draw(lines)
    if arguments.write:
        page = arguments.write.read_text()
        arguments.write.write_text(written(page))


def keep(line: Line) -> None:
    """Print and keep a line."""
    print(line, flush=True)
    kept_tables.keep(RESULTS, ("figure", "set", "s"), line)


def nystrom_error(split: Split, problem: P5Problem, s: int) -> float:
    """Test error % of ASSET on s Nystrom features after all passes."""
    kernel = Kernel("rbf", problem.gamma)
    asset = Asset(kernel, features="nystrom", dimension=s, lam=problem.lam, seed=SEED)
    landmarks = check_random_state(SEED).permutation(len(split.y))[:s]
    asset.begin(split.X[landmarks], split.y[landmarks], BATCH_EIGENVALUE_CUT)
    features = asset.view().features
    V = in_chunks(lambda X: transform(features, X), split.X)
    for _ in range(problem.epochs):
        for first in range(0, len(V), CHUNK):
            asset.step(V[first : first + CHUNK], None, split.y[first : first + CHUNK])
    view = asset.view()
    tested = in_chunks(lambda X: transform(features, X), split.X_test)
    return error_of(tested @ view.gamma[1] + view.b[1], split)


def progress(split: Split, s: int) -> Line:
    """Seconds and test errors of both algorithms in a pass, tenth by tenth.

    Both learn from the same features, whose seconds are charged to each.
    """
    learners = [fourier_learner(algorithm, split, s) for algorithm in ALGORITHMS]
    features = learners[0].view().features
    tested = in_chunks(lambda X: transform(features, X), split.X_test)
    error: list[list[float]] = [[], []]
    seconds: list[list[float]] = [[], []]
    spent = [0.0, 0.0]
    chunk = max(1, CHUNK // (s // FOURIER[0]))
    for part in np.array_split(np.arange(len(split.y)), LOOKS):
        for first in range(0, len(part), chunk):
            rows = part[first : first + chunk]
            start = time.process_time()
            V = transform(features, split.X[rows])
            shared = time.process_time() - start
            for i, learner in enumerate(learners):
                start = time.process_time()
                learner.step(V, None, split.y[rows])
                spent[i] += shared + time.process_time() - start
        for i, learner in enumerate(learners):
            view = learner.view()
            error[i].append(error_of(tested @ view.gamma[1] + view.b[1], split))
            seconds[i].append(spent[i])
    return {"algorithms": ALGORITHMS, "seconds": seconds, "error": error}


def fourier_learner(algorithm: Algorithm, split: Split, s: int) -> Asset:
    """Return a learner that has its features and has learned nothing."""
    gamma = P5_PROBLEMS["mnist"].gamma
    learner = Asset(
        Kernel("rbf", gamma),
        algorithm=algorithm,
        features="fourier",
        dimension=s,
        lam=FOURIER_LAMBDA,
        seed=SEED,
    )
    learner.begin(split.X[:s], split.y[:s])
    return learner


def tables(lines: list[Line]) -> str:
    """Return Figure 1 as a table, and the ends of Figure 2."""
    by_run = {(line["set"], line["s"]): line["error"] for line in lines if line["figure"] == 1}
    heads = ["set", *(str(s) for s in DIMENSIONS), "P5: 512, 1024", "SVM-Light"]
    rows = []
    for name, exact in SVM_LIGHT.items():
        errors = [by_run.get((name, s)) for s in DIMENSIONS]
        cells = ["" if error is None else f"{error:.1f}" for error in errors]
        paper = P5_PROBLEMS[name].paper.error
        rows.append([name, *cells, f"{paper[512]}, {paper[1024]}", f"{exact}"])
    first = kept_tables.markdown(heads, rows)
    heads = ["features", *(f"{a.upper()}: {at}" for a in ALGORITHMS for at in ("3/10", "end")), "s"]
    heads = [head.replace("*", "\\*") for head in heads]
    rows = []
    for line in (line for line in lines if line["figure"] == 2):
        cells = [f"{error[at]:.2f}" for error in line["error"] for at in (2, -1)]
        rows.append([f"{line['s']:,}", *cells, f"{line['seconds'][0][-1]:.0f}"])
    return f"{first}\n\n{kept_tables.markdown(heads, rows)}"


def written(page: str) -> str:
    """Return a page with the tables of what is kept."""
    return kept_tables.written(page, MARK, tables(kept_tables.read(RESULTS)))


def draw(lines: list[Line]) -> None:
    """Draw both figures."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name in SVM_LIGHT:
        of = sorted(
            (line["s"], line["error"])
            for line in lines
            if line["figure"] == 1 and line["set"] == name
        )
        if of:
            left.plot(*zip(*of, strict=True), marker=".", label=name)
    left.set(xlabel="Nystrom features", ylabel="test error %")
    left.set_xscale("log", base=2)
    left.legend(fontsize="small")
    for line in (line for line in lines if line["figure"] == 2):
        for algorithm, seconds, error in zip(
            line["algorithms"], line["seconds"], line["error"], strict=True
        ):
            style = "-" if algorithm == "asset" else ":"
            label = f"{algorithm.upper()}, {line['s']:,}"
            right.plot(seconds, error, style, marker=".", label=label)
    right.set(xscale="log", xlabel="CPU seconds", title="mnist, Fourier features, one pass")
    right.legend(fontsize="small")
    figure.savefig(FIGURES / "asset-dimensions.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
