"""ASSET in every way a spec can ask for: the service is the library, live, saved and replayed."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.service.process import ServerProcess
from tests.service.specs import read_papers_spec
from tests.service.streams import (
    asset_specs,
    body,
    curve,
    few_words,
    part,
    plain_rows,
    plain_y,
    three_classes,
    word_counts,
)
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import from_record, to_record
from wolfstream.service.samples.validation import Samples
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import State
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict
from wolfstream.solver.kernels.bandwidth import AutoGamma
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.prepare.named_rows import NamedRows, NameTable
from wolfstream.solver.rows.matrix import take_rows

SPECS = asset_specs()
LANDMARKS = 24
each_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
each_kind_of_rows = pytest.mark.parametrize("named", [False, True], ids=["arrays", "named"])
LIMITS = Limits(classes=100, features=1000)


def stream(spec: dict[str, Any], named: bool, n: int, seed: int = 0) -> Samples:
    """A stream for the task of a spec."""
    if spec["task"] == "regression":
        return (word_counts if named else curve)(n, seed)
    return (few_words if named else three_classes)(n, seed)


def learner_of(spec: dict[str, Any]) -> AutoGamma[Asset] | Asset:
    """The library's learner, built from the spec by hand."""
    asset, kernel = spec["asset"], spec["kernel"]["type"]
    own = {name: asset[name] for name in ("algorithm", "features")}
    if "dimension" in asset:
        own["dimension"] = asset["dimension"]

    def build(gamma: float) -> Asset:
        coef0 = 1.0 if kernel == "polynomial" else 0.0
        of_kernel = Kernel(kernel, gamma, 3, coef0)
        return Asset(of_kernel, task=spec["task"], lam=asset["lambda"], seed=spec["seed"], **own)

    return build(1.0) if kernel == "linear" else AutoGamma(build, _bound(kernel))


def _bound(kernel: str) -> float:
    return 1e6 if kernel == "polynomial" else np.inf


def current(learner: Any) -> Asset:
    return learner.learner if isinstance(learner, AutoGamma) else learner


