"""The command `wolfstream train`: a file of labelled samples into a model file."""

import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from service.failures import Failure, Interrupted

# numpy, numba and rich are imported when there is something to do: help is quick.
if TYPE_CHECKING:
    from rich.console import Console

    from service.training_plan import Plan

_ONLINE = ("msfw", "sfw")
_BATCH = ("fw", "mfw", "swap", "partan")
_ONLINE_ONLY = ("epochs", "shuffle")
_BATCH_ONLY = ("tol", "max_iter", "sampling", "cache_mb")


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


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--model",
    "out",
    required=True,
    metavar="OUT",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The model file to write, whole or not at all.",
)
@click.option("--force", is_flag=True, help="Overwrite OUT.")
@click.option(
    "--algorithm",
    type=click.Choice([*_ONLINE, *_BATCH]),
    default="msfw",
    show_default=True,
    help="msfw and sfw learn sample by sample, as the server does; the others solve for all "
    "samples to a certified duality gap.",
)
@click.option("--C", "C", type=click.FloatRange(1e-9, 1e9), default=1.0, show_default=True)
@click.option(
    "--kernel",
    type=click.Choice(["rbf", "polynomial", "linear"]),
    default="rbf",
    show_default=True,
)
@click.option(
    "--gamma",
    metavar="NUMBER|auto",
    callback=_read_gamma,
    default="auto",
    show_default=True,
    help="auto: 1 / (mean squared distance), over all rows; with msfw and sfw over the first "
    "128, where the server settles it.",
)
@click.option("--degree", type=click.IntRange(1, 8), default=3, show_default=True)
@click.option("--coef0", type=click.FloatRange(-1e6, 1e6), default=1.0, show_default=True)
@click.option(
    "--class-weight",
    multiple=True,
    metavar="LABEL=WEIGHT",
    callback=_read_weights,
    help="C of this class is WEIGHT times --C; repeatable. Or balanced: inversely to how often "
    "the classes occur.",
)
@click.option(
    "--corrective-steps",
    type=click.IntRange(0, 100),
    default=1,
    show_default=True,
    help="Swap steps after each step of the set, 10 or more for noisy labels; a batch model's "
    "set takes them when it goes on learning.",
)
@click.option(
    "--max-size",
    type=click.IntRange(2, 50_000),
    metavar="N",
    help="Bound on the samples in the set.  [default: 5,000, or twice the support vectors of a "
    "batch solution]",
)
@click.option(
    "--epochs",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Passes of msfw and sfw over the file.",
)
@click.option(
    "--shuffle",
    is_flag=True,
    help="Shuffle each pass of msfw and sfw. The server learns in the order of arrival, so the "
    "default is the file's order; a file that is sorted by its label needs --shuffle.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--tol",
    type=click.FloatRange(0, min_open=True),
    default=1e-4,
    show_default=True,
    help="Duality gap at which a batch solver stops.",
)
@click.option(
    "--max-iter",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Iterations of a batch solver for each pair of classes.",
)
@click.option(
    "--sampling",
    type=click.IntRange(1),
    metavar="N",
    help="A batch solver looks for its vertex among N random ones, for example 194.  "
    "[default: among all]",
)
@click.option(
    "--cache-mb",
    type=click.IntRange(1),
    default=1024,
    show_default=True,
    help="Memory for kernel rows of a batch solver.",
)
@click.option(
    "--label-column",
    metavar="NAME|N",
    help="Label column of a CSV file: its name, or its number from 1.  [default: the one headed "
    "y, label, class or target, else the last]",
)
@click.option("--dense", is_flag=True, help="Make rows of svmlight and CSR dense.")
@click.option(
    "--test",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Labelled samples for the accuracy that is printed at the end.",
)
@click.pass_context
def train(
    context: click.Context,
    /,
    file: Path,
    out: Path,
    force: bool,
    label_column: str | None,
    dense: bool,
    test: Path | None,
    **options: Any,
) -> None:
    """Train a model from a file of labelled samples.

    FILE is CSV (with or without a header), svmlight, or npz with arrays X and y (or the CSR
    arrays data, indices, indptr, shape, and y); it is held in memory. Rows of svmlight files
    and CSR arrays stay sparse, any number of features wide. OUT is for `wolfstream predict`,
    `wolfstream evaluate` and `wolfstream serve --load`.

    The first Ctrl-C ends training and writes OUT with what it has, the second one writes nothing.

    \b
    Examples:
      wolfstream train rooms.csv --model rooms.model
      wolfstream train spam.svm --model spam.model --shuffle --epochs 3 --test held-out.svm
      wolfstream train digits.npz --model digits.model --algorithm partan --C 10 --tol 1e-3
      wolfstream train rare.csv --model rare.model --algorithm mfw --class-weight fraud=20

    \b
    Exit codes:
      0    OUT is written
      1    the file is malformed, nothing can be trained from it, or OUT cannot be written
      2    wrong usage
      130  interrupted
    """  # noqa: D301  (click wants the control character)
    _check_usage(context, options)
    _check_out(out, force)
    from service.compile_cache import use_compile_cache

    use_compile_cache()
    from rich.console import Console

    from service.datafiles import DataFileError
    from service.errors import Invalid
    from service.snapshots import write_state
    from service.training_display import read, summary, train_shown
    from service.training_plan import CannotTrain

    console = Console(stderr=True)
    try:
        try:
            data = read(console, file, label_column, dense)
            began = time.monotonic()
            state, report = train_shown(console, data, _plan(options))
        except DataFileError as error:
            raise Failure(f"{file}: {error}") from None
        except CannotTrain as error:
            raise Failure(f"{file}: {error}") from None
        except Invalid as error:
            details = [f"{item['pointer']}: {item['detail']}" for item in error.errors]
            raise Failure("; ".join([error.detail, *details])) from None
        seconds = time.monotonic() - began
        try:
            write_state(out, state)
        except OSError as error:
            raise Failure(f"{out} cannot be written: {error.strerror or error}") from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was written") from None
    click.echo(summary(report, seconds, out))
    if not report["complete"] and "interrupted" in report:
        raise Interrupted(f"interrupted; {out} has what had been learned until then")
    if test is not None:
        _print_accuracy(console, out, test, label_column)


