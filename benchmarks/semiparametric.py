"""Semiparametric regression (P3): PDSG and MPD, whole and in working sets, on its test problem.

    python -m benchmarks.semiparametric [--figures FOLDER]

The modified Mexican hat, omega(x) = sin(x) + sinc(2 pi (x - 5)) with sinc(u) = sin(u) / u, x
uniform in [0, 10], noise N(0, 0.2^2); psi = (sin x, sinc(2 pi (x - 5))), gamma 0.25, epsilon 0.05,
C 1, working sets of 500 with 100 new ones, KKT violation 1e-3, all as in P3. Every time is the
least processor time of several runs that take turns, on one thread, after compilation.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks.machine import machine_line
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.semiparametric.basis import Basis, evaluate
from wolfstream.solver.semiparametric.decomposition import working_sets
from wolfstream.solver.semiparametric.dual import semiparametric_dual
from wolfstream.solver.semiparametric.outer_loop import OuterIteration, SolverName, solve, whole
from wolfstream.solver.semiparametric.problem import (
    Point,
    Problem,
    least_squares,
    semiparametric_problem,
)

KERNEL = Kernel("rbf", 0.25)
BASES = (Basis("sin"), Basis("sinc", centre=5.0, scale=2.0 * np.pi))
EPSILON, TOL, SIZE = 0.05, 1e-3, 500
M_MIDDLE = 1000
SIZES = (500, 1000, 2000, 4000, 8000, 12000, 16000)
COMPONENTS = (1, 2, 4, 6, 8, 12, 16, 20)
MAX_ITER = 200_000
CACHE_BYTES = 1 << 30
# MPD's penalty in units of the default one.
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
Float64Array = NDArray[np.float64]


class Variant(NamedTuple):
    """One of P3's four solvers."""

    name: str
    solver: SolverName
    decomposition: bool


VARIANTS = (
    Variant("PDSG", "pdsg", False),
    Variant("MPD", "mpd", False),
    Variant("D:PDSG", "pdsg", True),
    Variant("D:MPD", "mpd", True),
)


class Run(NamedTuple):
    """What a run took and where it ended."""

    seconds: float
    point: Point
    converged: bool


class Data(NamedTuple):
    """Rows, values and the matrix of the basis."""

    X: Float64Array
    y: Float64Array
    Psi: Float64Array


def main() -> None:
    """Measure, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=Path, default=Path(__file__).parent / "figures")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread\n", flush=True)
    with threadpoolctl.threadpool_limits(1):
        for variant in VARIANTS:
            run(mexican_hat(600), variant)
        by_size = training_sizes(arguments.sizes)
        steps_table()
        by_components = components()
        traces = convergence()
    draw(arguments.figures, arguments.sizes, by_size, by_components, traces)


def mexican_hat(M: int, seed: int = 0) -> Data:
    """P3's test problem."""
    random = np.random.default_rng(seed)
    X = random.uniform(0.0, 10.0, (M, 1))
    Psi = evaluate(BASES, X)
    return Data(X, Psi.sum(axis=1) + random.normal(0.0, 0.2, M), Psi)


def waves(M: int, K: int) -> Data:
    """Return the same values with P3's K other functions: cos(j pi x) for even j, sin for odd."""
    data, j = mexican_hat(M), np.arange(K)
    angle = j * np.pi * data.X
    return data._replace(Psi=np.where(j % 2 == 0, np.cos(angle), np.sin(angle)))


def problem_of(data: Data, C: float = 1.0, *, at_hand: bool = False) -> Problem:
    """at_hand: with all kernel rows computed."""
    rows = prepare_rows(KERNEL, data.X, data.X[0].copy(), np.dtype(np.float64))
    source = KernelRows(KERNEL, rows, CACHE_BYTES)
    if at_hand:
        source.fetch(np.arange(len(data.y)))
    return semiparametric_problem(semiparametric_dual(data.y, data.Psi, C, EPSILON), source)


