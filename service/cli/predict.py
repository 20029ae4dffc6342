"""The commands `wolfstream predict` and `wolfstream evaluate`, which use a model file."""

import csv
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from wolfstream.service.cli.failures import Failure, Interrupted
from wolfstream.service.cli.options import DataSource, UserPath, column_options

# numpy, numba and rich are imported when a command runs: help is quick.
if TYPE_CHECKING:
    from wolfstream.service.files.labelled import LabelledFile
    from wolfstream.service.heads.protocol import Predictions
    from wolfstream.service.offline.evaluation import Evaluation, RegressionEvaluation
    from wolfstream.service.recovery.model_files import LoadedModel
    from wolfstream.solver.arrays import Float64Array

Command = TypeVar("Command", bound=Callable[..., Any])
_ROWS_AT_ONCE = 1024


def _file(name: str) -> Callable[[Command], Command]:
    path = UserPath(exists=True, dir_okay=False)
    return click.argument(name, type=path)


@click.command()
@_file("model")
@_file("file")
@click.option(
    "--output",
    type=UserPath(dir_okay=False),
    metavar="FILE",
    help="File to write, whole or not at all.  [default: standard output]",
)
@click.option(
    "--decision",
    is_flag=True,
    help="Add decision values: for two classes one column, positive for the class in its header; "
    "otherwise a column for each class, of which the highest wins.",
)
@column_options("see above")
@click.option("--no-labels", is_flag=True, help="Every column of FILE is a feature.")
def predict(
    model: Path,
    source: DataSource,
    output: Path | None,
    decision: bool,
    no_labels: bool,
) -> None:
    """Predict the rows of a file, and write CSV with a header and a line for each row.

    MODEL is a file that `wolfstream train` wrote, or a snapshot of a server. FILE is CSV,
    NDJSON, svmlight or npz. Labels in FILE are ignored. A CSV file has none if it has as many
    columns as the model has features, or if its header has no column y, label, target or class. A
    line of svmlight begins with a label, unless --no-labels is given; an npz file may lack y. With
    --id, each line of the output begins with the row's id.

    \b
    Examples:
      wolfstream predict rooms.model new.csv
      wolfstream predict rooms.model new.csv --decision --output predictions.csv
    """  # noqa: D301  (click wants the control character)
    if no_labels and source.roles.label is not None:
        raise click.UsageError("use either --no-labels or --label, not both")
    try:
        loaded = load(model)
        labelled = False if no_labels else None
        data = _open(loaded, source, labelled)
        with _open_output(output) as out:
            table = csv.writer(out, lineterminator="\n")
            _write(loaded, data, source, decision, table)
    except BrokenPipeError:
        # The reader has closed the pipe; buffered output must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        place = output or "standard output"
        raise Failure(f"{place}: {error.strerror or error}") from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None


@click.command()
@_file("model")
@_file("file")
@column_options()
def evaluate(model: Path, source: DataSource) -> None:
    """Compare predictions with the labels of a file.

    For classes: accuracy, and that of always predicting the most frequent label; Cohen's kappa;
    balanced accuracy; ROC AUC and average precision (means over classes; with two classes, the
    average precision of the rarer one); precision, recall and F1 of each class; and the confusion
    matrix. For a regression: mean absolute error, root mean squared error, and R2.

    MODEL is a file that `wolfstream train` wrote, or a snapshot of a server. FILE is CSV,
    NDJSON, svmlight or npz, with labels.

    \b
    Example:
      wolfstream evaluate rooms.model held-out.csv
    """  # noqa: D301  (click wants the control character)
    try:
        loaded = load(model)
        result = evaluate_file(loaded, source)
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    from wolfstream.service.cli.display import print_tables
    from wolfstream.service.cli.evaluation_display import balance, tables
    from wolfstream.service.offline.evaluation import Evaluation
    from wolfstream.service.recovery.model_files import describe

    click.echo(f"{model}: {describe(loaded)}")
    click.echo(
        f"{result.to_text()} of {result.samples:,} samples; "
        f"{result.samples / max(result.seconds, 1e-9):,.0f} rows/s"
    )
    if not isinstance(result, Evaluation):
        return
    click.echo(balance(result.scores()))
    print_tables(tables(result))


def load(path: Path) -> "LoadedModel":
    """Load the model in a file. Raises Failure."""
    from wolfstream.solver.compile_cache import use_compile_cache

    use_compile_cache()
    from wolfstream.service.recovery.model_files import ModelFileError, load_model

    try:
        loaded = load_model(path)
    except ModelFileError as error:
        raise Failure(str(error)) from None
    head = loaded.model.published.heads[loaded.model.spec.serve]
    if not loaded.numbered:
        raise Failure(f"{path} has a model of named features, which a file does not have")
    if head.lacks:
        raise Failure(f"{path} {head.lacks}")
    return loaded