def _check_usage(context: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that the chosen algorithm or kernel would not look at."""
    algorithm, kernel = options["algorithm"], options["kernel"]
    useless = {
        f"--algorithm {algorithm}": _BATCH_ONLY if algorithm in _ONLINE else _ONLINE_ONLY,
        f"--kernel {kernel}": {
            "rbf": ("degree", "coef0"),
            "polynomial": (),
            "linear": ("gamma", "degree", "coef0"),
        }[kernel],
    }
    for chosen, names in useless.items():
        for name in names:
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"--{name.replace('_', '-')} has no part in {chosen}")


def _check_out(out: Path, force: bool) -> None:
    """Say before the work, not after it, that its result could not be kept."""
    if out.exists() and not force:
        raise Failure(f"{out} exists; overwrite it with --force")
    if not out.parent.is_dir():
        raise Failure(f"{out} cannot be written: there is no directory {out.parent}")
    if not os.access(out.parent, os.W_OK):
        raise Failure(f"{out} cannot be written: {out.parent} may not be written to")


def _plan(options: dict[str, Any]) -> "Plan":
    from service.training_plan import Plan
    from solver.solve_dual import Settings

    kernel: dict[str, Any] = {"type": options["kernel"]}
    if options["kernel"] == "polynomial":
        kernel |= {"degree": options["degree"], "coef0": options["coef0"]}
    algorithm = options["algorithm"]
    return Plan(
        kernel=kernel,
        batch=Settings(
            method="mfw" if algorithm in _ONLINE else algorithm,
            tol=options["tol"],
            max_iter=options["max_iter"],
            sampling=options["sampling"],
            cache_bytes=options["cache_mb"] << 20,
        ),
        **{name: options[name] for name in Plan._fields if name not in ("kernel", "batch")},
    )


def _print_accuracy(console: "Console", out: Path, test: Path, label_column: str | None) -> None:
    from service.cli_predict import judge, load

    result = judge(console, load(out), test, label_column)
    click.echo(f"accuracy {result.accuracy:.2%} on {result.samples:,} samples of {test}")
