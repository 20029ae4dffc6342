"""`wolfstream predict` and `evaluate`: files of every kind against a trained model."""

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from sklearn.metrics import average_precision_score, cohen_kappa_score, roc_auc_score

from tests.service.specs import read_papers_spec
from tests.service.streams import three_classes, two_classes
from wolfstream.service.cli.evaluation_display import balance, tables
from wolfstream.service.cli.main import main
from wolfstream.service.files.labelled import Label
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.offline.evaluation import Evaluation
from wolfstream.service.recovery.model_files import load_model
from wolfstream.service.storage.snapshot_format import State, write_state

STREAM = three_classes(300)
HELD_BACK = three_classes(40, seed=1)
MSFW = ("--algorithm", "msfw")


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(main, [command, *map(str, arguments)], prog_name="wolfstream")


def error_line(result: Result) -> str:
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


def table(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return list(csv.reader(io.StringIO(result.stdout)))


def write_csv(path: Path, X: np.ndarray, labels: list[Label] | None, header: str = "") -> Path:
    rows = [[repr(v) for v in row] for row in X.tolist()]
    if labels is not None:
        rows = [[*row, str(label)] for row, label in zip(rows, labels, strict=True)]
        header = header or ",".join([*"abcdefgh"[: X.shape[1]], "y"]) + "\n"
    path.write_text(header + "\n".join(map(",".join, rows)) + "\n")
    return path


def write_svm(path: Path, X: np.ndarray, labels: list[Label] | None, first: int = 1) -> Path:
    lines = []
    for i, row in enumerate(X.tolist()):
        entries = [f"{k + first}:{v!r}" for k, v in enumerate(row) if v]
        lines.append(" ".join(entries if labels is None else [str(labels[i]), *entries]))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    file = write_csv(folder / "a.csv", STREAM.X, STREAM.y)
    assert run("train", file, "--model", folder / "rooms.model", *MSFW).exit_code == 0
    return folder / "rooms.model"


@pytest.fixture(scope="module")
def sparse_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same samples from an svmlight file whose features are numbered from 0."""
    folder = tmp_path_factory.mktemp("sparse")
    file = write_svm(folder / "a.svm", STREAM.X, STREAM.y, first=0)
    assert run("train", file, "--model", folder / "rooms.model", *MSFW).exit_code == 0
    return folder / "rooms.model"


@pytest.fixture(scope="module")
def expected(model: Path) -> tuple[list[Label], list]:
    said: tuple[list[Label], list] = (
        load_model(model).model.published.heads["working_set"].predict(HELD_BACK.X)
    )
    return said


class TestPredict:
    @pytest.mark.parametrize(
        ("name", "labels", "arguments"),
        [
            ("with_labels.csv", True, []),
            ("without.csv", False, []),
            ("header.csv", True, []),
            ("header_without.csv", False, []),
            ("a.svm", True, []),
            ("a.svm", False, ["--no-labels"]),
            ("a.npz", True, []),
            ("a.npz", False, []),
        ],
    )
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_every_kind_of_file(
        self,
        tmp_path: Path,
        request: pytest.FixtureRequest,
        expected: tuple[list[Label], list],
        name: str,
        labels: bool,
        arguments: list[str],
        kind: str,
    ):
        given = HELD_BACK.y if labels else None
        X, path = HELD_BACK.X, tmp_path / name
        sparse = kind == "sparse"
        if name.endswith(".npz"):
            np.savez(path, X=X, **({"y": np.array(given)} if labels else {}))
        elif name.endswith(".svm"):
            write_svm(path, X, given, first=int(not sparse))
        else:
            header = "" if "header" not in name else "a,b,c,y\n" if labels else "a,b,c\n"
            write_csv(path, X, given, header)
        file = request.getfixturevalue("sparse_model" if sparse else "model")
        rows = table(run("predict", file, path, *arguments))
        assert rows[0] == ["prediction"]
        assert [int(row[0]) for row in rows[1:]] == expected.prediction

    def test_decisions_of_several_classes(self, model: Path, tmp_path: Path, expected: tuple):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, None)
        rows = table(run("predict", model, file, "--decision"))
        assert rows[0] == ["prediction", "decision 0", "decision 10", "decision 20"]
        np.testing.assert_allclose(np.array(rows[1:], float)[:, 1:], expected.decision, rtol=1e-6)

    def test_one_decision_of_two_classes_is_positive_for_the_one_it_names(self, tmp_path: Path):
        samples = two_classes(200)
        file = write_csv(tmp_path / "a.csv", samples.X, samples.y)
        assert run("train", file, "--model", tmp_path / "m").exit_code == 0
        (_, heading), *rows = table(run("predict", tmp_path / "m", file, "--decision"))
        named = heading.removeprefix("decision ")
        assert {(label == named, float(value) > 0) for label, value in rows} == {
            (True, True),
            (False, False),
        }

    def test_the_label_column_may_stand_elsewhere(self, model: Path, tmp_path: Path, expected):
        X = np.column_stack([np.arange(40), HELD_BACK.X])
        file = write_csv(tmp_path / "a.csv", X, None)
        rows = table(run("predict", model, file, "--label", "1"))
        assert [int(row[0]) for row in rows[1:]] == expected.prediction

    def test_output_appears_whole_or_not_at_all(self, model: Path, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, None)
        out = tmp_path / "out.csv"
        result = run("predict", model, file, "--output", out)
        assert (result.exit_code, result.stdout) == (0, "")
        assert len(out.read_text().splitlines()) == 41
        X = HELD_BACK.X.copy()
        X[-1] = 1e60
        out.write_text("precious")
        result = run("predict", model, write_csv(file, X, None), "--output", out)
        assert "row 40: its norm exceeds" in error_line(result)
        assert out.read_text() == "precious"
        assert not list(tmp_path.glob("*.partial"))

    def test_output_cannot_be_written(self, model: Path, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, None)
        result = run("predict", model, file, "--output", tmp_path / "absent" / "out.csv")
        assert "No such file" in error_line(result)

    def test_a_reader_that_has_enough_ends_it_quietly(self, model: Path, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", np.tile(HELD_BACK.X, (1000, 1)), None)
        command = f"{sys.executable} -m wolfstream predict {model} {file} --decision | head -n 2"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
        )
        assert len(done.stdout.splitlines()) == 2
        assert "Traceback" not in done.stderr
        assert "Error" not in done.stderr

    def test_full_output_is_named(self, model: Path, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, None)
        command = [sys.executable, "-m", "wolfstream", "predict", str(model), str(file)]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert done.stderr.endswith("Error: standard output: No space left on device\n")

    @pytest.mark.parametrize(
        ("content", "detail"),
        [
            ("a,y\n1,2\n", "'b' is missing"),
            ("1,2\n", "there is no header, and the first row is 1, 2"),
            ("1,2,3,4,5\n", "say which one has the labels, as label=NAME or --label NAME"),
            ("", "is empty"),
            ("1,2,x\n1,2,3\n", "'x' is not a finite number"),
            ("1,2,3\n1,2\n", "line 2: has 2 columns"),
        ],
    )
    def test_rows_that_do_not_fit(self, model: Path, tmp_path: Path, content: str, detail: str):
        (tmp_path / "a.csv").write_text(content)
        assert detail in error_line(run("predict", model, tmp_path / "a.csv"))

    def test_svmlight_rows_wider_than_a_dense_model(self, model: Path, tmp_path: Path):
        (tmp_path / "a.svm").write_text("0 1:1 4:1\n")
        result = run("predict", model, tmp_path / "a.svm")
        assert "indices go up to 4: more than 3 features" in error_line(result)

    def test_options_that_exclude_each_other(self, model: Path, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, None)
        assert run("predict", model, file, "--no-labels", "--label", "1").exit_code == 2

    def test_what_is_no_model(self, model: Path, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, None)
        assert "is not a model file of this version" in error_line(run("predict", file, file))
        damaged = bytearray(model.read_bytes())
        damaged[-9] ^= 4
        (tmp_path / "m").write_bytes(damaged)
        assert "does not match its checksum" in error_line(run("predict", tmp_path / "m", file))

    def test_a_snapshot_of_a_server_that_has_met_one_class(self, tmp_path: Path):
        untrained = Learner(Model(1, "m", read_papers_spec({"asset": None})))
        write_state(tmp_path / "m", State(*untrained.state()))
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, None)
        assert "two classes are needed" in error_line(run("predict", tmp_path / "m", file))


class TestEvaluate:
    def test_counts_are_those_of_the_predictions(
        self, model: Path, tmp_path: Path, expected: tuple[list[Label], list]
    ):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, HELD_BACK.y)
        result = run("evaluate", model, file)
        assert result.exit_code == 0
        right = np.mean([a == b for a, b in zip(expected.prediction, HELD_BACK.y, strict=True)])
        kappa = cohen_kappa_score(HELD_BACK.y, expected.prediction)
        assert f"accuracy {right:.2%}, kappa {kappa:.4f} of 40 samples" in result.stdout
        assert re.search(r"[\d,]+ rows/s", result.stdout)
        assert "trained by msfw on 300 samples" in result.stdout
        matrix = [line.split() for line in result.stdout.splitlines()[-3:]]
        for row, given in zip(matrix, (0, 10, 20), strict=True):
            counts = [int(n.replace(".", "0")) for n in row[1:]]
            pairs = list(zip(HELD_BACK.y, expected.prediction, strict=True))
            assert counts == [pairs.count((given, said)) for said in (0, 10, 20)]

    def test_a_server_snapshot_is_a_model_file_too(self, tmp_path: Path):
        live = Learner(Model(1, "m", read_papers_spec({})))
        live.absorb("working_set", STREAM)
        write_state(tmp_path / "m", State(*live.state()))
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, HELD_BACK.y)
        result = run("evaluate", tmp_path / "m", file)
        assert result.exit_code == 0
        assert "a snapshot of a server at sequence 300" in result.stdout

    def test_labels_are_needed(self, model: Path, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X, None)
        assert "say which one has the labels" in error_line(run("evaluate", model, file))

    def test_labels_are_shown_as_they_are(self):
        """A table takes [b] for markup, and a terminal obeys escape sequences."""
        result = Evaluation(["[/x]", "[b]c"])
        result.count(["\x1b]0;owned\x07"], ["[b]c"])
        console = Console(file=io.StringIO(), width=200)
        for table in tables(result):
            console.print(table)
        assert isinstance(console.file, io.StringIO)
        shown = console.file.getvalue()
        assert r"\x1b]0;owned\x07 (unknown to the model)" in shown
        assert shown.replace("\n", "").isprintable()
        assert shown.count("[/x]") == shown.count("[b]c") == 3

    def test_precision_recall_and_labels_that_the_model_does_not_know(self):
        result = Evaluation(["a", "b"])
        result.count(["a", "a", "b", "c"], ["a", "b", "b", "b"])
        assert (result.samples, result.accuracy) == (4, 0.5)
        names = "support", "precision", "recall", "f1"
        found = {k: [of[n] for n in names] for k, of in result.scores()["classes"].items()}
        assert found == {
            "a": [2, 1.0, 0.5, 2 / 3],
            "b": [1, 1 / 3, 1.0, 0.5],
            "c": [1, None, 0.0, 0.0],
        }
        by_class, matrix = tables(result)
        assert (by_class.row_count, matrix.row_count) == (3, 3)
        assert result.kappa == pytest.approx(cohen_kappa_score([*"aabc"], [*"abbb"]))

    def test_ranks_of_a_file_are_those_of_scikit_learn(self):
        random = np.random.default_rng(0)
        p = random.beta(0.3, 3.0, 2000)
        fraud = random.random(2000) < p
        result = Evaluation(["ok", "fraud"])
        for part in np.array_split(np.arange(2000), 7):
            labels = ["fraud" if one else "ok" for one in fraud[part]]
            result.count(labels, ["ok"] * len(part), np.column_stack([1.0 - p, p])[part])
        scores = result.scores()
        assert scores["roc_auc"] == pytest.approx(roc_auc_score(fraud, p), abs=0.003)
        expected = average_precision_score(fraud, p)
        assert scores["average_precision"] == pytest.approx(expected, abs=0.006)
        text = f"always the most frequent label {1.0 - fraud.mean():.2%}, balanced accuracy 50.00%"
        assert balance(scores).startswith(text)

    def test_kappa_of_one_class_is_not_told(self):
        result = Evaluation(["a", "b"])
        assert result.kappa is None
        result.count(["a", "a"], ["a", "a"])
        assert result.kappa is None
        assert result.to_text() == "accuracy 100.00%, kappa -"

    def test_the_heading_of_a_small_confusion_matrix_is_one_line(self):
        result = Evaluation(["a", "b"])
        result.count(["a", "b"], ["a", "a"])
        matrix = tables(result)[1]
        assert (matrix.title, matrix.columns[0].header) == (None, "label \\ prediction")

    def test_a_large_confusion_matrix_is_left_out(self):
        result = Evaluation(list(range(21)))
        result.count([1], [2])
        assert len(tables(result)) == 1
