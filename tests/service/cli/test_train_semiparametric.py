"""`wolfstream train --algorithm semiparametric`: a fit of a file, served, judged and refitted."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.service.heads.test_refit_served import post, refitted, wave
from tests.service.process import ServerProcess
from tests.service.specs import read_papers_spec
from wolfstream.service.cli.main import main
from wolfstream.service.heads.semiparametric import SemiparametricHead
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import load_model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.storage.snapshot_format import State, read_state, write_state
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.semiparametric.basis import Basis, training_matrix
from wolfstream.solver.semiparametric.regression import SemiparametricSettings, solve_semiparametric

TURN = repr(2 * np.pi)
BASES = ("--basis", f"sin:period={TURN}", "--basis", f"sinc:centre=5,scale={TURN}")


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(main, [command, *map(str, arguments)], prog_name="wolfstream")


def train(file: Path, *arguments: object) -> Result:
    out = file.with_suffix(".model")
    return run("train", file, "--model", out, "--algorithm", "semiparametric", *arguments)


def trained(file: Path, *arguments: object) -> Path:
    result = train(file, *arguments)
    assert result.exit_code == 0, result.output
    return file.with_suffix(".model")


def refused(file: Path, *arguments: object) -> str:
    result = train(file, *arguments)
    assert result.exit_code != 0
    assert not file.with_suffix(".model").exists()
    line: str = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


def head(learner: Learner) -> SemiparametricHead:
    found = learner.heads["semiparametric"]
    assert isinstance(found, SemiparametricHead)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    X, y = wave(500)
    np.savez(tmp_path / "waves.npz", X=X, y=y)
    return tmp_path / "waves.npz"


class TestTrains:
    def test_what_the_library_makes_of_the_file(self, file: Path):
        out = trained(file, *BASES, "--gamma", 0.25, "--epsilon", 0.05, "--C", 2, "--tol", 1e-5)
        X, y = wave(500)
        bases = [Basis("sin"), Basis("sinc", centre=5.0, scale=2 * np.pi)]
        settings = SemiparametricSettings(Kernel("rbf", 0.25), 2.0, 0.05, tol=1e-5)
        solution = solve_semiparametric(X, y, training_matrix(bases, X), settings)
        record = read_state(out).plain["trained"]
        assert [part["beta"] for part in record["beta"]] == solution.beta.tolist()
        assert record["kkt_violation"] == solution.kkt_violation <= 1e-5
        assert (record["samples"], record["task"]) == (500, "regression")
        learner = load_model(out).learner
        assert (learner.model.spec.serve, learner.sequence) == ("semiparametric", 500)
        kept_X, kept_y, weight = head(learner).window()
        np.testing.assert_array_equal(kept_X, X)
        np.testing.assert_array_equal(kept_y, y)
        assert weight is None

    def test_an_intercept_unless_a_basis_is_given(self, file: Path):
        spec = load_model(trained(file)).model.spec
        assert spec.plain()["semiparametric"]["basis"] == [{"type": "constant"}]

    @pytest.mark.parametrize(("given", "expected"), [((), 2000), (("--window", 40), 40)])
    def test_the_last_samples_are_kept(self, file: Path, given: Any, expected: int):
        learner = load_model(trained(file, *given)).learner
        assert learner.model.spec.plain()["semiparametric"]["window"] == expected
        assert len(head(learner).window()[1]) == min(expected, 500)

    def test_the_other_solver_and_kernel_agree(self, file: Path):
        said = []
        for solver in ("pdsg", "mpd"):
            given = ("--kernel", "polynomial", "--solver", solver, "--tol", 1e-6, "--force")
            model = load_model(trained(file, *given)).model
            said.append(model.published.heads["semiparametric"].predict(wave(50)[0]).prediction)
        np.testing.assert_allclose(*said, atol=1e-3)

    def test_sparse_rows_are_made_dense(self, tmp_path: Path):
        lines = [f"{y} 1:{x}" for x, y in zip(*(a.ravel() for a in wave(60)), strict=True)]
        (tmp_path / "a.svm").write_text("\n".join(lines))
        model = load_model(trained(tmp_path / "a.svm", "--basis", "trend")).model
        assert model.published.rows.names is None

    def test_the_summary_shows_the_formula(self, file: Path):
        said = train(file, "--basis", "constant", "--basis", "trend:feature=0").output
        assert "regression" in said
        assert "y = kernel part" in said
        assert "trend(feature 0)" in said

    def test_predict_and_evaluate(self, file: Path, tmp_path: Path):
        out = trained(file, *BASES, "--gamma", 0.25, "--epsilon", 0.05)
        X, y = wave(200, seed=1)
        np.savez(tmp_path / "test.npz", X=X, y=y)
        told = run("evaluate", out, tmp_path / "test.npz")
        assert told.exit_code == 0, told.output
        assert "trained by semiparametric on 500 samples" in told.output
        rows = run("predict", out, tmp_path / "test.npz").output.splitlines()
        said = load_model(out).model.published.heads["semiparametric"].predict(X).prediction
        assert [float(row) for row in rows[1:]] == said
        assert f"MAE {np.abs(said - y).mean():.6g}" in told.output
        assert np.abs(said - y).mean() < 0.2


class TestRefuses:
    @pytest.mark.parametrize(
        "basis",
        [
            "sin:",
            "sin:period",
            "sin:period=",
            "sin:period=day",
            "sin:feature=0.5,period=1",
            "sin:period=1,period=2",
            "sin:period=nan",
            "trend:feature=0,",
        ],
    )
    def test_what_is_no_basis(self, file: Path, basis: str):
        assert "TYPE:NAME=NUMBER" in refused(file, "--basis", basis)

    @pytest.mark.parametrize(
        ("basis", "place"),
        [
            ("wavelet", "/semiparametric/basis/0:"),
            ("sin", "/semiparametric/basis/0/period"),
            ("sin:period=-1", "/semiparametric/basis/0/period"),
            ("constant:feature=0", "/semiparametric/basis/0/feature"),
            ("trend:feature=-1", "/semiparametric/basis/0/feature"),
        ],
    )
    def test_what_the_spec_refuses(self, file: Path, basis: str, place: str):
        assert place in refused(file, "--basis", basis)

    def test_a_feature_that_the_file_does_not_have(self, file: Path):
        assert "feature 3 of a basis" in refused(file, "--basis", "trend:feature=3")

    def test_bases_that_depend_on_each_other(self, file: Path):
        given = ("--basis", "trend", "--basis", "trend:feature=0")
        assert "is a combination of basis 0" in refused(file, *given)

    def test_more_bases_than_samples(self, tmp_path: Path):
        np.savez(tmp_path / "a.npz", X=[[1.0], [2.0]], y=[1.0, 3.0])
        given = ("--basis", "constant", "--basis", "trend")
        assert "need more than 2 rows" in refused(tmp_path / "a.npz", *given)

    def test_words_for_numbers(self, tmp_path: Path):
        (tmp_path / "a.csv").write_text("1,low\n2,high\n")
        assert "a.csv" in refused(tmp_path / "a.csv")

    @pytest.mark.parametrize(
        ("arguments", "useless"),
        [
            (("--epochs", 2), "--epochs"),
            (("--max-iter", 5), "--max-iter"),
            (("--lambda", 0.1), "--lambda"),
            (("--class-weight", "balanced"), "--class-weight"),
            (("--task", "classification"), "--task regression"),
        ],
    )
    def test_options_without_a_part_in_it(self, file: Path, arguments: Any, useless: str):
        assert useless in refused(file, *arguments)

    @pytest.mark.parametrize("algorithm", ["msfw", "asset", "fw"])
    def test_a_basis_of_another_algorithm(self, file: Path, algorithm: str):
        given = ("--algorithm", algorithm, "--basis", "trend")
        assert f"--basis is not used by --algorithm {algorithm}" in refused(file, *given)


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_a_replay_fills_the_window(server: ServerProcess, name: str, file: Path, transport: str):
    spec = '{"task": "regression", "asset": null, "semiparametric": {"window": 300}}'
    given = ("--url", server.url, "--model", name, "--transport", transport)
    told = run("replay", file, *given, "--spec", spec)
    assert told.exit_code == 0, told.output
    assert "semiparametric: 500 samples" in told.output
    with httpx.Client(base_url=server.url, timeout=30) as client:
        job = refitted(client, name)
    assert (job["sequence"], job["samples"]) == (500, 300)


def test_a_model_that_was_never_fitted_predicts_no_file(file: Path, tmp_path: Path):
    spec = read_papers_spec({"task": "regression", "asset": None, "semiparametric": {}})
    learner = Learner(Model(1, "m", spec))
    learner.absorb("semiparametric", Samples(*wave(20)))
    write_state(tmp_path / "m.model", State(*learner.state()))
    told = run("evaluate", tmp_path / "m.model", file)
    assert told.exit_code == 1
    assert "has not been fitted yet" in told.stderr


def test_a_server_loads_it_and_refits_it_with_what_comes(file: Path, tmp_path: Path):
    out = trained(file, *BASES, "--gamma", 0.25, "--epsilon", 0.05, "--window", 600)
    expected = (
        load_model(out).model.published.heads["semiparametric"].predict(wave(30)[0]).prediction
    )
    server = ServerProcess(tmp_path / "data").start("--load", str(out))
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            sent = {"x": wave(30)[0].tolist()}
            answer = client.post("/v1/models/waves/predict", json=sent).raise_for_status()
            assert answer.json()["prediction"] == expected
            post(client, "waves", *wave(200, seed=1))
            job = refitted(client, "waves")
            assert (job["sequence"], job["samples"]) == (700, 600)
            after = client.post("/v1/models/waves/predict", json=sent).json()["prediction"]
            assert after != expected
    finally:
        server.close()
