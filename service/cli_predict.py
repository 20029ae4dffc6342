"""The commands `wolfstream predict` and `wolfstream evaluate`: a model file and a data file."""

import csv
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from service.failures import Failure, Interrupted

# numpy, numba and rich are imported when there is something to do: help is quick.
if TYPE_CHECKING:
    from rich.console import Console

    from service.datafiles import LabelledFile
    from service.evaluation import Evaluation, RegressionEvaluation
    from service.loading import LoadedModel

Command = TypeVar("Command", bound=Callable[..., Any])
_ROWS_AT_ONCE = 1024


def _file(name: str) -> Callable[[Command], Command]:
    path = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.argument(name, type=path)


def _label_column(extra: str = "") -> Callable[[Command], Command]:
    text = "Label column of a CSV file: its name, or its number from 1."
    return click.option("--label-column", metavar="NAME|N", help=text + extra)


@click.command()
@_file("model")
@_file("file")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write there, whole or not at all.  [default: standard output]",
)
@click.option(
    "--decision",
    is_flag=True,
    help="Add decision values: for two classes one column, positive for the class that heads "
    "it; otherwise a column for each class, the highest wins.",
)
@_label_column("  [default: see above]")
@click.option("--no-labels", is_flag=True, help="Every column of FILE is a feature.")
def predict(
    model: Path,
    file: Path,
    output: Path | None,
    decision: bool,
    label_column: str | None,
    no_labels: bool,
) -> None:
    """Predict the rows of a file; CSV with a header comes out, a line for each row.

    MODEL is what `wolfstream train` wrote, or a snapshot of the server. FILE is CSV, svmlight or
    npz. Labels in FILE are not looked at: a CSV file with as many columns as the model has
    features has none, one with another column has its label where `train` would look for it;
    an svmlight line begins with a label unless --no-labels; y of an npz file may be missing.

    \b
    Examples:
      wolfstream predict rooms.model new.csv
      wolfstream predict rooms.model new.csv --decision --output predictions.csv
    """  # noqa: D301  (click wants the control character)
    if no_labels and label_column is not None:
        raise click.UsageError("--no-labels and --label-column exclude each other")
    console = _console()
    try:
        loaded = load(model)
        labelled = False if no_labels else None
        data = _open(console, loaded, file, label_column, labelled)
        with _destination(output) as out:
            _write(console, loaded, data, file, decision, csv.writer(out, lineterminator="\n"))
    except BrokenPipeError:
        # The reader has enough; what is still buffered must not raise once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise Failure(f"{output}: {error.strerror or error}") from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None


@click.command()
@_file("model")
@_file("file")
@_label_column("  [default: the one headed y, label, class or target, else the last]")
def evaluate(model: Path, file: Path, label_column: str | None) -> None:
    """Compare predictions with the labels of a file.

    Of classes: accuracy, Cohen's kappa, precision and recall of each, confusions. Of a
    regression: mean absolute error, root of the mean square, and R2.

    MODEL is what `wolfstream train` wrote, or a snapshot of the server. FILE is CSV, svmlight or
    npz with labels.

    \b
    Example:
      wolfstream evaluate rooms.model held-out.csv
    """  # noqa: D301  (click wants the control character)
    console = _console()
    try:
        loaded = load(model)
        result = judge(console, loaded, file, label_column)
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    from rich.console import Console

    from service.evaluation import Evaluation, tables
    from service.loading import describe

    click.echo(f"{model}: {describe(loaded)}")
    click.echo(
        f"{result.words()} of {result.samples:,} samples; "
        f"{result.samples / max(result.seconds, 1e-9):,.0f} rows/s"
    )
    if not isinstance(result, Evaluation):
        return
    # Wide enough where nobody looks: a pipe has no width.
    plain = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for table in tables(result):
        plain.print(table)