def advance_of(problem: Problem, variant: Variant) -> OuterIteration:
    if variant.decomposition:
        size = min(SIZE, problem.source.n)
        return working_sets(problem, variant.solver, size, size // 5)
    return whole(problem, variant.solver)


def run(data: Data, variant: Variant) -> Run:
    """From rows to a certified solution, kernel values included."""
    start = time.process_time()
    one = solved(problem_of(data), variant, TOL)
    return one._replace(seconds=time.process_time() - start)


def solved(problem: Problem, variant: Variant, tol: float) -> Run:
    """From the least squares fit to a certified solution."""
    start = time.process_time()
    beta = least_squares(problem.dual)
    advance = advance_of(problem, variant)
    _, point, converged = solve(problem, advance, beta, tol, MAX_ITER, lambda _: None)
    return Run(time.process_time() - start, point, converged)


def best(tasks: Sequence[Callable[[], Run]], repeats: int) -> list[Run]:
    """Return the quickest run of each task; the tasks take turns."""
    rounds = [[task() for task in tasks] for _ in range(repeats)]
    return [min(runs, key=lambda one: one.seconds) for runs in zip(*rounds, strict=True)]


def training_sizes(sizes: Sequence[int]) -> list[list[Run]]:
    """Return all four solvers against M."""
    names = [variant.name for variant in VARIANTS]
    print("Time against M, kernel values included, in units of PDSG's; steps; beta of D:PDSG.\n")
    print(f"| M | PDSG, s | {' | '.join(names[1:])} | steps: {', '.join(names)} | beta |")
    print("| ---: | ---: | ---: | ---: | ---: | --- | --- |")
    table = []
    for M in sizes:
        data = mexican_hat(M)
        tasks = [partial(run, data, v) for v in VARIANTS]
        runs = best(tasks, 9 if M <= 2000 else 3 if M <= 8000 else 2)
        table.append(runs)
        ratios = " | ".join(f"{one.seconds / runs[0].seconds:.2f}" for one in runs[1:])
        steps = ", ".join(f"{one.point.steps}{'' if one.converged else '!'}" for one in runs)
        beta = ", ".join(f"{value:.3f}" for value in runs[2].point.beta)
        print(f"| {M:,} | {runs[0].seconds:.4f} | {ratios} | {steps} | {beta} |", flush=True)
    print()
    return table


def steps_table() -> None:
    """PDSG against MPD with the kernel matrix at hand, for MPD's best penalty and others."""
    print(
        f"M = {M_MIDDLE}, kernel matrix at hand: MPD's time in units of PDSG's, for MPD's penalty "
        "in units of the default; in brackets the steps in units of PDSG's. -: not after "
        f"{MAX_ITER:,} steps.\n"
    )
    print(f"| C | tol | PDSG, ms | steps | {' | '.join(f'x {f:g}' for f in PENALTIES)} |")
    print(f"| ---: | ---: | ---: | ---: |{' ---: |' * len(PENALTIES)}")
    data = mexican_hat(M_MIDDLE)
    for C in (1.0, 10.0, 100.0, 1000.0):
        for tol in (1e-3, 1e-5):
            problem = problem_of(data, C, at_hand=True)
            tasks = [lambda p=problem, t=tol: solved(p, VARIANTS[0], t)]
            for factor in PENALTIES:
                other = with_penalty(problem, factor)
                tasks.append(lambda p=other, t=tol: solved(p, VARIANTS[1], t))
            first, *others = best(tasks, 5)
            cells = [
                f"{one.seconds / first.seconds:.1f} ({one.point.steps / first.point.steps:.1f})"
                if one.converged
                else "-"
                for one in others
            ]
            print(
                f"| {C:g} | {tol:g} | {1e3 * first.seconds:.2f} | {first.point.steps} | "
                f"{' | '.join(cells)} |",
                flush=True,
            )
    print()


def with_penalty(problem: Problem, factor: float) -> Problem:
    """Return the problem with rho in other units."""
    rho = factor * problem.rho
    curvature = problem.curvature + (rho - problem.rho) @ (problem.Psi * problem.Psi)
    return problem._replace(rho=rho, curvature=curvature)


def components() -> list[list[Run]]:
    """Return all four solvers against K."""
    names = [variant.name for variant in VARIANTS]
    print(
        f"Time against K at M = {M_MIDDLE}, kernel values included, in units of D:PDSG's at K = 1;"
    )
    print("steps of D:PDSG.\n")
    print(f"| K | {' | '.join(names)} | steps |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    table: list[list[Run]] = []
    for K in COMPONENTS:
        data = waves(M_MIDDLE, K)
        table.append(best([partial(run, data, v) for v in VARIANTS], 7))
        unit = table[0][2].seconds
        ratios = " | ".join(f"{one.seconds / unit:.2f}" for one in table[-1])
        print(f"| {K} | {ratios} | {table[-1][2].point.steps} |", flush=True)
    print()
    return table


def convergence() -> list[tuple[Float64Array, list[Point]]]:
    """Processor time and points of PDSG and MPD from beta = 0, kernel matrix at hand."""
    problem = problem_of(mexican_hat(M_MIDDLE), at_hand=True)
    traces = []
    print(f"From beta = 0 at M = {M_MIDDLE} to a KKT violation of {TOL}, kernel matrix at hand.\n")
    print("| solver | time, in units of PDSG's | steps | beta |")
    print("| --- | ---: | ---: | --- |")
    for variant in VARIANTS[:2]:
        best_times: Float64Array | None = None
        for _ in range(5):
            points, seconds = _followed(problem, variant)
            best_times = seconds if best_times is None else np.minimum(best_times, seconds)
        assert best_times is not None
        traces.append((best_times, points))
        share = best_times[-1] / traces[0][0][-1]
        beta = ", ".join(f"{value:.3f}" for value in points[-1].beta)
        print(f"| {variant.name} | {share:.2f} | {points[-1].steps} | {beta} |", flush=True)
    print()
    return traces


def _followed(problem: Problem, variant: Variant) -> tuple[list[Point], Float64Array]:
    points: list[Point] = []
    seconds: list[float] = []

    def observe(point: Point) -> None:
        points.append(point)
        seconds.append(time.process_time())

    advance = whole(problem, variant.solver, 20)
    solve(problem, advance, np.zeros(2), TOL, MAX_ITER, observe)
    return points, np.array(seconds) - seconds[0]


def draw(
    folder: Path,
    sizes: Sequence[int],
    by_size: list[list[Run]],
    by_components: list[list[Run]],
    traces: list[tuple[Float64Array, list[Point]]],
) -> None:
    """P3's three figures."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "wolfstream"
    mpl.rcParams["svg.fonttype"] = "none"
    folder.mkdir(exist_ok=True)

    def save(name: str) -> None:
        plt.tight_layout()
        plt.savefig(folder / f"semiparametric-{name}.svg", metadata={"Date": None})
        plt.close()

    for name, label, xs, table in (
        ("size", "training rows M", sizes, by_size),
        ("components", "basis functions K", COMPONENTS, by_components),
    ):
        plt.figure(figsize=(5, 3.5))
        unit = table[0][0].seconds
        for column, variant in enumerate(VARIANTS):
            plt.plot(xs, [runs[column].seconds / unit for runs in table], "o-", label=variant.name)
        if name == "size":
            plt.xscale("log")
            plt.yscale("log")
        plt.xlabel(label)
        plt.ylabel("time / PDSG's first")
        plt.legend()
        save(name)
    unit = traces[0][0][-1]
    figure, axes = plt.subplots(3, 1, figsize=(5, 7), sharex=True)
    for (seconds, points), variant in zip(traces, VARIANTS, strict=False):
        when = seconds / unit
        axes[0].semilogy(when, [point.dual_infeasibility for point in points], label=variant.name)
        share = np.array([point.equality_violation for point in points])
        axes[1].semilogy(when[1:], np.maximum(share[1:], 1e-6), label=variant.name)
        axes[2].plot(when, [point.beta[0] for point in points], label=variant.name)
    titles = ("dual infeasibility", "equality violation", "first coefficient")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_ylabel(title)
    axes[0].legend()
    axes[2].set_xlabel("time / PDSG's")
    figure.align_ylabels()
    save("convergence")


if __name__ == "__main__":
    main()
