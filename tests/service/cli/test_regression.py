"""Regression from files: `train`, `predict`, `evaluate` and `replay` with numbers for labels."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.service.process import ServerProcess
from tests.service.streams import curve, part, three_classes
from wolfstream.service.cli.main import main
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.offline.evaluation import RegressionEvaluation
from wolfstream.service.recovery.model_files import load_model
from wolfstream.service.storage.snapshot_format import State, read_state, write_state

STREAM = curve(1500)
HELD_BACK = curve(200, seed=1)
LAMBDA = ["--lambda", "1e-3"]

ASSET_ALONE = '{"task": "regression", "adaptive": null}'


def run(command: str, *arguments: object) -> Result:
    if command == "train" and "--algorithm" not in arguments:
        arguments += ("--algorithm", "asset")
    return CliRunner().invoke(main, [command, *map(str, arguments)], prog_name="wolfstream")


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def error_line(result: Result, code: int = 1) -> str:
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


def write_csv(path: Path, X: Any, y: Any) -> Path:
    rows = [[*map(repr, row), str(value)] for row, value in zip(X.tolist(), y, strict=True)]
    header = ",".join([*"abcdefgh"[: X.shape[1]], "y"])
    path.write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    return path


def write_svm(path: Path, X: Any, y: Any) -> Path:
    lines = []
    for row, value in zip(X.tolist(), y.tolist(), strict=True):
        lines.append(f"{value!r} " + " ".join(f"{k + 1}:{v!r}" for k, v in enumerate(row)))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stream as CSV, svmlight and npz, and what is held back as CSV."""
    folder = tmp_path_factory.mktemp("regression")
    write_csv(folder / "a.csv", STREAM.X, STREAM.y.tolist())
    write_csv(folder / "held.csv", HELD_BACK.X, HELD_BACK.y.tolist())
    write_svm(folder / "a.svm", STREAM.X, STREAM.y)
    np.savez(folder / "a.npz", X=STREAM.X, y=STREAM.y)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    out = folder / "surface.model"
    done(run("train", folder / "a.csv", "--model", out, "--task", "regression", *LAMBDA))
    return out


