"""The command `wolfstream train`: a file of labelled samples into a model file."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.failures import Failure, Interrupted
from service.train_options import BATCH, SEMIPARAMETRIC, check_usage, training_options

# numpy, numba and rich are imported when there is something to do: help is quick.
if TYPE_CHECKING:
    from rich.console import Console

    from service.training_plan import Plan


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
@training_options
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
    """Train a model from a file of samples with labels, or of numbers to be regressed.

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
      wolfstream train rents.csv --model rents.model --task regression --epochs 5
      wolfstream train load.csv --model load.model --algorithm semiparametric \\
           --basis constant --basis trend:feature=0 --basis sin:feature=0,period=24

    \b
    Exit codes:
      0    OUT is written
      1    the file is malformed, nothing can be trained from it, or OUT cannot be written
      2    wrong usage
      130  interrupted
    """  # noqa: D301  (click wants the control character)
    check_usage(context, options)
    check_out(out, force)
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
            dense = dense or options["algorithm"] == SEMIPARAMETRIC
            data = read(console, file, label_column, dense, options["task"])
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
        _print_score(console, out, test, label_column)


def check_out(out: Path, force: bool) -> None:
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
    given = {"features": options["features"], "dimension": options["dimension"]}
    given |= {"lambda": options["lam"], "epsilon": options["epsilon"]}
    given |= {"horizon": options["horizon"]}
    fitted = {name: options[name] for name in ("basis", "epsilon", "solver", "window")}
    return Plan(
        kernel=kernel,
        asset={name: value for name, value in given.items() if value is not None},
        semiparametric={name: value for name, value in fitted.items() if value is not None},
        batch=Settings(
            method=algorithm if algorithm in BATCH else "mfw",
            tol=options["tol"],
            max_iter=options["max_iter"],
            sampling=options["sampling"],
            cache_bytes=options["cache_mb"] << 20,
        ),
        **{name: options[name] for name in Plan._fields if name in options and name != "kernel"},
    )


def _print_score(console: "Console", out: Path, test: Path, label_column: str | None) -> None:
    from service.cli_predict import judge, load

    result = judge(console, load(out), test, label_column)
    click.echo(f"{result.words()} on {result.samples:,} samples of {test}")
