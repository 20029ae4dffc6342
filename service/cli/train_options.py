"""The options of `wolfstream train`, and a check that the algorithm uses those that are given."""

from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from wolfstream.service.cli.options import UserPath, read_bases, read_gamma, read_weights
from wolfstream.service.spec.heads import (
    ALGORITHMS,
    DEFAULT_ALGORITHM,
    HEAD_OPTIONS,
    LARGEST_SET,
    TOLERANCE,
    WAY_OPTIONS,
    algorithms_of,
)

Command = TypeVar("Command", bound=Callable[..., Any])

_FITS = ", ".join(algorithms_of("fit"))
_LEARN_NUMBERS = [name for name, algorithm in ALGORITHMS.items() if "regression" in algorithm.task]
_WRONG_TASK = {
    "classification": "--algorithm {} learns numbers: use --task regression",
    "regression": "--algorithm {} learns classes; --task regression needs "
    + ", ".join(_LEARN_NUMBERS),
}
# All options that only some algorithms use, except the one that depends on the task.
_OPTIONS = {*chain(*HEAD_OPTIONS.values(), *WAY_OPTIONS.values())} - {"epsilon"}


_MODEL = (
    click.option(
        "--task",
        type=click.Choice(["classification", "regression"]),
        default="classification",
        show_default=True,
        help="regression: the labels are numbers, and "
        f"{', '.join(_LEARN_NUMBERS[:-1])} or {_LEARN_NUMBERS[-1]} learns them.",
    ),
    click.option(
        "--algorithm",
        type=click.Choice(list(ALGORITHMS)),
        default=DEFAULT_ALGORITHM,
        show_default=True,
        help=f"{DEFAULT_ALGORITHM} learns as the server's default model does: words, missing "
        "values and numbers in any units. msfw, sfw, asset and asset* also learn sample by sample; "
        "the others solve for all samples at once, to a certified tolerance. "
        f"{_FITS} fits numbers with a kernel part and --basis.",
    ),
    click.option(
        "--kernel",
        type=click.Choice(["rbf", "polynomial", "linear"]),
        default="rbf",
        show_default=True,
        help="exp(-gamma ||x - z||^2), (gamma x'z + coef0)^degree, or x'z.",
    ),
    click.option(
        "--gamma",
        metavar="NUMBER|auto",
        callback=read_gamma,
        default="auto",
        show_default=True,
        help="auto: 1 / (mean squared distance) over all rows; for algorithms that learn sample by "
        "sample, over the first 128, as in the server.",
    ),
    click.option(
        "--degree",
        type=click.IntRange(1, 8),
        default=3,
        show_default=True,
        help="Degree of the polynomial kernel.",
    ),
    click.option(
        "--coef0",
        type=click.FloatRange(-1e6, 1e6),
        default=1.0,
        show_default=True,
        help="Constant of the polynomial kernel.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Seed of all random choices.",
    ),
)
_SET = (
    click.option(
        "--C",
        "C",
        type=click.FloatRange(1e-9, 1e9),
        default=1.0,
        show_default=True,
        help="Cost of errors; the larger, the closer the model fits its samples.",
    ),
    click.option(
        "--class-weight",
        multiple=True,
        metavar="LABEL=WEIGHT",
        callback=read_weights,
        help="Use WEIGHT times --C, or for ASSET WEIGHT times the loss, for this class; "
        "repeatable. balanced: weights in inverse proportion to the classes' frequencies.",
    ),
    click.option(
        "--corrective-steps",
        type=click.IntRange(0, 100),
        default=1,
        show_default=True,
        help="Swap steps after each step of the working set; 10 or more for noisy labels. The "
        "model of a batch solver uses them when it goes on learning.",
    ),
    click.option(
        "--max-size",
        type=click.IntRange(2, LARGEST_SET),
        metavar="N",
        help="Bound on the samples in the working set.  [default: 5,000, or twice the support "
        "vectors of a batch solution]",
    ),
)
_ASSET = (
    click.option(
        "--features",
        type=click.Choice(["fourier", "nystrom", "identity"]),
        help="Feature map of asset.  [default: fourier for rbf, nystrom for polynomial, identity "
        "for linear]",
    ),
    click.option(
        "--dimension",
        type=click.IntRange(1, 16_384),
        metavar="N",
        help="Number of features of asset; identity uses those of the rows.  [default: 512]",
    ),
    click.option(
        "--lambda",
        type=click.FloatRange(1e-12, 1e6, min_open=True),
        default=1e-4,
        show_default=True,
        help="Regularisation of asset.",
    ),
    click.option(
        "--epsilon",
        type=click.FloatRange(0, 1e6),
        metavar="NUMBER",
        help="For regression: errors below this many standard deviations of the numbers cost "
        "nothing.  [default: 0.1]",
    ),
    click.option(
        "--horizon",
        type=click.IntRange(1),
        metavar="N",
        help="Keep the steps of asset from becoming shorter than step N.",
    ),
)
_FIT = (
    click.option(
        "--basis",
        multiple=True,
        metavar="TYPE[:NAME=NUMBER,...]",
        callback=read_bases,
        help=f"A function that {_FITS} fits beside the kernel part; repeatable: constant, "
        "trend:feature=F, sin:feature=F,period=P, cos:feature=F,period=P, "
        "sinc:feature=F,centre=C,scale=S; F is the number of a feature, from 0.  "
        "[default: constant]",
    ),
    click.option(
        "--solver",
        type=click.Choice(["pdsg", "mpd"]),
        default="pdsg",
        show_default=True,
        help=f"Solver for {_FITS}.",
    ),
    click.option(
        "--window",
        type=click.IntRange(1, 20_000),
        metavar="N",
        help=f"How many of the last samples a {_FITS} model keeps for a refit in a server.  "
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
        help="Shuffle the samples in each pass. The default is the order of the file, just as the "
        "server learns in the order of arrival. A file sorted by label needs --shuffle.",
    ),
)
_SOLVER = (
    click.option(
        "--tol",
        type=click.FloatRange(0, min_open=True),
        help="A batch solver stops where the duality gap is at most this share of the objective  "
        f"[default: {TOLERANCE['pairs']}]; {_FITS} at this KKT violation  "
        f"[default: {TOLERANCE['fit']}].",
    ),
    click.option(
        "--max-iter",
        type=click.IntRange(1),
        default=1_000_000,
        show_default=True,
        help="Bound on the iterations of a batch solver for each pair of classes.",
    ),
    click.option(
        "--sampling",
        type=click.IntRange(1),
        metavar="N",
        help="Let a batch solver search N random vertices in each iteration, for example 194.  "
        "[default: all]",
    ),
    click.option(
        "--cache-mb",
        type=click.IntRange(1),
        default=1024,
        show_default=True,
        help="Megabytes of kernel rows that a batch solver keeps.",
    ),
)
_FILES = (
    click.option("--dense", is_flag=True, help="Make rows of svmlight and CSR arrays dense."),
    click.option(
        "--test",
        type=UserPath(exists=True, dir_okay=False),
        metavar="FILE",
        help="File of labelled samples; the accuracy on them is printed at the end.",
    ),
)


