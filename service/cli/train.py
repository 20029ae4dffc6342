"""The command `wolfstream train`, which makes a model file from a file of samples."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wolfstream.service.cli.failures import Failure, Interrupted
from wolfstream.service.cli.options import DataSource, UserPath, column_options
from wolfstream.service.cli.train_options import check_usage, training_options
from wolfstream.service.spec.heads import ALGORITHMS, HEAD_OPTIONS, TOLERANCE, algorithms_of

# numpy, numba and rich are imported when the command runs: help is quick.
if TYPE_CHECKING:
    from wolfstream.service.offline.training_plan import Plan


@click.command()
@click.argument("file", type=UserPath(exists=True, dir_okay=False))
@click.option(
    "--model",
    "out",
    required=True,
    metavar="OUT",
    type=UserPath(dir_okay=False),
    help="The model file to write, whole or not at all.",
)
@click.option("--force", is_flag=True, help="Overwrite OUT.")
@training_options
@column_options()
@click.pass_context
def train(
    context: click.Context,
    /,
    source: DataSource,
    out: Path,
    force: bool,
    dense: bool,
    test: Path | None,
    **options: Any,
) -> None:
    """Train a model on a file of samples with labels, or with numbers for a regression.

    FILE is CSV (with or without a header), NDJSON, svmlight, or npz with arrays X and y (or the CSR
    arrays data, indices, indptr, shape, and y); it is read into memory. Rows of svmlight files
    and CSR arrays stay sparse and may have any number of features. `wolfstream predict`,
    `wolfstream evaluate` and `wolfstream serve --load` read OUT.

    The first Ctrl-C ends training and writes the model as it is; the second writes nothing.

    \b
    Examples:
      wolfstream train rooms.csv --model rooms.model
      wolfstream train spam.svm --model spam.model --shuffle --epochs 3 --test held-out.svm
      wolfstream train digits.npz --model digits.model --algorithm partan --C 10 --tol 0.01
      wolfstream train rare.csv --model rare.model --algorithm mfw --class-weight fraud=20
      wolfstream train rents.csv --model rents.model --task regression --epochs 5
      wolfstream train load.csv --model load.model --algorithm semiparametric \\
           --basis constant --basis trend:feature=0 --basis sin:feature=0,period=24

    \b
    Exit codes:
      0    OUT was written
      1    the file is malformed, no model can be trained on it, or OUT cannot be written
      2    the command was used wrongly
      130  interrupted
    """  # noqa: D301  (click wants the control character)
    check_usage(context, options)
    check_out(out, force)
    from wolfstream.solver.compile_cache import use_compile_cache

    use_compile_cache()
    from wolfstream.service.cli.display import warn_of
    from wolfstream.service.cli.training_display import read_with_bar, summary, train_with_bar
    from wolfstream.service.errors import Invalid
    from wolfstream.service.files.labelled import DataFileError
    from wolfstream.service.offline.training_plan import CannotTrain
    from wolfstream.service.storage.snapshot_format import write_state

    try:
        try:
            dense = dense or ALGORITHMS[options["algorithm"]].way == "fit"
            data = read_with_bar(source, dense, options["task"], _takes_texts(options))
            began = time.monotonic()
            state, report, warnings = train_with_bar(data, _plan(options))
        except (DataFileError, CannotTrain) as error:
            raise Failure(f"{source.path}: {error}") from None
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
    warn_of(source.path, warnings)
    click.echo(summary(report, seconds, out))
    if not report["complete"] and "interrupted" in report:
        raise Interrupted(f"interrupted; {out} has what was learned until then")
    if test is not None:
        _print_score(out, source._replace(path=test))


def check_out(out: Path, force: bool) -> None:
    """Raise Failure if a file certainly cannot be written, before the work begins."""
    if out.exists() and not force:
        raise Failure(f"{out} exists; --force overwrites it")
    if not out.parent.is_dir():
        raise Failure(f"{out} cannot be written: there is no directory {out.parent}")
    if not os.access(out.parent, os.W_OK):
        raise Failure(f"{out} cannot be written: {out.parent} is not writable")


def _takes_texts(options: dict[str, Any]) -> bool:
    from wolfstream.service.heads.kinds import KINDS

    return KINDS[ALGORITHMS[options["algorithm"]].head].prepared


def _plan(options: dict[str, Any]) -> "Plan":
    from wolfstream.service.offline.training_plan import Plan
    from wolfstream.solver.frank_wolfe.solve_dual import Settings

    kernel: dict[str, Any] = {"type": options["kernel"]}
    if options["kernel"] == "polynomial":
        kernel |= {"degree": options["degree"], "coef0": options["coef0"]}
    algorithm = options["algorithm"]
    head_options = {name: options[name] for name in HEAD_OPTIONS[ALGORITHMS[algorithm].head]}
    class_weight = head_options.pop("class_weight", None)
    return Plan(
        task=options["task"],
        algorithm=algorithm,
        kernel=kernel,
        gamma=options["gamma"],
        options={name: value for name, value in head_options.items() if value is not None},
        class_weight=class_weight,
        epochs=options["epochs"],
        shuffle=options["shuffle"],
        seed=options["seed"],
        batch=Settings(
            method=algorithm if algorithm in algorithms_of("pairs") else "mfw",
            tol=options["tol"] or TOLERANCE.get(ALGORITHMS[algorithm].way, 0.0),
            max_iter=options["max_iter"],
            sampling=options["sampling"],
            cache_bytes=options["cache_mb"] << 20,
        ),
    )


def _print_score(out: Path, test: DataSource) -> None:
    from wolfstream.service.cli.predict import evaluate_file, load

    result = evaluate_file(load(out), test)
    click.echo(f"{result.to_text()} on {result.samples:,} samples of {test.path}")