def said_by(learner: Any, X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """Prediction and decision of a block of the library's learner, None where it has none."""
    answers = learner.absorb(X, y)
    parts = [answer for _, answer in answers] if isinstance(learner, AutoGamma) else [answers]
    return (
        [value for answer in parts for value in answer.prediction.tolist()],
        [value for answer in parts for value in answer.decision.tolist()],
    )


def without_nan(decision: Any) -> Any:
    values = [value for value in np.atleast_1d(decision).tolist() if value == value]
    if np.ndim(decision) == 0:
        return values[0] if values else None
    return values or None


def of_library(learner: Any, X: Any, samples: Samples) -> Any:
    """A function that gives the library's answer to samples [start, stop) of a stream."""
    if not isinstance(samples.y, list):
        y, classes = samples.y, None
    else:
        classes = list(dict.fromkeys(samples.y))
        y = np.array([classes.index(label) for label in samples.y])

    def answer(start: int, stop: int) -> dict[str, Any]:
        said, decision = said_by(learner, take_rows(X, slice(start, stop)), y[start:stop])
        if classes is None:
            prediction = [value if value == value else None for value in said]
        else:
            prediction = [classes[code] if code >= 0 else None for code in said]
        return {"prediction": prediction, "decision": [without_nan(d) for d in decision]}

    return answer


@pytest.mark.sweep
@each_spec
@each_kind_of_rows
def test_one_sample_at_a_time_the_service_answers_as_the_library(
    client: httpx.Client, name: str, spec: dict[str, Any], named: bool
) -> None:
    samples = stream(spec, named, 60)
    X, table = samples.X, NameTable()
    if isinstance(X, NamedRows):
        table.add(X.names)
        X = table.matrix(X, len(table))
    learner = learner_of(spec)
    expected = of_library(learner, X, samples)
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()
    for i in range(60):
        told = client.post(f"/v1/models/{name}/asset", json=body(part(samples, i, i + 1)))
        assert told.raise_for_status().json()["results"] == expected(i, i + 1)
    rows = plain_rows(samples)[:20]
    said = client.post(f"/v1/models/{name}/predict", json={"x": rows}).json()
    prediction, decision = predict(current(learner).view(), take_rows(X, slice(0, 20)))
    assert said["decision"] == decision.tolist()
    if spec["task"] == "regression":
        assert said["prediction"] == prediction.tolist()
        assert "classes" not in said
    else:
        assert said["prediction"] == [said["classes"][code] for code in prediction]
    told = client.get(f"/v1/models/{name}").json()["heads"]["asset"]
    assert (told["algorithm"], told["features"]) == (
        spec["asset"]["algorithm"],
        spec["asset"]["features"],
    )
    assert told["steps"] == current(learner).steps == 60
    assert told["dimension"] == current(learner).view().dimension
    if isinstance(learner, AutoGamma):
        assert told["gamma"] == learner.gamma


@pytest.mark.parametrize("spec", [SPECS["regression asset rbf fourier"]], ids=["regression"])
def test_a_websocket_answers_as_the_library(
    server: ServerProcess, client: httpx.Client, name: str, spec: dict[str, Any]
) -> None:
    samples = stream(spec, False, 40)
    expected = of_library(learner_of(spec), samples.X, samples)
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()
    url = f"{server.url.replace('http', 'ws', 1)}/v1/models/{name}/stream"
    with connect(url, subprotocols=[Subprotocol("wolfstream.v1.json")]) as connection:
        connection.recv()
        for i, (x, y) in enumerate(zip(plain_rows(samples), plain_y(samples), strict=True)):
            connection.send(json.dumps({"id": i, "op": "asset", "x": x, "y": y}))
            assert json.loads(connection.recv())["results"] == expected(i, i + 1)
        connection.send(json.dumps({"id": "p", "op": "predict", "x": plain_rows(samples)[:3]}))
        said = json.loads(connection.recv())
        assert said["prediction"] == said["decision"]
        connection.send(json.dumps({"id": "e", "op": "asset", "x": [1, 2, 3], "y": "high"}))
        refused = json.loads(connection.recv())["error"]
        assert refused["errors"] == [
            {"row": 0, "pointer": "/y", "detail": "must be a number, not text"}
        ]


def learn(learner: Learner, samples: Samples, sizes: list[int]) -> list[Any]:
    """Absorb a stream in blocks of these sizes."""
    answers, start = [], 0
    for size in sizes:
        block = part(samples, start, start := start + size)
        Draft(learner, LIMITS).add("asset", block)
        answers.append(learner.absorb("asset", block))
        learner.publish()
    return answers


def without_bytes(told: dict[str, Any]) -> dict[str, Any]:
    """A description without what a restart may change: buffers can be larger or smaller."""
    told["heads"]["asset"].pop("bytes")
    told.pop("snapshot_sequence")
    return told


def bits(learner: Learner) -> Any:
    plain, arrays = learner.state()
    return plain, {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()}


@pytest.mark.sweep
@each_spec
@each_kind_of_rows
@pytest.mark.parametrize("learned", [0, 1, 13, LANDMARKS, 130, 300])
def test_a_restored_model_goes_on_bit_for_bit(
    spec: dict[str, Any], named: bool, learned: int, tmp_path: Path
) -> None:
    """Wherever it was saved: also while landmarks are collected and gamma is estimated."""
    live, again = (Learner(Model(1, "m", read_papers_spec(spec))) for _ in range(2))
    samples = stream(spec, named, 600)
    learn(live, samples, [learned] if learned else [])
    SnapshotFiles(tmp_path).save(1, State(*live.state()))
    again.restore(*SnapshotFiles(tmp_path).load(1, learned))
    again.publish()
    assert bits(again) == bits(live)
    assert without_bytes(again.model.describe()) == without_bytes(live.model.describe())
    rest = part(samples, learned, 600)
    sizes = [1, 5, 90, 204]
    assert learn(live, rest, sizes) == learn(again, rest, sizes)
    assert bits(again) == bits(live)
    views = live.model.published, again.model.published
    said = [view.heads["asset"].predict(view.head_rows(samples.X).X) for view in views]
    assert said[0] == said[1]


@pytest.mark.sweep
@each_spec
@each_kind_of_rows
def test_the_log_gives_the_same_model_bit_for_bit(spec: dict[str, Any], named: bool) -> None:
    live, replayed = (Learner(Model(1, "m", read_papers_spec(spec))) for _ in range(2))
    samples = stream(spec, named, 400)
    sizes = [1, 12, 37, 150, 200]
    answers = learn(live, samples, sizes)
    start = 0
    for size, answer in zip(sizes, answers, strict=True):
        record = to_record(part(samples, start, start := start + size))
        assert replayed.absorb("asset", from_record(record)) == answer
    assert bits(replayed) == bits(live)


@pytest.mark.parametrize("learned", [11, 700], ids=["in the warm-up", "after snapshots"])
def test_kill_9_gives_every_model_back_bit_for_bit(tmp_path: Path, learned: int) -> None:
    server = ServerProcess(tmp_path / "data", snapshot_samples=300)
    streams = {name: stream(spec, i % 2 == 1, 900) for i, (name, spec) in enumerate(SPECS.items())}
    models = {name: f"m{i}" for i, name in enumerate(SPECS)}

    def everything_said() -> dict[str, Any]:
        said: dict[str, Any] = {}
        with httpx.Client(base_url=server.url, timeout=30) as client:
            for name, model in models.items():
                rows = {"x": plain_rows(streams[name])[:30]}
                told = without_bytes(client.get(f"/v1/models/{model}").json())
                answer = client.post(f"/v1/models/{model}/predict", json=rows)
                said[name] = answer.raise_for_status().json(), told
        return said

    def post(start: int, stop: int) -> None:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            for name, model in models.items():
                client.put(f"/v1/models/{model}", json=SPECS[name]).raise_for_status()
                for first in range(start, stop, 97):
                    block = body(part(streams[name], first, min(first + 97, stop)))
                    client.post(f"/v1/models/{model}/asset", json=block).raise_for_status()

    try:
        server.start()
        post(0, learned)
        before = everything_said()
        server.kill()
        server.start()
        assert everything_said() == before
        post(learned, learned + 100)
        after = everything_said()
        server.kill()
        server.start()
        assert everything_said() == after
    finally:
        server.close()


@pytest.mark.sweep
@each_spec
@pytest.mark.parametrize("small", [1.0, 1e-3, 1e-30])
def test_with_the_largest_rows_every_answer_is_finite(spec: dict[str, Any], small: float) -> None:
    """Rows of the largest norm that is taken, of them some shrunk; targets of the largest size."""
    learner = Learner(Model(1, "m", read_papers_spec(spec)))
    samples = stream(spec, False, 300)
    norm = np.linalg.norm(samples.X, axis=1)[:, None]
    y = samples.y if isinstance(samples.y, list) else samples.y * (1e100 / samples.y.max())
    for start in range(0, 300, 20):
        view = learner.model.published.heads["asset"]
        X = samples.X / norm * (0.999 * view.learner.square_norm_limit**0.5)
        X[::3] *= small
        block = Samples(X[start : start + 20], y[start : start + 20])
        Draft(learner, LIMITS).add("asset", block)
        answers = learner.absorb("asset", block)
        learner.publish()
        if start:
            assert np.isfinite(np.hstack(answers.decision)).all()
    decision = learner.model.published.heads["asset"].predict(block.X).decision
    assert np.isfinite(np.array(decision)).all()
    told = learner.model.describe()["heads"]["asset"]["prequential"]
    assert all(value is None or np.isfinite(value) for value in told.values())