def training_options(command: Command) -> Command:
    """Add all options that describe the model and its data to a command."""
    for option in reversed(_MODEL + _SET + _ASSET + _FIT + _STREAM + _SOLVER + _FILES):
        command = option(command)
    return command


def check_usage(context: click.Context, options: dict[str, Any]) -> None:
    """Choose the task if only the algorithm is given; refuse options that are not used.

    Args:
        context: of the command.
        options: of the command; `task` may be replaced.

    Raises UsageError for an option that the task, algorithm or kernel does not use.
    """
    algorithm = ALGORITHMS[options["algorithm"]]
    if _is_default(context, "task") and options["task"] not in algorithm.task:
        options["task"] = algorithm.task[0]
    name, kernel, task = options["algorithm"], options["kernel"], options["task"]
    if task not in algorithm.task:
        raise click.UsageError(_WRONG_TASK[task].format(name))
    used = {*HEAD_OPTIONS[algorithm.head], *WAY_OPTIONS[algorithm.way]}
    useless = tuple(sorted(_OPTIONS - used))
    _refuse(context, f"--algorithm {name}", useless)
    not_used = {"rbf": ("degree", "coef0"), "linear": ("gamma", "degree", "coef0")}
    _refuse(context, f"--kernel {kernel}", not_used.get(kernel, ()))
    _refuse(context, f"--task {task}", ("epsilon",) if task == "classification" else ())


def _refuse(context: click.Context, chosen: str, useless: tuple[str, ...]) -> None:
    """Raise UsageError if an option is given that something chosen does not use."""
    for name in useless:
        if not _is_default(context, name):
            option = f"--{name.replace('_', '-')}"
            is_default = _is_default(context, "algorithm") and "algorithm" in chosen
            remedy = ", the default: choose another" if is_default else ""
            raise click.UsageError(f"{option} is not used by {chosen}{remedy}")


def _is_default(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.DEFAULT
