"""Learners of other distributions as heads: the same promises as those of our own."""

import functools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.heads.learners_of_others import NearestMean, RunningMean, install
from tests.service.process import ServerProcess
from wolfstream.service.errors import Invalid
from wolfstream.service.heads.entry_points import learner_class, permit

HEADS = (
    "nearest-mean,running-mean,any-arrays,wrong-shape,not-a-learner,missing,pickling,hostile,"
    "nobody-has-it"
)
HOEFFDING = {"model": "river.tree.HoeffdingTreeClassifier", "parameters": {"grace_period": 20}}
BAGGING = "river.ensemble.BaggingClassifier"
RIVER = {
    "tree": ("classification", HOEFFDING),
    "forest": ("classification", {"model": "river.forest.ARFClassifier"}),
    "bagging": (
        "classification",
        {"model": BAGGING, "parameters": {"model": HOEFFDING}},
    ),
    "numbers": (
        "regression",
        {"model": ["river.preprocessing.StandardScaler", "river.linear_model.PARegressor"]},
    ),
}


def add_to_path(place: str) -> None:
    sys.path.insert(0, place)


def started(directory: Path, **settings: object) -> ServerProcess:
    install(directory / "site")
    chosen: dict[str, object] = {"heads": HEADS, "pickle_heads": "river"}
    server = ServerProcess(directory / "data", **chosen, **settings)
    server.prelude = functools.partial(add_to_path, str(directory / "site"))
    return server.start()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = started(tmp_path_factory.mktemp("custom"))
    yield running
    running.close()


def stream(n: int, task: str = "classification", seed: int = 0) -> dict[str, Any]:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    if task == "regression":
        return {"x": X.tolist(), "y": (X @ [1.0, 2.0, 3.0]).tolist()}
    return {"x": X.tolist(), "y": np.where(X[:, 0] > X[:, 1] ** 2 - 0.7, "a", "b").tolist()}


def create(client: httpx.Client, name: str, learner: str, **spec: Any) -> str:
    options = spec.pop("options", {})
    body = {"custom": {"learner": learner, "options": options}, **spec}
    client.put(f"/v1/models/{name}", json=body).raise_for_status()
    return f"/v1/models/{name}"


