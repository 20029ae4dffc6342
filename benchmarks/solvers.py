"""wolfstream's solvers beside LIBSVM and other peers on the papers' sets.

    python -m benchmarks solvers          all contenders, 200 s each
    python -m benchmarks batch_solvers    every batch solver with its defaults
    python -m benchmarks growing          one pass and LIBSVM on more and more rows of covtype

A process and one thread each, rows in the same order. Seconds are those of the processor, so that
other programs disturb them less. C is P1's, Table 2: of the squared hinge for wolfstream and plain
Algorithm 1, of the hinge for the others. Nystroem's support vectors are its features. The peak is
the most resident memory while learning and predicting, above what was there with the data loaded.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import solver_contenders as by
from benchmarks.datasets import Dataset
from benchmarks.drawing import new_figure, save
from benchmarks.harness import Options, Study
from benchmarks.papers import DEFAULT, GROWING, PROBLEMS, Parameters, load_problem
from benchmarks.results import Figures, Results, crossed, listed, mean

LIBSVM, CACHED = "LIBSVM", "LIBSVM, a cache of 4 GB"


class Contender(NamedTuple):
    """What learns, and what it can take."""

    fit: by.Learning
    many_classes: bool = True
    sparse: bool = True


ONLINE = Contender(by.online(5_000))
SWAP = Contender(by.batch("swap"))
CONTENDERS = {
    "**online**": ONLINE,
    "**online, 10,000**": Contender(by.online(10_000)),
    # Of all of covtype, which is too large for the others: 3.6 GB of kernel values.
    "**online, 30,000**": Contender(by.online(30_000)),
    "**SWAP**": SWAP,
    "plain Algorithm 1": Contender(by.plain, False, False),
    LIBSVM: Contender(by.libsvm(200 << 20)),
    "Vowpal Wabbit": Contender(by.vowpal_wabbit, False),
    "Nystroem + SGD": Contender(by.nystroem),
    "LIBSVM, squared hinge": Contender(by.squared_hinge_smo, False, False),
    "kernel SGD (Pegasos), one pass": Contender(by.kernel_sgd, False, False),
    "linear SGD": Contender(by.linear_sgd),
    "Pegasos, linear, 5 passes": Contender(by.pegasos),
}
BATCH = {
    "FW": Contender(by.batch("fw")),
    "MFW": Contender(by.batch("mfw")),
    "SWAP": SWAP,
    "PARTAN": Contender(by.batch("partan")),
    "SMO": Contender(by.batch("smo")),
    # With the same room for kernel values.
    CACHED: Contender(by.libsvm(by.LARGE_CACHE)),
}
BESIDE_ROWS = {
    "one pass, no bound on the set": Contender(by.online(None)),
    CACHED: Contender(by.libsvm(by.LARGE_CACHE)),
}
MANY_CLASSES = ("usps", "pendigits")
FIGURE = Path(__file__).resolve().parent / "figures" / "growing-covtype.svg"


def measure(
    contender: Contender, load: Callable[[bool], tuple[Dataset, Parameters]], options: Options
) -> Iterator[Figures]:
    """Learn the set, of which the data are a loader, as contenders differ in their form of rows."""
    data, parameters = load(contender.sparse)
    if options.rows:
        data = data._replace(X=data.X[: options.rows], y=data.y[: options.rows])
    yield from by.measure(contender.fit, data, parameters)


def problem(name: str) -> Callable[[Options], object]:
    """Return what gives a loader of a set in either form."""
    return lambda options: partial(load_problem, options.folder, name)


def takes(contender: str, data: str) -> bool:
    """Whether a contender can learn a set at all."""
    of_classes = CONTENDERS[contender].many_classes or data not in MANY_CLASSES
    return of_classes and PROBLEMS[data].peers == (contender != "**online, 30,000**")


def table(kept: Results) -> str:
    """Return all figures, seconds and predictions also as multiples of LIBSVM's."""
    rate = {}
    for result in kept.results:
        peer = (kept.of(LIBSVM, result.data) or [{}])[0]
        figures = result.figures
        if peer.get("seconds") and figures.get("seconds") is not None:
            ratio = figures["seconds"] / peer["seconds"]
            figures["ratio"] = f"{ratio:.1f}" if ratio >= 0.95 else f"1/{1.0 / ratio:.1f}"
        if peer.get("rate") and figures.get("rate"):
            rate[result.contender, result.data] = figures["rate"] / peer["rate"]
            figures["of_rate"] = rate[result.contender, result.data]
        figures["peak"] = figures.get("peak_bytes", 0) / 1e6
    return listed(
        kept,
        {
            "seconds": mean("seconds"),
            "of LIBSVM's": lambda figures: str(figures[0].get("ratio", "")),
            "test accuracy %": mean("accuracy"),
            "support vectors": mean("support", ",.0f"),
            "peak MB": mean("peak", ",.0f"),
            "predictions/s, of LIBSVM's": mean("of_rate", ".2g"),
        },
    )


def accuracy_and_seconds(figures: list[Figures]) -> str:
    """Return a cell of the batch solvers' table."""
    words = figures[0].get("instead") if figures else ""
    return str(words or f"{mean('accuracy')(figures)} / {mean('seconds', '.1f')(figures)}")


def size_cell(figures: list[Figures]) -> str:
    """Return seconds, accuracy in %, support vectors and GB, or what stands for them."""
    if not figures or figures[0].get("instead"):
        return figures[0]["instead"] if figures else ""
    last = figures[0]
    gigabytes = last["peak_bytes"] / 1e9
    return f"{last['seconds']:.1f}, {last['accuracy']:.2f}, {last['support']:,}, {gigabytes:.1f}"


def draw(kept: Results) -> None:
    """Draw seconds and accuracy against rows."""
    figure, (left, right) = new_figure(2)
    for name in kept.contenders:
        ended = {
            int(data.rpartition("-")[2]): of[0]
            for data in kept.data
            if (of := kept.of(name, data)) and not of[0].get("instead")
        }
        for panel, field in ((left, "seconds"), (right, "accuracy")):
            panel.plot([*ended], [each[field] for each in ended.values()], marker="o", label=name)
    left.set(xscale="log", yscale="log", xlabel="rows of covtype", ylabel="CPU seconds to learn")
    right.set(xscale="log", xlabel="rows of covtype", ylabel="accuracy % on 20,000 others")
    left.legend(fontsize="small")
    save(figure, FIGURE)


STUDIES = {
    "solvers": Study(
        CONTENDERS,
        {name: problem(name) for name in (*DEFAULT, "covtype")},
        measure,
        table,
        apart=True,
        limit=200,
        takes=takes,
    ),
    "batch_solvers": Study(
        BATCH,
        {name: problem(name) for name in ("w3a", "a9a", "ijcnn1", "usps", "covtype-60k")},
        measure,
        partial(crossed, cell=accuracy_and_seconds, corner="set"),
        apart=True,
        limit=3600,
    ),
    "growing": Study(
        BESIDE_ROWS,
        {f"covtype-{rows}": problem(f"covtype-{rows}") for rows in GROWING},
        measure,
        partial(crossed, cell=size_cell, corner="rows: s, %, support vectors, GB"),
        apart=True,
        limit=7200,
        draw=draw,
    ),
}