class TestTrain:
    @pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.svm"])
    @pytest.mark.parametrize("algorithm", ["asset", "asset*"])
    def test_the_file_is_what_a_server_would_have_learned(
        self, folder: Path, tmp_path: Path, name: str, algorithm: str
    ):
        out = tmp_path / "m"
        options = ["--task", "regression", "--algorithm", algorithm, *LAMBDA]
        said = done(run("train", folder / name, "--model", out, *options))
        assert "1,500 samples, 3 features" in said
        assert f"1,500 steps of {algorithm} on 512 features" in said
        assert re.search(r"just before they were learned: MAE [\d.]+, RMSE [\d.]+", said)
        state, loaded = read_state(out), load_model(out)
        assert loaded.sparse == (name == "a.svm")
        assert loaded.model.spec.task == "regression"
        if name != "a.svm":
            server = Learner(Model(1, "m", loaded.model.spec))
            for start in range(0, 1500, 1024):
                server.absorb("asset", part(STREAM, start, start + 1024))
            _, arrays = server.state()
            # A file with a header has columns, of which more is known than of arrays.
            learned = {key for key in state.arrays if not key.startswith("columns_")}
            assert learned == arrays.keys()
            for key, array in arrays.items():
                np.testing.assert_array_equal(state.arrays[key], array, err_msg=key)

    def test_a_working_set_learns_numbers_as_a_server_does(self, folder: Path, tmp_path: Path):
        out, options = tmp_path / "m", ["--task", "regression", "--algorithm", "msfw"]
        own = ["--epsilon", "0.05", "--corrective-steps", "5", "--max-size", "200"]
        said = done(run("train", folder / "a.npz", "--model", out, *options, *own))
        assert re.search(r"just before they were learned: MAE [\d.]+, RMSE [\d.]+", said)
        assert re.search(r"[\d,]+ support vectors, \d+ samples in the set\nobjective", said)
        assert "trained by msfw on 1,500 samples" in done(run("evaluate", out, folder / "held.csv"))
        state, loaded = read_state(out), load_model(out)
        set_of = loaded.model.spec.working_set
        assert set_of is not None
        assert (set_of.epsilon, set_of.corrective_steps, set_of.max_size) == (0.05, 5, 200)
        server = Learner(Model(1, "m", loaded.model.spec))
        for start in range(0, 1500, 1024):
            server.absorb("working_set", part(STREAM, start, start + 1024))
        _, arrays = server.state()
        assert state.arrays.keys() == arrays.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(state.arrays[key], array, err_msg=key)

    def test_passes_of_a_working_set_over_few_numbers(self, tmp_path: Path):
        few = part(STREAM, 0, 60)
        np.savez(tmp_path / "few.npz", X=few.X, y=few.y)
        gaps = []
        for epochs in (2, 20):
            options = ["--task", "regression", "--algorithm", "sfw", "--epochs", epochs, "--force"]
            done(run("train", tmp_path / "few.npz", "--model", tmp_path / "m", *options))
            own = load_model(tmp_path / "m").model.published.heads["working_set"].stats
            assert own["size"] <= 60
            gaps.append(own["gap"])
        assert gaps[1] < 0.5 * gaps[0]

    def test_more_passes_fit_better(self, folder: Path, tmp_path: Path):
        scores = []
        for epochs in (1, 8):
            options = ["--task", "regression", *LAMBDA, "--epochs", epochs, "--shuffle"]
            held = ["--test", folder / "held.csv"]
            said = done(
                run(
                    "train", folder / "a.npz", "--model", tmp_path / "m", "--force", *options, *held
                )
            )
            scores.append(float(re.search(r"\nMAE ([\d.]+),", said)[1]))
        assert scores[1] < scores[0] < np.std(HELD_BACK.y)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--kernel", "linear"], ("identity", None, 0.1, None)),
            (["--kernel", "polynomial", "--dimension", "20"], ("nystrom", 20, 0.1, None)),
            (["--features", "nystrom", "--dimension", "30"], ("nystrom", 30, 0.1, None)),
            (["--epsilon", "0.5", "--horizon", "500"], ("fourier", 512, 0.5, 500)),
        ],
    )
    def test_options_stand_in_the_spec(
        self, folder: Path, tmp_path: Path, options: list[str], expected: Any
    ):
        arguments = ["--task", "regression", *LAMBDA, *options]
        done(run("train", folder / "a.npz", "--model", tmp_path / "m", *arguments))
        asset = load_model(tmp_path / "m").model.spec.asset
        assert asset is not None
        assert (asset.features, asset.dimension, asset.epsilon, asset.horizon) == expected
        assert asset.lam == 1e-3

    @pytest.mark.parametrize("features", ["fourier", "nystrom"])
    def test_asset_learns_classes_too(self, tmp_path: Path, features: str):
        samples = three_classes(600)
        file = write_csv(tmp_path / "a.csv", samples.X, samples.y)
        options = ["--algorithm", "asset", "--features", features, "--dimension", 50, *LAMBDA]
        said = done(run("train", file, "--model", tmp_path / "m", *options, "--test", file))
        assert "3 classes" in said
        assert "% predicted right just before they were learned" in said
        accuracy = re.search(r"accuracy ([\d.]+)%, kappa 0\.\d+ on 600 samples", said)
        assert float(accuracy[1]) > 80
        loaded = load_model(tmp_path / "m").model
        assert loaded.spec.working_set is None
        assert loaded.published.heads["asset"].classes == tuple(dict.fromkeys(samples.y))
        assert "by asset on 600 samples" in done(run("evaluate", tmp_path / "m", file))

    @pytest.mark.parametrize(
        ("arguments", "detail"),
        [
            (
                ["--task", "regression", "--algorithm", "partan"],
                "needs msfw, sfw, asset, asset*, semiparametric",
            ),
            (["--task", "regression", "--C", "2"], "--C is not used by --algorithm asset"),
            (["--task", "regression", "--tol", "1"], "--tol is not used by --algorithm asset"),
            (["--algorithm", "asset", "--max-size", "9"], "--max-size is not used"),
            (["--algorithm", "asset", "--epsilon", "0.1"], "not used by --task classification"),
            (["--epsilon", "0.1"], "not used by --task classification"),
            (
                ["--algorithm", "msfw", "--lambda", "0.1"],
                "--lambda is not used by --algorithm msfw",
            ),
            (["--algorithm", "fw", "--features", "nystrom"], "--features is not used"),
            (["--task", "regression", "--lambda", "0"], "lambda"),
        ],
    )
    def test_wrong_usage(self, folder: Path, arguments: list[str], detail: str):
        result = run("train", folder / "a.npz", "--model", folder / "none", *arguments)
        assert detail in error_line(result, code=2)
        assert not (folder / "none").exists()

    def test_what_the_spec_refuses_is_said_with_its_place(self, folder: Path):
        options = ["--task", "regression", "--kernel", "linear", "--features", "fourier"]
        result = run("train", folder / "a.npz", "--model", folder / "none", *options)
        assert "/asset/features: Fourier features are of the rbf kernel" in error_line(result)

    @pytest.mark.parametrize(
        ("content", "detail"),
        [
            ("a,y\n1,2\n2,high\n3,x\n", "the label of sample 2 is 'high', not a number"),
            ("a,y\n1,2\n2,\n", "line 3: the label is missing"),
            ("a,y\n1,2\n2,inf\n", "line 3: the label is inf"),
            ("a,y\n1,2\n2,1e101\n", "y of sample 2 is 1e+101: beyond 1e+100"),
        ],
    )
    def test_labels_that_are_not_numbers(self, tmp_path: Path, content: str, detail: str):
        (tmp_path / "a.csv").write_text(content)
        options = ["--model", tmp_path / "m", "--task", "regression"]
        assert detail in error_line(run("train", tmp_path / "a.csv", *options))
        assert not (tmp_path / "m").exists()

    def test_text_in_an_npz_file_is_not_a_number(self, tmp_path: Path):
        np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), y=np.array(["1", "b"]))
        options = ["--model", tmp_path / "m", "--task", "regression"]
        assert "the label of sample 2 is 'b'" in error_line(
            run("train", tmp_path / "a.npz", *options)
        )

    def test_numbers_with_fractions_are_not_classes(self, folder: Path):
        result = run("train", folder / "a.csv", "--model", folder / "none")
        assert "--task regression does that" in error_line(result)


