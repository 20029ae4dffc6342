"""Refits over real sockets: asked for, followed, served; learning goes on meanwhile."""

import asyncio
import json
import time
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.asyncio.client import connect

from tests.service.process import ServerProcess
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.semiparametric.basis import basis_from_data, training_matrix
from wolfstream.solver.semiparametric.regression import (
    SemiparametricSettings,
    SemiparametricSolution,
    solve_semiparametric,
)
from wolfstream.solver.semiparametric.view import predict_semiparametric, view_of

BASIS = [
    {"type": "sin", "feature": 0, "period": 2 * np.pi},
    {"type": "sinc", "feature": 0, "centre": 5.0, "scale": 2 * np.pi},
]
FITTED = {"basis": BASIS, "epsilon": 0.05, "kernel": {"gamma": 0.25}}
SPEC = {"task": "regression", "asset": None, "semiparametric": FITTED}
BASES = [basis_from_data(basis) for basis in BASIS]
# Seconds from the end, and never at its tolerance: a test that looks at it is over by then.
ENDLESS = {
    "task": "regression",
    "asset": {"dimension": 16},
    "semiparametric": {
        "C": 1e6,
        "epsilon": 0.0,
        "tol": 1e-9,
        "window": 4000,
        "kernel": {"gamma": 1},
    },
}
GRID = np.linspace(0.0, 10.0, 50)[:, None]