def load(path: Path) -> "LoadedModel":
    """The model in a file. Raises Failure."""
    from service.compile_cache import use_compile_cache

    use_compile_cache()
    from service.loading import ModelFileError, load_model

    try:
        loaded = load_model(path)
    except ModelFileError as error:
        raise Failure(str(error)) from None
    head = loaded.model.published.heads[loaded.model.spec.serve]
    if not loaded.numbered:
        raise Failure(f"{path} is of a model whose features have names; files have numbers")
    if not head.trained and loaded.model.spec.serve == "semiparametric":
        raise Failure(f"{path} has not been fitted: it was saved before its first refit")
    if not head.trained:
        met = "no sample" if head.classes is None else f"the classes {list(head.classes)!r}"
        needed = "one is" if head.classes is None else "two are"
        raise Failure(f"{path} has met {met}: {needed} needed")
    return loaded


def judge(
    console: "Console", loaded: "LoadedModel", file: Path, label_column: str | None
) -> "Evaluation | RegressionEvaluation":
    """Predict all rows of a labelled file and count. Raises Failure."""
    from service.display import Bar
    from service.evaluation import Evaluation, RegressionEvaluation

    data = _open(console, loaded, file, label_column, True)
    classes = loaded.model.published.heads[loaded.model.spec.serve].classes
    result: Evaluation | RegressionEvaluation
    result = RegressionEvaluation() if classes is None else Evaluation(list(classes))
    with Bar(console, f"evaluating {file.name}") as bar:
        for X, labels in data.batches(_ROWS_AT_ONCE):
            began = time.perf_counter()
            said, _ = _said(loaded, X, file, result.samples)
            result.seconds += time.perf_counter() - began
            result.count(labels, said)
            bar.show(result.samples / data.samples, result.words())
    return result


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True)


def _open(
    console: "Console",
    loaded: "LoadedModel",
    file: Path,
    label_column: str | None,
    labelled: bool | None,
) -> "LabelledFile":
    """The file as the model wants its rows. Raises Failure."""
    from service.datafiles import DataFileError
    from service.training_display import open_watched

    features = loaded.model.dimension
    assert features is not None
    try:
        data = open_watched(
            console,
            file,
            label_column=label_column,
            features=features,
            sparse=loaded.sparse,
            labelled=labelled,
            first_index=loaded.first_index,
        )
        if labelled and loaded.model.spec.task == "regression":
            data = data.with_targets()
    except DataFileError as error:
        raise Failure(f"{file}: {error}") from None
    if data.features != features:
        label = " besides the label" if data.labelled else ""
        raise Failure(
            f"{file}: the rows have {data.features} features{label}, those of the model have "
            f"{features}"
        )
    return data


def _said(loaded: "LoadedModel", X: Any, file: Path, before: int) -> tuple[list[Any], list[Any]]:
    from service.errors import InvalidSamples

    try:
        return loaded.model.published.heads[loaded.model.spec.serve].predict(X)
    except InvalidSamples as error:
        first = error.errors[0]
        raise Failure(f"{file}: row {before + first['row'] + 1}: {first['detail']}") from None


def _write(
    console: "Console",
    loaded: "LoadedModel",
    data: "LabelledFile",
    file: Path,
    decision: bool,
    table: Any,
) -> None:
    from service.display import Bar

    classes = loaded.model.published.heads[loaded.model.spec.serve].classes
    if classes is None and decision:
        raise Failure("--decision is of classes; the prediction of a regression is its decision")
    heads = list(classes or ())
    if len(heads) == 2:
        del heads[0]
    table.writerow(["prediction", *(f"decision {label}" for label in heads if decision)])
    done = 0
    with Bar(console, f"predicting {file.name}") as bar:
        for X, _ in data.batches(_ROWS_AT_ONCE):
            said, decisions = _said(loaded, X, file, done)
            if decision:
                values = [d if isinstance(d, list) else [d] for d in decisions]
                table.writerows([label, *v] for label, v in zip(said, values, strict=True))
            else:
                table.writerows([label] for label in said)
            done += len(said)
            bar.show(done / data.samples, f"{done:,} of {data.samples:,} rows")


@contextmanager
def _destination(output: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears when it is whole."""
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    partial = output.with_name(output.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8", newline="") as file:
            yield file
        partial.rename(output)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