class TestPredictAndEvaluate:
    def test_predictions_are_numbers(self, model: Path, folder: Path):
        rows = list(csv.reader(io.StringIO(done(run("predict", model, folder / "held.csv")))))
        expected = load_model(model).model.published.heads["asset"].predict(HELD_BACK.X).prediction
        assert rows[0] == ["prediction"]
        assert [float(row[0]) for row in rows[1:]] == expected

    def test_its_decision_is_its_prediction(self, model: Path, folder: Path):
        result = run("predict", model, folder / "held.csv", "--decision")
        assert "--decision is for classes" in error_line(result)

    def test_errors_are_those_of_the_predictions(self, model: Path, folder: Path):
        said = done(run("evaluate", model, folder / "held.csv"))
        predicted = load_model(model).model.published.heads["asset"].predict(HELD_BACK.X).prediction
        errors = np.array(predicted) - HELD_BACK.y
        r2 = 1.0 - np.square(errors).sum() / np.square(HELD_BACK.y - HELD_BACK.y.mean()).sum()
        assert r2 > 0.5
        expected = f"MAE {np.abs(errors).mean():.6g}, RMSE {np.sqrt(np.square(errors).mean()):.6g}"
        assert f"{expected}, R2 {r2:.4f} of 200 samples" in said
        assert "trained by asset on 1,500 samples" in said
        assert "regression, 3 features, 1,500 steps" in said
        assert len(said.splitlines()) == 2

    def test_labels_must_be_numbers(self, model: Path, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X[:3], ["1.5", "low", "2"])
        assert "the label of sample 2 is 'low'" in error_line(run("evaluate", model, file))

    def test_a_snapshot_of_a_server_without_samples(self, model: Path, tmp_path: Path):
        untrained = Learner(Model(1, "m", load_model(model).model.spec))
        write_state(tmp_path / "m", State(*untrained.state()))
        result = run("predict", tmp_path / "m", tmp_path / "m")
        assert "has met no sample: one is needed" in error_line(result)

    def test_errors_with_a_large_mean_keep_their_digits(self):
        result = RegressionEvaluation()
        assert result.r2 is None
        y = 1e9 + np.random.default_rng(0).standard_normal(1000)
        said = y + 0.5
        result.count(y[:400], said[:400])
        result.count(y[400:], said[400:])
        assert (result.samples, result.mae) == (1000, pytest.approx(0.5))
        assert result.rmse == pytest.approx(0.5)
        assert result.r2 == pytest.approx(1.0 - 0.25 / y.var(), rel=1e-6)

    def test_errors_too_large_to_square_are_infinite(self):
        result = RegressionEvaluation()
        result.count([1e200, 3.0], [1.0, 2.0])
        assert (result.mae, result.rmse, result.r2) == (5e199, np.inf, None)

    def test_equal_targets_have_no_r2(self):
        result = RegressionEvaluation()
        result.count([2.0, 2.0], [1.0, 2.0])
        assert result.to_text() == "MAE 0.5, RMSE 0.707107, R2 -"