def post(client: httpx.Client, path: str, body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(path, json=body).raise_for_status().json()
    return answer


def test_each_row_is_predicted_before_it_is_learned(client: httpx.Client, name: str) -> None:
    model = create(client, name, "nearest-mean", prepare=None, options={"sharpness": 2.0})
    sent = stream(60)
    learned = post(client, f"{model}/samples", {"x": sent["x"][:1], "y": sent["y"][:1]})
    assert learned["head"]["name"] == "custom"
    learned = post(client, f"{model}/samples", {"x": sent["x"][1:], "y": sent["y"][1:]})
    direct = NearestMean({"sharpness": 2.0}, regression=False, seed=0)
    classes, predicted = list[str](), list[str]()
    for row, label in zip(sent["x"], sent["y"], strict=True):
        x = np.array([row])
        if classes:
            predicted.append(classes[int(direct.predict(x)[0].argmax())])
        classes += [] if label in classes else [label]
        direct.learn(x, np.array([classes.index(label)]), np.ones(1))
    assert learned["results"]["prediction"] == predicted
    asked = post(client, f"{model}/predict?probability=true", {"x": sent["x"][:5]})
    p = direct.predict(np.array(sent["x"][:5]))
    assert asked["prediction"] == [classes[k] for k in p.argmax(axis=1)]
    logs = np.log(np.maximum(p, 1e-4))
    np.testing.assert_allclose(asked["decision"], logs[:, 1] - logs[:, 0], rtol=1e-9)
    described = client.get(model).json()["heads"]["custom"]
    assert described["learner"] == "nearest-mean"
    assert described["bytes"] == 2 * 8 + 2 * 3 * 8


def test_numbers(client: httpx.Client, name: str) -> None:
    model = create(client, name, "running-mean", task="regression")
    sent = stream(40, "regression")
    learned = post(client, f"{model}/samples", sent)
    means = np.cumsum(sent["y"])[:-1] / np.arange(1, 40)
    assert learned["results"]["prediction"][0] is None
    np.testing.assert_allclose(learned["results"]["prediction"][1:], means)
    answer = post(client, f"{model}/predict", {"x": sent["x"][:2]})
    np.testing.assert_allclose(answer["prediction"], [np.mean(sent["y"])] * 2)


def test_new_classes_and_columns_may_come(client: httpx.Client, name: str) -> None:
    model = create(client, name, "nearest-mean")
    rows = [{"a": 1.0, "b": 2.0}, {"a": -1.0, "b": 0.5}] * 20
    post(client, f"{model}/samples", {"x": rows, "y": ["u", "v"] * 20})
    wider = [{"a": 5.0, "b": 9.0, "c": 1.0}, {"a": 1.0, "b": 2.0, "c": 0.0}]
    post(client, f"{model}/samples", {"x": wider, "y": ["w", "u"]})
    answer = post(client, f"{model}/predict", {"x": [*wider, rows[1]]})
    assert answer["classes"] == ["u", "v", "w"]
    assert answer["prediction"] == ["w", "u", "v"]


def test_sparse_rows(client: httpx.Client, name: str) -> None:
    model = create(client, name, "nearest-mean", prepare={"named": "sparse"})
    rows = [{"buy": 1.0, "now": 1.0}, {"see": 1.0, "you": 1.0}]
    post(client, f"{model}/samples", {"x": rows * 5, "y": ["spam", "ham"] * 5})
    answer = post(client, f"{model}/predict", {"x": [{"now": 1.0}, {"you": 1.0}]})
    assert answer["prediction"] == ["spam", "ham"]


def test_why(client: httpx.Client, name: str) -> None:
    model = create(client, name, "nearest-mean")
    post(client, f"{model}/samples", stream(60))
    (why,) = post(client, f"{model}/predict?explain=3", {"x": [[2.0, 0.0, 0.0]]})["explanation"]
    assert "0" in str(why)


def test_it_votes_in_the_bank(client: httpx.Client, name: str) -> None:
    model = create(client, name, "nearest-mean", adaptive={}, serve="adaptive")
    learned = post(client, f"{model}/samples", stream(60))
    assert learned["head"]["name"] == "adaptive"
    listed = client.get(f"{model}/learners").json()
    assert "custom" in str(listed)
    post(client, f"{model}/predict?explain=3", {"x": [[2.0, 0.0, 0.0]]})


@pytest.mark.parametrize("case", RIVER)
def test_a_restart_goes_on_with_the_same_river(case: str, tmp_path: Path) -> None:
    task, options = RIVER[case]
    server = started(tmp_path)
    live, killed, late = stream(150, task), stream(60, task, seed=1), stream(20, task, seed=2)
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for model in ("one", "other"):
                create(client, model, "river", task=task, options=options, seed=3)
                post(client, f"/v1/models/{model}/samples", live)
                post(client, f"/v1/models/{model}/snapshot", None)
                post(client, f"/v1/models/{model}/samples", killed)
            before = post(client, "/v1/models/one/predict", {"x": late["x"]})
        server.kill()
        server.start()
        with httpx.Client(base_url=server.url, timeout=60) as client:
            again = post(client, "/v1/models/one/predict", {"x": late["x"]})
            assert again["decision"] == before["decision"]
            # Rolled back, with the same samples after it, a model is the same again.
            post(client, "/v1/models/other/rollback", {"sequence": 150})
            post(client, "/v1/models/other/samples", killed)
            other = post(client, "/v1/models/other/predict", {"x": late["x"]})
            assert other["decision"] == before["decision"]
            answers = [
                post(client, f"/v1/models/{model}/samples", late)["results"]
                for model in ("one", "other")
            ]
            assert answers[0] == answers[1]
            state = client.get("/v1/models/one/state").raise_for_status().content
            uploaded = client.put("/v1/models/third/state", content=state)
            uploaded.raise_for_status()
            rows = {"x": live["x"]}
            third = post(client, "/v1/models/third/predict", rows)["decision"]
            assert third == post(client, "/v1/models/one/predict", rows)["decision"]
    finally:
        server.close()


def test_a_state_may_have_any_arrays_of_its_learner(client: httpx.Client, name: str) -> None:
    model = create(client, name, "any-arrays", task="regression")
    post(client, f"{model}/samples", stream(30, "regression"))
    state = client.get(f"{model}/state").raise_for_status().content
    copy = f"{model}-copy"
    client.put(f"{copy}/state", content=state).raise_for_status()
    rows = {"x": stream(3)["x"]}
    predictions = [post(client, f"{of}/predict", rows)["prediction"] for of in (model, copy)]
    assert predictions[0] == predictions[1]


def test_a_start_without_the_permission_says_what_is_missing(tmp_path: Path) -> None:
    server = started(tmp_path)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        create(client, "m", "running-mean", task="regression")
    server.terminate()
    server.settings["heads"] = "nearest-mean"
    server.launch()
    assert server.exit_code() == 1
    assert "model 'm' cannot be brought back: the learner 'running-mean'" in server.log()
    assert "Traceback" not in server.log()
    server.settings["heads"] = HEADS
    server.start()
    assert httpx.get(f"{server.url}/v1/models/m").status_code == 200
    server.close()


def test_river_learns(client: httpx.Client, name: str) -> None:
    model = create(client, name, "river", options=RIVER["tree"][1])
    post(client, f"{model}/samples", stream(600))
    described = client.get(model).json()["heads"]["custom"]
    assert described["prequential"]["accuracy"] > 0.7


def test_later_labels_keys_and_a_challenger(client: httpx.Client, name: str) -> None:
    model = create(client, name, "nearest-mean")
    body = stream(50)
    first = client.post(f"{model}/samples", json=body, headers={"Idempotency-Key": "k"}).json()
    again = client.post(f"{model}/samples", json=body, headers={"Idempotency-Key": "k"}).json()
    assert again["sequence"] == first["sequence"] == 50
    challenger = {"follows": name, "start": "state", "custom": {"learner": "nearest-mean"}}
    client.put(f"/v1/models/{name}-b", json=challenger).raise_for_status()
    post(client, f"{model}/predict", {"x": body["x"][:2], "ids": ["p", "q"]})
    labelled = post(client, f"{model}/labels", {"ids": ["q", "p"], "y": body["y"][:2]})
    assert labelled["results"]["status"] == ["learned", "learned"]
    rows = {"x": body["x"][:9]}
    deadline = time.monotonic() + 30
    while client.get(f"/v1/models/{name}-b").json()["sequence"] < 52:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    mine, theirs = (post(client, f"{at}/predict", rows) for at in (model, f"{model}-b"))
    assert mine["decision"] == theirs["decision"]


def test_workers_predict_with_it(tmp_path: Path) -> None:
    server = started(tmp_path, workers=1)
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            model = create(client, "m", "river", options=RIVER["tree"][1])
            post(client, f"{model}/samples", stream(300))
            answer = post(client, f"{model}/predict", {"x": stream(50, seed=1)["x"]})
        right = np.mean(np.array(answer["prediction"]) == stream(50, seed=1)["y"])
        assert right > 0.6
    finally:
        server.close()


def test_a_learner_that_fails_stops_its_own_model_only(client: httpx.Client, name: str) -> None:
    model = create(client, name, "wrong-shape", task="regression")
    post(client, f"{model}/samples", {"x": [[1.0]], "y": [1.0]})
    post(client, f"{model}/samples", {"x": [[1.0]], "y": [1.0]})
    answer = client.post(f"{model}/predict", json={"x": [[1.0], [2.0]]})
    assert answer.status_code == 503
    assert "'wrong-shape' failed" in answer.json()["detail"]
    assert client.get("/readyz").status_code == 200


FAULTS = (
    *("raises", "exits", "exits when asked", "has no state", "has objects", "has wrong names"),
)


def test_learners_that_misbehave_stop_their_own_models_only(tmp_path: Path) -> None:
    server = started(tmp_path)
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            sound = create(client, "sound", "running-mean", task="regression")
            for fault in FAULTS:
                options = {"does": fault}
                at = create(
                    client, fault.replace(" ", "-"), "hostile", task="regression", options=options
                )
                for _ in range(5):
                    answer = client.post(f"{at}/samples", json={"x": [[1.0]], "y": [1.0]})
                assert (answer.status_code, len(answer.text) < 2_000) == (503, True), fault
                assert "'hostile' failed" in answer.json()["detail"]
                assert client.get(at).json()["status"] != "ok"
            post(client, f"{sound}/samples", {"x": [[1.0]], "y": [1.0]})
        server.kill()
        server.start()
        with httpx.Client(base_url=server.url, timeout=60) as client:
            assert post(client, f"{sound}/predict", {"x": [[1.0]]})["prediction"] == [1.0]
            for fault in FAULTS:
                described = client.get(f"/v1/models/{fault.replace(' ', '-')}")
                assert "'hostile' failed" in described.text
        assert server.terminate() == 0
    finally:
        server.close()


def test_a_learner_may_change_what_it_is_given(client: httpx.Client, name: str) -> None:
    voters: list[tuple[str, dict[str, str]]]
    voters = [("running-mean", {}), ("hostile", {"does": "nothing"})]
    sent, results = stream(60, "regression"), list[Any]()
    for i, (learner, options) in enumerate(voters):
        more: dict[str, Any] = {"task": "regression", "adaptive": {}, "serve": "adaptive"}
        model = create(client, f"{name}-{i}", learner, options=options, **more)
        results.append(post(client, f"{model}/samples", sent)["results"]["prediction"])
        results[-1] += post(client, f"{model}/predict", {"x": sent["x"][:5]})["prediction"]
        assert client.get(model).json()["spec"]["custom"]["options"] == options
    assert results[0] == results[1]


def test_a_restored_learner_may_change_its_arrays(client: httpx.Client, name: str) -> None:
    options, sent = {"does": "nothing"}, {"x": [[1.0]], "y": [1.0]}
    model = create(client, name, "hostile", task="regression", options=options)
    post(client, f"{model}/samples", sent)
    file = client.get(f"{model}/state").content
    headers = {"Content-Type": "application/octet-stream"}
    copy = f"/v1/models/{name}-copy"
    client.put(f"{copy}/state", content=file, headers=headers).raise_for_status()
    for at in (model, copy):
        post(client, f"{at}/samples", {"x": [[1.0]], "y": [3.0]})
        assert post(client, f"{at}/predict", {"x": [[1.0]]})["prediction"] == [2.0]


@pytest.mark.parametrize("does", ["says NaN", "says numbers too large"])
def test_numbers_that_cannot_be_are_none(client: httpx.Client, name: str, does: str) -> None:
    model = create(client, name, "hostile", task="regression", options={"does": does})
    learned = post(client, f"{model}/samples", {"x": [[1.0]] * 5, "y": [1.0] * 5})
    assert learned["results"]["prediction"] == [None, 1.0, 1.0, None, None]
    answer = client.post(f"{model}/predict", json={"x": [[1.0]]})
    assert answer.status_code == 503
    assert "predicts no number for row 0" in answer.json()["detail"]
    client.get(model).raise_for_status()


@pytest.mark.parametrize(
    ("custom", "pointer", "says"),
    [
        ({"learner": "secret"}, "/custom/learner", "WOLFSTREAM_HEADS"),
        ({"learner": "nobody-has-it"}, "/custom/learner", "no installed distribution"),
        ({"learner": "missing"}, "/custom/learner", "cannot be loaded"),
        ({"learner": "not-a-learner"}, "/custom/learner", "no subclass"),
        ({"learner": "pickling"}, "/custom/learner", "WOLFSTREAM_PICKLE_HEADS"),
        ({"learner": "nearest-mean", "options": {"sharpness": "x"}}, "/custom/options", "convert"),
        ({"learner": "river"}, "/custom/options", "None is no name"),
        (
            {"learner": "river", "options": {"models": "x"}},
            "/custom/options",
            "a model is",
        ),
        (
            {"learner": "river", "options": {"model": "x", "parameters": 3}},
            "/custom/options",
            "an object",
        ),
        ({"learner": "river", "options": {"model": "os.system"}}, "/custom/options", "no name"),
        ({"learner": "river", "options": {"model": "river.tree.os"}}, "/custom/options", "has no"),
        ({"learner": "river", "options": {"model": []}}, "/custom/options", "at least one model"),
        (
            {"learner": "river", "options": {"model": "river.drift.ADWIN"}},
            "/custom/options",
            "has no learn_one",
        ),
        (
            {"learner": "river", "options": {"model": BAGGING, "parameters": {"model": 3}}},
            "/custom/options",
            "does not take these options",
        ),
        (
            {"learner": "river", "options": {**HOEFFDING, "parameters": {"leaves": 3}}},
            "/custom/options",
            "leaves",
        ),
        ({"learner": "../x"}, "/custom/learner", ""),
        ({"learner": "river", "options": {"model": "x" * 20_000}}, "/custom/options", "16,384"),
        (
            {"learner": "hostile", "options": {"does": "exits when made"}},
            "/custom/options",
            "does not take these options: SystemExit: 3",
        ),
        ({}, "/custom/learner", ""),
    ],
)
def test_what_cannot_be_made_is_refused(
    client: httpx.Client, name: str, custom: dict[str, Any], pointer: str, says: str
) -> None:
    answer = client.put(f"/v1/models/{name}", json={"custom": custom})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == pointer
    assert says in error["detail"]
    assert client.get(f"/v1/models/{name}").status_code == 404


def test_without_permission_nothing_is_loaded() -> None:
    permit((), ())
    with pytest.raises(Invalid, match="WOLFSTREAM_HEADS"):
        learner_class("river")
    permit(("river",), ())
    with pytest.raises(Invalid, match="WOLFSTREAM_PICKLE_HEADS"):
        learner_class("river")
    permit((), ("river",))
    assert learner_class("river").__name__ == "RiverLearner"
    permit((), ())


def test_the_example_of_the_docstring() -> None:
    mean = RunningMean({}, regression=True, seed=0)
    mean.learn(np.zeros((2, 1)), np.array([1.0, 3.0]), np.array([1.0, 3.0]))
    assert mean.predict(np.zeros((3, 1))).tolist() == [2.5] * 3
