"""The options of `wolfstream train`, and which of them have a part in what."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

Command = TypeVar("Command", bound=Callable[..., Any])

SETS, BATCH, ASSET = ("msfw", "sfw"), ("fw", "mfw", "swap", "partan"), ("asset", "asset*")
_OF_STREAMS = ("epochs", "shuffle")
_OF_SETS = ("C", "class_weight", "corrective_steps", "max_size")
_OF_BATCH = ("tol", "max_iter", "sampling", "cache_mb")
_OF_ASSET = ("features", "dimension", "lam", "epsilon", "horizon")
_NAMES = {"lam": "lambda"}


def _read_gamma(_: click.Context, __: click.Parameter, value: str) -> float | None:
    if value == "auto":
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0.0 < number <= 1e12:
        raise click.BadParameter(f"{value!r} is neither auto nor a number in (0, 1e12]")
    return number


def _read_weights(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Any:
    if values == ("balanced",):
        return "balanced"
    weights: dict[str, float] = {}
    for value in values:
        label, equals, text = value.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = math.nan
        if not equals or not 1e-6 <= weight <= 1e6:
            detail = f"{value!r} is neither balanced alone nor LABEL=NUMBER, up to a million"
            raise click.BadParameter(detail)
        weights[label] = weight
    return weights or None


_MODEL = (
    click.option(
        "--task",
        type=click.Choice(["classification", "regression"]),
        default="classification",
        show_default=True,
        help="regression: the labels are numbers, and asset learns them.",
    ),
    click.option(
        "--algorithm",
        type=click.Choice([*SETS, *ASSET, *BATCH]),
        default="msfw",
        help="msfw, sfw, asset and asset* learn sample by sample, as the server does; the others "
        "solve for all samples to a certified duality gap.  [default: msfw, of regression asset]",
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
        callback=_read_gamma,
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
        callback=_read_weights,
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
        help="Duality gap at which a batch solver stops.",
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
    for option in reversed(_MODEL + _SET + _ASSET + _STREAM + _SOLVER + _FILES):
        command = option(command)
    return command


def check_usage(context: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that the chosen task, algorithm or kernel would not look at.

    Settles the algorithm where the task alone decides it.
    """
    if options["task"] == "regression" and _is_default(context, "algorithm"):
        options["algorithm"] = "asset"
    algorithm, kernel, task = options["algorithm"], options["kernel"], options["task"]
    if task == "regression" and algorithm not in ASSET:
        detail = f"--algorithm {algorithm} learns classes; --task regression needs asset or asset*"
        raise click.UsageError(detail)
    useless: tuple[str, ...]
    if algorithm in ASSET:
        useless = _OF_SETS + _OF_BATCH
    elif algorithm in SETS:
        useless = _OF_ASSET + _OF_BATCH
    else:
        useless = _OF_ASSET + _OF_STREAMS
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