def test_a_server_loads_it_and_goes_on(model: Path, tmp_path: Path):
    running = ServerProcess(tmp_path / "data").start("--load", str(model))
    try:
        url = f"{running.url}/v1/models/surface"
        told = httpx.get(url).json()
        assert (told["sequence"], told["heads"]["asset"]["steps"]) == (1500, 1500)
        rows = HELD_BACK.X[:30]
        said = httpx.post(f"{url}/predict", json={"x": rows.tolist()}).json()["prediction"]
        assert said == load_model(model).model.published.heads["asset"].predict(rows).prediction
        learned = {"x": rows.tolist(), "y": HELD_BACK.y[:30].tolist()}
        answer = httpx.post(f"{url}/asset", json=learned).raise_for_status().json()
        assert answer["sequence"] == 1530
        assert answer["results"]["prediction"][0] == pytest.approx(said[0])
    finally:
        running.close()


class TestReplay:
    @pytest.mark.parametrize("transport", ["http", "websocket"])
    def test_a_stream_of_numbers(
        self, server: ServerProcess, name: str, folder: Path, transport: str
    ):
        common = ["--url", server.url, "--model", name, "--transport", transport]
        spec = ["--spec", '{"task": "regression", "adaptive": null, "asset": {"lambda": 0.001}}']
        said = done(run("replay", folder / "a.csv", *common, *spec, "--limit", 1000))
        told = httpx.get(f"{server.url}/v1/models/{name}").json()["heads"]["asset"]
        mae = told["prequential"]["mae"]
        assert "asset: 1,000 samples in" in said
        assert f", MAE {mae:.4g} of 999 predictions" in said
        done(run("replay", folder / "a.npz", *common, "--skip", 1000))
        again = httpx.get(f"{server.url}/v1/models/{name}").json()
        assert again["sequence"] == 1500

    def test_whole_numbers_of_a_file_are_numbers(
        self, server: ServerProcess, name: str, tmp_path: Path
    ):
        (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"{i},{3 * i}\n" for i in range(200)))
        common = ["--url", server.url, "--model", name]
        spec = ["--spec", '{"task": "regression", "kernel": {"type": "linear"}}']
        assert "of 199 predictions" in done(run("replay", tmp_path / "a.csv", *common, *spec))

    def test_labels_that_are_not_numbers(self, server: ServerProcess, name: str, tmp_path: Path):
        file = write_csv(tmp_path / "a.csv", HELD_BACK.X[:3], ["1.5", "2", "low"])
        common = [
            "--url",
            server.url,
            "--model",
            name,
            "--spec",
            '{"task": "regression", "adaptive": null}',
        ]
        line = error_line(run("replay", file, *common))
        assert "the task is regression, but the label of sample 3 is 'low', not a number" in line
        assert httpx.get(f"{server.url}/v1/models/{name}").json()["sequence"] == 0

    def test_numbers_for_a_model_of_classes(self, server: ServerProcess, name: str, folder: Path):
        line = error_line(run("replay", folder / "a.csv", "--url", server.url, "--model", name))
        assert '"task": "regression"' in line

    def test_the_set_does_not_regress(self, server: ServerProcess, name: str, folder: Path):
        common = [
            "--url",
            server.url,
            "--model",
            name,
            "--spec",
            '{"task": "regression", "adaptive": null}',
        ]
        line = error_line(run("replay", folder / "a.csv", *common, "--head", "both"))
        assert "null for working_set" in line