def wave(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """P3's test problem: sin(x) + sinc(2 pi (x - 5)) and noise."""
    random = np.random.default_rng(seed)
    x = random.uniform(0.0, 10.0, n)
    return x[:, None], np.sin(x) + np.sinc(2 * (x - 5)) + 0.2 * random.standard_normal(n)


def of_the_library(X: np.ndarray, y: np.ndarray) -> SemiparametricSolution:
    """What SPEC makes of a window, without a server."""
    settings = SemiparametricSettings(Kernel("rbf", 0.25), 1.0, 0.05)
    return solve_semiparametric(X, y, training_matrix(BASES, X), settings)


def post(
    client: httpx.Client, name: str, X: np.ndarray, y: np.ndarray, call: str = "samples"
) -> dict[str, Any]:
    sent = {"x": X.tolist(), "y": y.tolist()}
    answer = client.post(f"/v1/models/{name}/{call}", json=sent)
    told: dict[str, Any] = answer.raise_for_status().json()
    return told


def ask(client: httpx.Client, name: str) -> dict[str, Any]:
    answer = client.post(f"/v1/models/{name}/refit")
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    assert answer.headers["location"] == job["href"] == f"/v1/models/{name}/jobs/{job['job']}"
    return job


def ended(client: httpx.Client, job: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while job["status"] in ("queued", "running"):
        assert time.monotonic() < deadline, job
        time.sleep(0.01)
        job = client.get(job["href"]).raise_for_status().json()
    return job


def refitted(client: httpx.Client, name: str) -> dict[str, Any]:
    job = ended(client, ask(client, name))
    assert job["status"] == "done", job
    return job


def running(client: httpx.Client, job: dict[str, Any]) -> dict[str, Any]:
    """The job once its solver has reported."""
    deadline = time.monotonic() + 60
    while not job["progress"]:
        assert time.monotonic() < deadline, job
        time.sleep(0.01)
        job = client.get(job["href"]).raise_for_status().json()
    assert job["status"] == "running"
    return job


def said(client: httpx.Client, name: str, X: np.ndarray = GRID) -> list[float]:
    answer = client.post(f"/v1/models/{name}/predict?head=semiparametric", json={"x": X.tolist()})
    prediction: list[float] = answer.raise_for_status().json()["prediction"]
    return prediction


def head(client: httpx.Client, name: str) -> dict[str, Any]:
    told: dict[str, Any] = client.get(f"/v1/models/{name}").json()["heads"]["semiparametric"]
    return told


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    return told


@pytest.fixture
def model(client: httpx.Client, name: str) -> str:
    client.put(f"/v1/models/{name}", json=SPEC).raise_for_status()
    return name


@pytest.fixture
def endless(client: httpx.Client, name: str) -> Any:
    """A model with a full window, whose refit does not end."""
    client.put(f"/v1/models/{name}", json=ENDLESS).raise_for_status()
    random = np.random.default_rng(3)
    X = random.uniform(0.0, 10.0, (4000, 2))
    post(client, name, X, np.sin(X[:, 0]) + random.standard_normal(4000))
    yield name
    client.delete(f"/v1/models/{name}")


class TestOneRefit:
    def test_it_is_what_the_library_makes_of_the_same_window(
        self, client: httpx.Client, model: str
    ) -> None:
        X, y = wave(700)
        post(client, model, X[:300], y[:300])
        post(client, model, X[300:], y[300:])
        job = refitted(client, model)
        solution = of_the_library(X, y)
        result = job["result"]
        assert [part["beta"] for part in result["beta"]] == solution.beta.tolist()
        assert [part["basis"] for part in result["beta"]] == BASIS
        assert result["kkt_violation"] == solution.kkt_violation <= 1e-3
        assert result["n_iter"] == solution.n_iter
        assert (result["sequence"], result["samples"]) == (700, 700)
        np.testing.assert_allclose(solution.beta, [1.0, 1.0], atol=0.15)
        answer = client.post(f"/v1/models/{model}/predict", json={"x": GRID.tolist()}).json()
        assert answer["fit"] == {"job": job["job"], "sequence": 700}
        view = view_of(solution, X, BASES)
        assert result["support_vectors"] == len(view.dual_coef)
        assert said(client, model) == predict_semiparametric(view, GRID).tolist()

    def test_its_job_tells_what_was_fitted_and_how_far_it_is(
        self, client: httpx.Client, model: str
    ) -> None:
        post(client, model, *wave(600))
        asked = ask(client, model)
        assert asked["model"] == model
        job = ended(client, asked)
        assert (job["sequence"], job["samples"], job["error"]) == (600, 600, None)
        assert job["progress"]["tol"] == 1e-3
        assert job["progress"]["kkt_violation"] <= 1e-3
        assert job["progress"]["iteration"] == job["result"]["n_iter"]
        assert 0.0 < job["seconds"] < 60.0
        assert client.get(f"/v1/models/{model}/jobs").json() == {"jobs": [job]}

    def test_the_description_names_the_fit_that_is_served(
        self, client: httpx.Client, model: str
    ) -> None:
        assert head(client, model)["fit"] is None
        post(client, model, *wave(300))
        told = head(client, model)
        assert (told["window"], told["fit"]) == (300, None)
        scores = told["prequential"]
        assert scores.pop("samples") == 0
        assert set(scores.values()) == {None}
        job = refitted(client, model)
        post(client, model, *wave(100, seed=1))
        told = head(client, model)
        assert told["window"] == 400
        assert told["fit"] == job["result"]
        assert (told["fit"]["job"], told["fit"]["sequence"]) == (job["job"], 300)

    def test_it_does_not_move_the_sequence(self, client: httpx.Client, model: str) -> None:
        post(client, model, *wave(50))
        refitted(client, model)
        assert client.get(f"/v1/models/{model}").json()["sequence"] == 50
        assert post(client, model, *wave(1))["sequence"] == 51

    def test_arrival_predicted_before_entering_window(
        self, client: httpx.Client, model: str
    ) -> None:
        X, y = wave(200)
        before = post(client, model, X, y)
        assert before["results"] == {"prediction": [None] * 200, "decision": [None] * 200}
        refitted(client, model)
        more_X, more_y = wave(80, seed=1)
        expected = said(client, model, more_X)
        answer = post(client, model, more_X, more_y)
        np.testing.assert_allclose(answer["results"]["prediction"], expected, atol=1e-12)
        assert answer["head"]["name"] == "semiparametric"
        errors = np.array(answer["results"]["prediction"]) - more_y
        score = head(client, model)["prequential"]
        assert score["samples"] == 80
        assert score["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-12)
        assert score["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-12)

    def test_gamma_is_estimated_from_the_window_unless_it_is_said(
        self, client: httpx.Client, name: str
    ) -> None:
        spec = {"task": "regression", "semiparametric": {"window": 100}}
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        X, y = wave(300)
        post(client, name, X, y)
        assert refitted(client, name)["result"]["gamma"] == gamma_from_rows(X[-100:])

    @pytest.mark.parametrize("kernel", [{"type": "linear"}, {"type": "polynomial", "degree": 2}])
    @pytest.mark.parametrize("solver", ["pdsg", "mpd"])
    def test_every_kernel_and_solver(
        self, client: httpx.Client, name: str, kernel: Any, solver: str
    ) -> None:
        spec = {**SPEC, "kernel": kernel, "semiparametric": {"solver": solver, "C": 1e4}}
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        X, _ = wave(200)
        X = X - 5.0
        post(client, name, X, 3.0 * X[:, 0] + 2.0)
        refitted(client, name)
        expected = 3.0 * (GRID[:, 0] - 5.0) + 2.0
        np.testing.assert_allclose(said(client, name, GRID - 5.0), expected, atol=0.5)


class TestTheWindow:
    def test_it_holds_the_last_samples_of_every_learning_call(
        self, client: httpx.Client, name: str
    ) -> None:
        spec = {"task": "regression", "semiparametric": FITTED | {"window": 150}}
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        X, y = wave(300)
        told = post(client, name, X[:100], y[:100], "asset")
        assert told["head"]["name"] == "asset"
        post(client, name, X[100:180], y[100:180])
        post(client, name, X[180:], y[180:], "asset")
        assert head(client, name)["window"] == 150
        asset = client.get(f"/v1/models/{name}").json()["heads"]["asset"]
        assert asset["steps"] == 220, "samples for the window are not learned by ASSET"
        job = refitted(client, name)
        assert (job["sequence"], job["samples"]) == (300, 150)
        alone = f"{name}-alone"
        client.put(f"/v1/models/{alone}", json=SPEC).raise_for_status()
        post(client, alone, X[150:], y[150:])
        assert refitted(client, alone)["result"]["beta"] == job["result"]["beta"]
        assert said(client, alone) == said(client, name)

    def test_a_model_of_this_head_alone_has_no_asset(
        self, client: httpx.Client, model: str
    ) -> None:
        answer = client.post(f"/v1/models/{model}/asset", json={"x": [1.0], "y": 1.0})
        assert problem(answer, 409)["type"] == "urn:wolfstream:no-such-head"

    def test_named_numbers_are_refused(self, client: httpx.Client, name: str) -> None:
        spec = {"task": "regression", "semiparametric": {}}
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        for call in ("samples", "asset"):
            sent = {"x": {"hour": 1.0}, "y": 1.0}
            told = problem(client.post(f"/v1/models/{name}/{call}", json=sent), 422)
            assert "named numbers" in told["detail"]
            assert told["errors"][0]["pointer"] == "/x"
        assert client.get(f"/v1/models/{name}").json()["sequence"] == 0

    def test_rows_without_a_feature_of_the_basis_are_refused(
        self, client: httpx.Client, name: str
    ) -> None:
        basis = [{"type": "sin", "feature": 2, "period": 24.0}]
        spec = {"task": "regression", "semiparametric": {"basis": basis}}
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        for call in ("samples", "asset"):
            sent = {"x": [[1.0, 2.0]], "y": [1.0]}
            told = problem(client.post(f"/v1/models/{name}/{call}", json=sent), 422)
            assert "feature 2" in told["errors"][0]["detail"]
        post(client, name, np.ones((1, 3)), np.ones(1))

    def test_rows_too_long_for_its_memory_are_refused(
        self, client: httpx.Client, name: str
    ) -> None:
        spec = {"task": "regression", "asset": None, "semiparametric": {"window": 20_000}}
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        sent = {"x": [[0.0] * 839], "y": [1.0]}
        told = problem(client.post(f"/v1/models/{name}/samples", json=sent), 422)
        assert "takes 838" in told["errors"][0]["detail"]

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "1e101", '"one"', "null"])
    def test_what_is_no_number_does_not_reach_it(
        self, client: httpx.Client, model: str, value: str
    ) -> None:
        for sent in (f'{{"x": [[{value}]], "y": [1.0]}}', f'{{"x": [[1.0]], "y": [{value}]}}'):
            problem(client.post(f"/v1/models/{model}/samples", content=sent), 422)
        assert head(client, model)["window"] == 0


class TestPredictions:
    def test_before_the_first_refit_the_hint_is_to_ask_for_one(
        self, client: httpx.Client, model: str
    ) -> None:
        post(client, model, *wave(20))
        told = problem(client.post(f"/v1/models/{model}/predict", json={"x": [1.0]}), 409)
        assert told["type"] == "urn:wolfstream:untrained"
        assert (
            f"POST /v1/models/{model}/samples, then POST /v1/models/{model}/refit" in told["detail"]
        )

    def test_the_head_can_be_chosen_beside_asset(self, client: httpx.Client, name: str) -> None:
        spec = {"task": "regression", "semiparametric": FITTED}
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        post(client, name, *wave(300), "asset")
        refitted(client, name)
        by_default = client.post(f"/v1/models/{name}/predict", json={"x": GRID.tolist()}).json()
        assert by_default["head"] == "asset"
        assert by_default["prediction"] != said(client, name)

    def test_rows_of_another_length_are_refused(self, client: httpx.Client, model: str) -> None:
        post(client, model, *wave(50))
        refitted(client, model)
        problem(client.post(f"/v1/models/{model}/predict", json={"x": [1.0, 2.0]}), 422)

    def test_over_a_stream(self, server: ServerProcess, client: httpx.Client, model: str) -> None:
        X, y = wave(200)

        async def talk() -> list[dict[str, Any]]:
            url = f"{server.url.replace('http', 'ws')}/v1/models/{model}/stream"
            async with connect(url) as stream:
                await stream.recv()

                async def call(**frame: Any) -> dict[str, Any]:
                    await stream.send(json.dumps(frame))
                    answer: dict[str, Any] = json.loads(await stream.recv())
                    return answer

                predict = {"op": "predict", "x": GRID.tolist(), "head": "semiparametric"}
                untrained = await call(id=1, **predict)
                learned = await call(id=2, op="learn", x=X.tolist(), y=y.tolist())
                await asyncio.to_thread(refitted, client, model)
                return [untrained, learned, await call(id=3, **predict)]

        untrained, learned, fitted = asyncio.run(talk())
        assert untrained["error"]["type"] == "urn:wolfstream:untrained"
        assert (learned["sequence"], learned["head"]["name"]) == (200, "semiparametric")
        assert fitted["prediction"] == said(client, model)


class TestWhileItRuns:
    def test_predictions_and_learning_go_on(self, client: httpx.Client, endless: str) -> None:
        job = running(client, ask(client, endless))
        X = np.random.default_rng(4).uniform(0.0, 10.0, (50, 2))
        for i in range(50):
            assert post(client, endless, X[i : i + 1], np.ones(1), "asset")["learned"] == 1
            answer = client.post(f"/v1/models/{endless}/predict", json={"x": X.tolist()})
            assert answer.raise_for_status().json()["sequence"] == 4001 + i
        after = client.get(job["href"]).json()
        assert after["status"] == "running", after
        assert (after["sequence"], after["samples"]) == (4000, 4000)
        assert after["progress"]["iteration"] > job["progress"]["iteration"]
        assert client.get(f"/v1/models/{endless}").json()["sequence"] == 4050

    def test_another_request_is_answered_with_the_same_job(
        self, client: httpx.Client, endless: str
    ) -> None:
        job = running(client, ask(client, endless))
        again = ask(client, endless)
        assert (again["job"], again["status"]) == (job["job"], "running")
        assert len(client.get(f"/v1/models/{endless}/jobs").json()["jobs"]) == 1

    def test_waiting_refit_delays_no_learning(self, client: httpx.Client, endless: str) -> None:
        other = f"{endless}-other"
        client.put(f"/v1/models/{other}", json=SPEC).raise_for_status()
        post(client, other, *wave(200))
        running(client, ask(client, endless))
        waiting = ask(client, other)
        post(client, other, *wave(100, seed=1))
        assert client.get(waiting["href"]).json()["status"] == "queued"
        client.delete(f"/v1/models/{endless}").raise_for_status()
        job = ended(client, waiting)
        assert job["status"] == "done"
        assert job["sequence"] == 300, "the window is taken when the job begins"

    def test_a_model_can_be_deleted_and_made_again(
        self, client: httpx.Client, endless: str
    ) -> None:
        job = running(client, ask(client, endless))
        assert client.delete(f"/v1/models/{endless}").status_code == 204
        assert problem(client.get(job["href"]), 404)["type"] == "urn:wolfstream:unknown-model"
        client.put(f"/v1/models/{endless}", json=SPEC).raise_for_status()
        assert client.get(f"/v1/models/{endless}/jobs").json() == {"jobs": []}
        assert problem(client.get(job["href"]), 404)["type"] == "urn:wolfstream:unknown-job"
        post(client, endless, *wave(100))
        refitted(client, endless)


class TestRefusals:
    def test_of_a_model_without_the_head(self, client: httpx.Client, name: str) -> None:
        client.put(f"/v1/models/{name}", json={}).raise_for_status()
        told = problem(client.post(f"/v1/models/{name}/refit"), 409)
        assert told["type"] == "urn:wolfstream:no-such-head"

    def test_of_a_model_that_does_not_exist(self, client: httpx.Client, name: str) -> None:
        for call in ("refit", "jobs", "jobs/1"):
            method = "POST" if call == "refit" else "GET"
            told = problem(client.request(method, f"/v1/models/{name}/{call}"), 404)
            assert told["type"] == "urn:wolfstream:unknown-model"

    def test_of_a_body(self, client: httpx.Client, model: str) -> None:
        problem(client.post(f"/v1/models/{model}/refit", json={"C": 2.0}), 422)
        assert client.get(f"/v1/models/{model}/jobs").json() == {"jobs": []}

    def test_an_empty_object_is_no_body(self, client: httpx.Client, model: str) -> None:
        assert client.post(f"/v1/models/{model}/refit", json={}).status_code == 202


class TestFailures:
    def failed(self, client: httpx.Client, name: str) -> str:
        job = ended(client, ask(client, name))
        assert (job["status"], job["result"]) == ("failed", None)
        assert (job["error"]["type"], job["error"]["status"]) == (
            "urn:wolfstream:refit-failed",
            422,
        )
        detail: str = job["error"]["detail"]
        return detail

    def test_an_empty_window(self, client: httpx.Client, model: str) -> None:
        assert "window is empty" in self.failed(client, model)

    def test_fewer_samples_than_basis_functions_need(
        self, client: httpx.Client, model: str
    ) -> None:
        post(client, model, *wave(2))
        assert "2 basis functions" in self.failed(client, model)

    def test_a_column_that_depends_on_the_others_keeps_the_old_fit(
        self, client: httpx.Client, name: str
    ) -> None:
        basis = [{"type": "constant"}, {"type": "trend", "feature": 1}]
        spec = {"task": "regression", "asset": None}
        spec["semiparametric"] = {"basis": basis, "window": 100}
        client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        X = np.random.default_rng(0).standard_normal((100, 2))
        post(client, name, X, X.sum(axis=1))
        good = refitted(client, name)
        before = said(client, name, X)
        X[:, 1] = 3.0
        post(client, name, X, X.sum(axis=1))
        detail = self.failed(client, name)
        assert "basis 1 (trend, feature 1) is a combination of basis 0 (constant)" in detail
        X = np.random.default_rng(0).standard_normal((100, 2))
        assert said(client, name, X) == before
        assert head(client, name)["fit"] == good["result"]
        post(client, name, X, X.sum(axis=1))
        assert refitted(client, name)["sequence"] == 300