def evaluate_file(loaded: "LoadedModel", source: DataSource) -> "Evaluation | RegressionEvaluation":
    """Return the scores of the predictions for a labelled file. Raises Failure."""
    from wolfstream.service.cli.display import Bar
    from wolfstream.service.offline.evaluation import Evaluation, RegressionEvaluation

    data = _open(loaded, source, True)
    classes = loaded.model.published.heads[loaded.model.spec.serve].classes
    result: Evaluation | RegressionEvaluation
    result = RegressionEvaluation() if classes is None else Evaluation(list(classes))
    with Bar(f"evaluating {source.path.name}") as bar:
        for batch in data.batches(_ROWS_AT_ONCE):
            began = time.perf_counter()
            predictions = _predict(loaded, data, batch.X, source.path, result.samples)
            result.seconds += time.perf_counter() - began
            if isinstance(result, Evaluation):
                probability = _probability(loaded, predictions)
                result.count(batch.labels, predictions.prediction, probability)
            else:
                result.count(batch.labels, predictions.prediction)
            bar.show(result.samples / data.samples, result.to_text())
    return result


def _open(
    loaded: "LoadedModel",
    source: DataSource,
    labelled: bool | None,
) -> "LabelledFile":
    """Open a file with rows for a model; warn about columns that the model does not know.

    Args:
        loaded: the model.
        source: to open.
        labelled: whether the file has labels; None to find out.

    Raises Failure, also if the rows have another number of features.
    """
    from wolfstream.service.cli.display import warn_of
    from wolfstream.service.cli.training_display import open_with_bar
    from wolfstream.service.files.labelled import DataFileError
    from wolfstream.service.model.columns import notices_of_header

    features = loaded.model.published.rows.dimension
    assert features is not None
    try:
        data = open_with_bar(
            source,
            features=features,
            sparse=loaded.sparse,
            labelled=labelled,
            first_index=loaded.first_index,
            texts=loaded.model.spec.prepare is not None,
        )
        if labelled:
            data = data.for_task(loaded.model.spec.task)
    except DataFileError as error:
        raise Failure(f"{source.path}: {error}") from None
    if data.names is None and data.features != features:
        label = " besides the label" if data.labelled else ""
        raise Failure(
            f"{source.path}: the rows have {data.features} features{label}; the model needs "
            f"{features}"
        )
    notices = notices_of_header(loaded.model.published.rows, data.names or ())
    warn_of(source.path, (notice.message for notice in notices))
    return data


def _probability(loaded: "LoadedModel", predictions: "Predictions") -> "Float64Array | None":
    """Return the probabilities of classes, (n, classes); None if the head has none."""
    import numpy as np

    from wolfstream.service.errors import Untrained

    head = loaded.model.published.heads[loaded.model.spec.serve]
    try:
        return np.array(head.probabilities(predictions.head_answer)["probability"])
    except Untrained:
        return None


def _predict(
    loaded: "LoadedModel", data: "LabelledFile", X: Any, file: Path, before: int
) -> "Predictions":
    """Return predictions for rows, before which there are `before` others in the file."""
    from wolfstream.service.errors import InvalidSamples

    try:
        published = loaded.model.published
        rows = loaded.head_rows(X, data.names)
        return published.predict(loaded.model.spec.serve, rows)
    except InvalidSamples as error:
        first = error.errors[0]
        raise Failure(f"{file}: row {before + first['row'] + 1}: {first['detail']}") from None


def _write(
    loaded: "LoadedModel",
    data: "LabelledFile",
    source: DataSource,
    decision: bool,
    table: Any,
) -> None:
    from wolfstream.service.cli.display import Bar

    classes = loaded.model.published.heads[loaded.model.spec.serve].classes
    if classes is None and decision:
        raise Failure("--decision is for classes: a regression predicts its only value")
    columns = list(classes or ())
    if len(columns) == 2:  # one decision value, positive for the second class
        del columns[0]
    ids = [] if source.roles.id is None else ["id"]
    table.writerow([*ids, "prediction", *(f"decision {label}" for label in columns if decision)])
    done = 0
    with Bar(f"predicting {source.path.name}") as bar:
        for batch in data.batches(_ROWS_AT_ONCE):
            predicted = _predict(loaded, data, batch.X, source.path, done)
            predictions, decisions = predicted.prediction, predicted.decision
            lines = [[label] for label in predictions]
            if decision:
                for line, values in zip(lines, decisions, strict=True):
                    line += values if isinstance(values, list) else [values]
            if source.roles.id is not None:
                lines = [[row_id, *line] for row_id, line in zip(batch.ids, lines, strict=True)]
            table.writerows(lines)
            done += len(predictions)
            bar.show(done / data.samples, f"{done:,} of {data.samples:,} rows")


@contextmanager
def _open_output(output: Path | None) -> Iterator[TextIO]:
    """Yield standard output, or a file that appears once it is complete."""
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
