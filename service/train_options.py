"""The options of `wolfstream train`, and which of them have a part in what."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from service.option_values import read_bases, read_gamma, read_weights

Command = TypeVar("Command", bound=Callable[..., Any])

SETS, BATCH, ASSET = ("msfw", "sfw"), ("fw", "mfw", "swap", "partan"), ("asset", "asset*")
SEMIPARAMETRIC = "semiparametric"
_OF_STREAMS = ("epochs", "shuffle")
_OF_SETS = ("class_weight", "corrective_steps", "max_size")
_OF_BATCH = ("max_iter", "sampling", "cache_mb")
_OF_ASSET = ("features", "dimension", "lam", "horizon")
_OF_FITS = ("basis", "solver", "window")
_NAMES = {"lam": "lambda"}


_MODEL = (
    click.option(
        "--task",
        type=click.Choice(["classification", "regression"]),
        default="classification",
        show_default=True,
        help="regression: the labels are numbers, and asset or semiparametric learns them.",
    ),
    click.option(
        "--algorithm",
        type=click.Choice([*SETS, *ASSET, *BATCH, SEMIPARAMETRIC]),
        default="msfw",
        help="msfw, sfw, asset and asset* learn sample by sample, as the server does; the others "
        "solve for all samples to a certified tolerance. semiparametric: regression by a kernel "
        "and --basis.  [default: msfw, of regression asset]",
    ),
    click.option(
        "--kernel",
        type=click.Choice(["rbf", "polynomial", "linear"]),
        default="rbf",
        show_default=True,
    ),
    click.option(
        "--gamma",
        metavar="NUMBER|auto",
        callback=read_gamma,
        default="auto",
        show_default=True,
        help="auto: 1 / (mean squared distance), over all rows; of a stream over the first 128, "
        "where the server settles it.",
    ),
    click.option("--degree", type=click.IntRange(1, 8), default=3, show_default=True),
    click.option("--coef0", type=click.FloatRange(-1e6, 1e6), default=1.0, show_default=True),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True),
)
_SET = (
    click.option("--C", "C", type=click.FloatRange(1e-9, 1e9), default=1.0, show_default=True),
    click.option(
        "--class-weight",
        multiple=True,
        metavar="LABEL=WEIGHT",
        callback=read_weights,
        help="C of this class is WEIGHT times --C; repeatable. Or balanced: inversely to how "
        "often the classes occur.",
    ),
    click.option(
        "--corrective-steps",
        type=click.IntRange(0, 100),
        default=1,
        show_default=True,
        help="Swap steps after each step of the set, 10 or more for noisy labels; a batch "
        "model's set takes them when it goes on learning.",
    ),
    click.option(
        "--max-size",
        type=click.IntRange(2, 50_000),
        metavar="N",
        help="Bound on the samples in the set.  [default: 5,000, or twice the support vectors "
        "of a batch solution]",
    ),
)
_ASSET = (
    click.option(
        "--features",
        type=click.Choice(["fourier", "nystrom", "identity"]),
        help="Features of asset.  [default: fourier for rbf, nystrom for polynomial, identity "
        "for linear]",
    ),
    click.option(
        "--dimension",
        type=click.IntRange(1, 16_384),
        metavar="N",
        help="Number of features of asset; identity has those of the rows.  [default: 512]",
    ),
    click.option(
        "--lambda",
        "lam",
        type=click.FloatRange(1e-12, 1e6, min_open=True),
        default=1e-4,
        show_default=True,
        help="Regularisation of asset.",
    ),
    click.option(
        "--epsilon",
        type=click.FloatRange(0, 1e6),
        metavar="NUMBER",
        help="Of regression, in standard deviations of the numbers: smaller errors count "
        "nothing.  [default: 0.1]",
    ),
    click.option(
        "--horizon",
        type=click.IntRange(1),
        metavar="N",
        help="The steps of asset never become shorter than that of step N.",
    ),
)
_FIT = (
    click.option(
        "--basis",
        multiple=True,
        metavar="TYPE[:NAME=NUMBER,...]",
        callback=read_bases,
        help="A function beside the kernel of semiparametric; repeatable. constant, "
        "trend:feature=F, sin:feature=F,period=P, cos:feature=F,period=P, "
        "sinc:feature=F,centre=C,scale=S; F is the number of a feature, from 0.  "
        "[default: constant]",
    ),
    click.option(
        "--solver",
        type=click.Choice(["pdsg", "mpd"]),
        default="pdsg",
        show_default=True,
        help="Solver of semiparametric.",
    ),
    click.option(
        "--window",
        type=click.IntRange(1, 20_000),
        metavar="N",
        help="Last samples that a semiparametric model keeps for its next refit in a server.  "
        "[default: all, from 2,000 to 20,000]",
    ),
)
_STREAM = (
    click.option(
        "--epochs",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        help="Passes over the file.",
    ),
    click.option(
        "--shuffle",
        is_flag=True,
        help="Shuffle each pass. The server learns in the order of arrival, so the default is "
        "the file's order; a file that is sorted by its label needs --shuffle.",
    ),
)
_SOLVER = (
    click.option(
        "--tol",
        type=click.FloatRange(0, min_open=True),
        default=1e-4,
        show_default=True,
        help="Duality gap at which a batch solver stops; KKT violation of semiparametric.",
    ),
    click.option(
        "--max-iter",
        type=click.IntRange(1),
        default=1_000_000,
        show_default=True,
        help="Iterations of a batch solver for each pair of classes.",
    ),
    click.option(
        "--sampling",
        type=click.IntRange(1),
        metavar="N",
        help="A batch solver looks for its vertex among N random ones, for example 194.  "
        "[default: among all]",
    ),
    click.option(
        "--cache-mb",
        type=click.IntRange(1),
        default=1024,
        show_default=True,
        help="Memory for kernel rows of a batch solver.",
    ),
)
_FILES = (
    click.option(
        "--label-column",
        metavar="NAME|N",
        help="Label column of a CSV file: its name, or its number from 1.  [default: the one "
        "headed y, label, class or target, else the last]",
    ),
    click.option("--dense", is_flag=True, help="Make rows of svmlight and CSR dense."),
    click.option(
        "--test",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Labelled samples for the accuracy that is printed at the end.",
    ),
)


def training_options(command: Command) -> Command:
    """All options that say what to train, and from what."""
    for option in reversed(_MODEL + _SET + _ASSET + _FIT + _STREAM + _SOLVER + _FILES):
        command = option(command)
    return command


def check_usage(context: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that the chosen task, algorithm or kernel would not look at.

    Settles the algorithm where the task alone decides it, and the task where the algorithm does.
    """
    if options["task"] == "regression" and _is_default(context, "algorithm"):
        options["algorithm"] = "asset"
    if options["algorithm"] == SEMIPARAMETRIC and _is_default(context, "task"):
        options["task"] = "regression"
    algorithm, kernel, task = options["algorithm"], options["kernel"], options["task"]
    if task == "regression" and algorithm not in (*ASSET, SEMIPARAMETRIC):
        raise click.UsageError(
            f"--algorithm {algorithm} learns classes; --task regression needs asset, asset* or "
            "semiparametric"
        )
    if task == "classification" and algorithm == SEMIPARAMETRIC:
        raise click.UsageError("--algorithm semiparametric learns numbers: --task regression")
    useless: tuple[str, ...]
    if algorithm in ASSET:
        useless = ("C", *_OF_SETS, "tol", *_OF_BATCH, *_OF_FITS)
    elif algorithm in SETS:
        useless = (*_OF_ASSET, "tol", *_OF_BATCH, *_OF_FITS)
    elif algorithm in BATCH:
        useless = _OF_ASSET + _OF_STREAMS + _OF_FITS
    else:
        useless = _OF_ASSET + _OF_STREAMS + _OF_BATCH + _OF_SETS
    _refuse(context, f"--algorithm {algorithm}", useless)
    of_kernels = {"rbf": ("degree", "coef0"), "linear": ("gamma", "degree", "coef0")}
    _refuse(context, f"--kernel {kernel}", of_kernels.get(kernel, ()))
    _refuse(context, f"--task {task}", ("epsilon",) if task == "classification" else ())


def _refuse(context: click.Context, chosen: str, useless: tuple[str, ...]) -> None:
    for name in useless:
        if not _is_default(context, name):
            option = _NAMES.get(name, name).replace("_", "-")
            raise click.UsageError(f"--{option} has no part in {chosen}")


def _is_default(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.DEFAULT
