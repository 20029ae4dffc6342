"""P5's Figures 1 and 2: test error by the number of features, and against time with many of them.

    python -m benchmarks p5_figure_1
    python -m benchmarks p5_figure_2

Figure 1 has ASSET on s Nystrom features, s = 2, 4, ..., 1024, after as many passes as in
`benchmarks.asset` (P5: 1,000). Figure 2 has ASSET and ASSET* on Fourier features in one pass; P5's
million rows of MNIST-E are not here, so the rows are mnist's, with P5's lambda of MNIST-E. Seconds
are those of the processor, one thread. Both figures are drawn of what is kept.
"""

import time
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from sklearn.utils import check_random_state

from benchmarks import harness
from benchmarks.asset import load
from benchmarks.asset_contenders import CHUNK, error_of, in_chunks
from benchmarks.asset_problems import P5_PROBLEMS, SEED, P5Problem, Split
from benchmarks.drawing import new_figure, save
from benchmarks.harness import Study
from benchmarks.results import Figures, Results, markdown
from wolfstream.solver.asset.features import transform
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.nystrom import BATCH_EIGENVALUE_CUT
from wolfstream.solver.kernels.functions import Kernel

FIGURE = Path(__file__).parent / "figures" / "asset-dimensions.svg"
DIMENSIONS = tuple(2**k for k in range(1, 11))
# Of Figure 2: dimensions, P5's lambda of MNIST-E, and looks at the test error in the pass.
FOURIER, FOURIER_LAMBDA, LOOKS = (1024, 4096, 16_384), 1e-8, 10
Algorithm = Literal["asset", "asset*"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
# P5 Table 3, test error % of SVM-Light, to which the curves of Figure 1 tend.
SVM_LIGHT = {"a9a": 15.1, "ijcnn1": 0.7, "mnist": 1.2, "covtype": 13.8}


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


def progress(split: Split, s: int) -> Figures:
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
    return {"seconds": seconds, "error": error}


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


def error_table(kept: Results) -> str:
    """Return Figure 1 as a table, P5's ends beside it."""
    heads = ["set", *(str(s) for s in DIMENSIONS), "P5: 512, 1024", "SVM-Light"]
    rows = []
    for name, exact in SVM_LIGHT.items():
        of = [kept.of(str(s), name) for s in DIMENSIONS]
        cells = [f"{figures[0]['error']:.1f}" if figures else "" for figures in of]
        paper = P5_PROBLEMS[name].paper.error
        rows.append([name, *cells, f"{paper[512]}, {paper[1024]}", f"{exact}"])
    return markdown(heads, rows)


def progress_table(kept: Results) -> str:
    """Return the test error after three tenths of the pass, and at its end."""
    heads = ["features", *(f"{a.upper()}: {at}" for a in ALGORITHMS for at in ("3/10", "end")), "s"]
    rows = []
    for s in kept.contenders:
        (figures,) = kept.of(s, "mnist")
        cells = [f"{error[at]:.2f}" for error in figures["error"] for at in (2, -1)]
        rows.append([s, *cells, f"{figures['seconds'][0][-1]:.0f}"])
    return markdown([head.replace("*", "\\*") for head in heads], rows)


def draw(_: Results) -> None:
    """Draw both figures."""
    first, second = (harness.read(study, name) for name, study in STUDIES.items())
    figure, (left, right) = new_figure(2)
    for name in first.data:
        errors = [(int(s), of[0]["error"]) for s in first.contenders if (of := first.of(s, name))]
        left.plot(*zip(*errors, strict=True), marker=".", label=name)
    left.set(xlabel="Nystrom features", ylabel="test error %")
    left.set_xscale("log", base=2)
    left.legend(fontsize="small")
    for s in second.contenders:
        (figures,) = second.of(s, "mnist")
        curves = zip(ALGORITHMS, figures["seconds"], figures["error"], strict=True)
        for algorithm, seconds, error in curves:
            style = "-" if algorithm == "asset" else ":"
            right.plot(seconds, error, style, marker=".", label=f"{algorithm.upper()}, {s}")
    right.set(xscale="log", xlabel="CPU seconds", title="mnist, Fourier features, one pass")
    right.legend(fontsize="small")
    save(figure, FIGURE)


STUDIES = {
    "p5_figure_1": Study(
        {str(s): s for s in DIMENSIONS},
        {name: partial(load, name, 0) for name in SVM_LIGHT},
        lambda s, given, _: {"error": nystrom_error(given.split, given.problem, s)},
        error_table,
        draw=draw,
    ),
    "p5_figure_2": Study(
        {f"{s:,}": s for s in FOURIER},
        {"mnist": partial(load, "mnist", 0)},
        lambda s, given, _: progress(given.split, s),
        progress_table,
        draw=draw,
    ),
}
