"""Semiparametric regression (P3): PDSG and MPD, whole and in working sets, on its test problem.

    python -m benchmarks semiparametric    time against the number of samples M
    python -m benchmarks components        time against the number of basis functions K
    python -m benchmarks penalties         MPD's penalties, and C, with the kernel matrix at hand
    python -m benchmarks convergence       PDSG and MPD from beta = 0, step by step

The modified Mexican hat, omega(x) = sin(x) + sinc(2 pi (x - 5)) with sinc(u) = sin(u) / u, x
uniform in [0, 10], noise N(0, 0.2^2); psi = (sin x, sinc(2 pi (x - 5))), gamma 0.25, epsilon 0.05,
C 1, working sets of 500 with 100 new ones, KKT violation 1e-3, all as in P3. Seconds are the
processor's, and the least of the rounds counts.
"""

import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.drawing import new_figure, save
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, markdown
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

FIGURES = Path(__file__).parent / "figures"
KERNEL = Kernel("rbf", 0.25)
BASES = (Basis("sin"), Basis("sinc", centre=5.0, scale=2.0 * np.pi))
EPSILON, TOL, SIZE = 0.05, 1e-3, 500
M_MIDDLE, WARM = 1000, 600
SIZES = (500, 1000, 2000, 4000, 8000, 12_000, 16_000)
COMPONENTS = (1, 2, 4, 6, 8, 12, 16, 20)
MAX_ITER = 200_000
CACHE_BYTES = 1 << 30
# MPD's penalty in units of the default one.
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
Float64Array = NDArray[np.float64]


class Variant(NamedTuple):
    """One of P3's four solvers; a penalty in units of the default one."""

    solver: SolverName
    decomposition: bool = False
    penalty: float = 1.0


VARIANTS = {
    "PDSG": Variant("pdsg"),
    "MPD": Variant("mpd"),
    "D:PDSG": Variant("pdsg", True),
    "D:MPD": Variant("mpd", True),
}


class Data(NamedTuple):
    """Rows, values and the matrix of the basis."""

    X: Float64Array
    y: Float64Array
    Psi: Float64Array


def mexican_hat(M: int, options: Options) -> Data:
    """P3's test problem."""
    random = np.random.default_rng(0)
    X = random.uniform(0.0, 10.0, (min(M, options.rows or M), 1))
    Psi = evaluate(BASES, X)
    return Data(X, Psi.sum(axis=1) + random.normal(0.0, 0.2, len(X)), Psi)


def waves(K: int, options: Options) -> Data:
    """Return the same values with P3's K other functions: cos(j pi x) for even j, sin for odd."""
    data, j = mexican_hat(M_MIDDLE, options), np.arange(K)
    angle = j * np.pi * data.X
    return data._replace(Psi=np.where(j % 2 == 0, np.cos(angle), np.sin(angle)))


def problem_of(data: Data, C: float = 1.0) -> Problem:
    """Return the problem of some data."""
    rows = prepare_rows(KERNEL, data.X, data.X[0].copy(), np.dtype(np.float64))
    source = KernelRows(KERNEL, rows, CACHE_BYTES)
    return semiparametric_problem(semiparametric_dual(data.y, data.Psi, C, EPSILON), source)


def at_hand(C: float, options: Options) -> Problem:
    """Return the problem of 1,000 samples with all kernel values computed."""
    problem = problem_of(mexican_hat(M_MIDDLE, options), C)
    problem.source.fetch(np.arange(problem.source.n))
    return problem


def certified(C: float, tol: float, options: Options) -> tuple[Problem, float]:
    """Return a problem, and the violation to end at."""
    return at_hand(C, options), tol


def measure(variant: Variant, data: Data, options: Options) -> Figures:
    """From rows to a certified solution, kernel values included."""
    solved(variant, problem_of(mexican_hat(WARM, Options(Path()))), TOL)  # compiles
    del options
    start = time.process_time()
    figures = solved(variant, problem_of(data), TOL)
    return figures | {"seconds": time.process_time() - start}


def solved(variant: Variant, problem: Problem, tol: float) -> Figures:
    """From the least squares fit to a certified solution."""
    if variant.penalty != 1.0:
        rho = variant.penalty * problem.rho
        curvature = problem.curvature + (rho - problem.rho) @ (problem.Psi * problem.Psi)
        problem = problem._replace(rho=rho, curvature=curvature)
    start = time.process_time()
    beta, advance = least_squares(problem.dual), _advance_of(problem, variant)
    _, point, converged = solve(problem, advance, beta, tol, MAX_ITER, lambda _: None)
    figures: Figures = {"seconds": time.process_time() - start, "steps": int(point.steps)}
    figures["beta"] = [float(value) for value in point.beta]
    return figures if converged else figures | {"instead": f"not after {MAX_ITER:,} steps"}


def _advance_of(problem: Problem, variant: Variant) -> OuterIteration:
    if variant.decomposition:
        size = min(SIZE, problem.source.n)
        return working_sets(problem, variant.solver, size, size // 5)
    return whole(problem, variant.solver)


def follow(variant: Variant, problem: Problem, _: Options) -> Figures:
    """Return seconds and points from beta = 0 to the end, every 20 steps, kernel values at hand."""
    points, seconds = list[Point](), list[float]()

    def observe(point: Point) -> None:
        points.append(point)
        seconds.append(time.process_time())

    solve(problem, whole(problem, variant.solver, 20), np.zeros(2), TOL, MAX_ITER, observe)
    return {
        "at": [second - seconds[0] for second in seconds],
        "seconds": seconds[-1] - seconds[0],
        "steps": int(points[-1].steps),
        "dual infeasibility": [float(point.dual_infeasibility) for point in points],
        "equality violation": [float(point.equality_violation) for point in points],
        "first coefficient": [float(point.beta[0]) for point in points],
    }


def convergence_table(kept: Results) -> str:
    """Return the time of both in units of PDSG's, steps, and the first coefficient at the end."""
    rows = []
    unit = least(kept.of("PDSG", kept.data[0]))
    for name in kept.contenders:
        figures = kept.of(name, kept.data[0])
        last = figures[0]["first coefficient"][-1]
        share = f"{least(figures) / unit:.2f}"
        rows.append([name, share, f"{figures[0]['steps']}", f"{last:.3f}"])
    return markdown(["solver", "time", "steps", "first coefficient"], rows)


def draw_convergence(kept: Results) -> None:
    """Draw P3's figure of both: how far each point is from the end."""
    names = ("dual infeasibility", "equality violation", "first coefficient")
    figure, panels = new_figure(3)
    unit = least(kept.of("PDSG", kept.data[0]))
    for contender in kept.contenders:
        quickest = min(kept.of(contender, kept.data[0]), key=lambda each: each["seconds"])
        for panel, name in zip(panels, names, strict=True):
            when = np.array(quickest["at"]) / unit
            panel.plot(when[1:], np.maximum(quickest[name][1:], 1e-6), label=contender)
            panel.set(xlabel="time / PDSG's", ylabel=name)
    for panel in panels[:2]:
        panel.set_yscale("log")
    panels[0].legend()
    save(figure, FIGURES / "semiparametric-convergence.svg")


def least(figures: list[Figures]) -> float:
    """Return the seconds of the quickest round."""
    return float(min(each["seconds"] for each in figures))


def table(kept: Results) -> str:
    """Return seconds of PDSG, and of the others in its units."""
    first, *others = kept.contenders
    rows = []
    for data in kept.data:
        unit = least(kept.of(first, data))
        ratios = [f"{least(kept.of(name, data)) / unit:.2f}" for name in others]
        rows.append([data, f"{unit:.4f}", *ratios])
    return markdown(["", f"{first}, s", *others], rows)


def penalties_table(kept: Results) -> str:
    """Return MPD's time in units of PDSG's, and its steps in brackets."""
    first, *others = kept.contenders
    rows = []
    for data in kept.data:
        unit, cells = kept.of(first, data), [data]
        for name in others:
            of = kept.of(name, data)
            steps = of[0]["steps"] / unit[0]["steps"]
            ended = "instead" not in of[0]
            cells.append(f"{least(of) / least(unit):.1f} ({steps:.1f})" if ended else "-")
        rows.append(cells)
    return markdown(["C, tol", *others], rows)


def draw(name: str, label: str, kept: Results) -> None:
    """Draw time against the size of the problem, in units of PDSG's first."""
    figure, (panel,) = new_figure(1, 5.0, 3.5)
    unit = least(kept.of("PDSG", kept.data[0]))
    xs = [int(data.rpartition(" ")[2].replace(",", "")) for data in kept.data]
    for variant in kept.contenders:
        seconds = [least(kept.of(variant, data)) / unit for data in kept.data]
        panel.plot(xs, seconds, "o-", label=variant)
    if name == "size":
        panel.set(xscale="log", yscale="log")
    panel.set(xlabel=label, ylabel="time / PDSG's first")
    panel.legend()
    save(figure, FIGURES / f"semiparametric-{name}.svg")


STUDIES = {
    "semiparametric": Study(
        VARIANTS,
        {f"M = {M:,}": partial(mexican_hat, M) for M in SIZES},
        measure,
        table,
        seeds=range(5),
        rounds=True,
        draw=partial(draw, "size", "training rows M"),
    ),
    "components": Study(
        VARIANTS,
        {f"K = {K}": partial(waves, K) for K in COMPONENTS},
        measure,
        table,
        seeds=range(5),
        rounds=True,
        draw=partial(draw, "components", "basis functions K"),
    ),
    "convergence": Study(
        {name: VARIANTS[name] for name in ("PDSG", "MPD")},
        {"M = 1,000": partial(at_hand, 1.0)},
        follow,
        convergence_table,
        seeds=range(5),
        rounds=True,
        draw=draw_convergence,
    ),
    "penalties": Study(
        {"PDSG": VARIANTS["PDSG"]}
        | {f"x {factor:g}": Variant("mpd", penalty=factor) for factor in PENALTIES},
        {
            f"{C:g}, {tol:g}": partial(certified, C, tol)
            for C in (1.0, 10.0, 100.0, 1000.0)
            for tol in (1e-3, 1e-5)
        },
        lambda variant, given, _: solved(variant, *given),
        penalties_table,
        seeds=range(5),
        rounds=True,
    ),
}
