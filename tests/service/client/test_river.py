"""Remote models where River expects its own; River itself where it is installed."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.service.process import ServerProcess
from tests.service.streams import curve, two_classes
from wolfstream import Client, Refused, RemoteClassifier, RemoteRegressor

SPEC = {"kernel": {"type": "rbf", "gamma": 0.5}, "asset": None}
REGRESSION = {
    "task": "regression",
    "working_set": None,
    "asset": {"dimension": 64},
    "serve": "asset",
}


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url) as made:
        yield made


def pairs_of(samples: Any) -> list[tuple[dict[str, float], Any]]:
    rows = [{f"x{k}": value for k, value in enumerate(row)} for row in samples.X.tolist()]
    return list(zip(rows, list(samples.y), strict=True))


class TestWithoutRiver:
    def test_a_classifier_is_tested_then_trained(self, client: Client, name: str):
        client.create(name, SPEC)
        model = RemoteClassifier(client, name)
        said = []
        for x, y in pairs_of(two_classes(150)):
            said.append(model.predict_one(x) == y)
            model.learn_one(x, y)
        assert np.mean(said[75:]) > 0.7
        assert client.describe(name)["sequence"] == 150

    def test_it_says_nothing_before_it_can(self, client: Client, name: str):
        client.create(name, SPEC)
        model = RemoteClassifier(client, name)
        assert model.predict_one({"a": 1.0}) is None
        assert model.predict_many([{"a": 1.0}]) is None
        model.learn_one({"a": 1.0}, True)
        model.learn_one({"a": -1.0}, False)
        assert model.predict_one({"a": 1.0}) is True
        with pytest.raises(Refused, match="404"):
            RemoteClassifier(client, f"{name}-not").predict_one({"a": 1.0})

    def test_a_regressor_gives_floats(self, client: Client, name: str):
        client.create(name, REGRESSION)
        model = RemoteRegressor(client, name)
        pairs = pairs_of(curve(200))
        model.learn_many([x for x, _ in pairs], [y for _, y in pairs])
        assert type(model.predict_one(pairs[0][0])) is float
        said = model.predict_many([x for x, _ in pairs])
        assert said is not None
        assert np.corrcoef(said, [y for _, y in pairs])[0, 1] > 0.5

    def test_names_and_values_of_any_kind_of_number(self, client: Client, name: str):
        client.create(name, SPEC)
        model = RemoteClassifier(client, name)
        model.learn_one({1: True, ("a", "b"): np.float32(0.5), "c": np.int64(3)}, "yes")
        assert client.describe(name)["features"] == 3
        with pytest.raises(TypeError, match=r"feature 'city': .* is a dict, neither"):
            model.learn_one({"city": {}}, "yes")
        assert client.describe(name)["sequence"] == 1

    def test_river_is_not_imported(self, client: Client, name: str, monkeypatch: Any):
        for module in [m for m in sys.modules if m.partition(".")[0] == "river"]:
            monkeypatch.delitem(sys.modules, module)
        RemoteClassifier(client, name)
        assert "river" not in sys.modules


class TestWithRiver:
    @pytest.fixture(autouse=True)
    def _river(self) -> None:
        pytest.importorskip("river")

    def test_a_pipeline_is_evaluated(self, client: Client, name: str):
        from river import evaluate, metrics, preprocessing

        client.create(name, SPEC)
        model = preprocessing.StandardScaler() | RemoteClassifier(client, name)
        metric = evaluate.progressive_val_score(
            pairs_of(two_classes(200)), model, metrics.Accuracy()
        )
        assert metric.get() > 0.65
        assert client.describe(name)["sequence"] == 200
        assert "RemoteClassifier" in str(model)

    def test_a_regressor_is_evaluated(self, client: Client, name: str):
        from river import compose, evaluate, metrics, preprocessing

        client.create(name, REGRESSION)
        scaled = compose.Pipeline(preprocessing.StandardScaler(), RemoteRegressor(client, name))
        pairs = pairs_of(curve(200))
        metric = evaluate.progressive_val_score(pairs, scaled, metrics.MAE())
        assert 0.0 < metric.get() < np.std([y for _, y in pairs])

    def test_labels_are_evaluated_late(self, client: Client, name: str):
        from river import evaluate, metrics

        client.create(name, SPEC)
        pairs = pairs_of(two_classes(60))
        steps = evaluate.iter_progressive_val_score(
            pairs, RemoteClassifier(client, name), metrics.F1(pos_val="yes"), delay=5, step=20
        )
        assert [step["Step"] for step in steps] == [20, 40, 60]

    def test_metrics_of_the_other_task_are_refused(self, client: Client, name: str):
        from river import evaluate, metrics

        with pytest.raises(ValueError, match="not compatible"):
            evaluate.progressive_val_score([], RemoteClassifier(client, name), metrics.MAE())
        with pytest.raises(ValueError, match="not compatible"):
            evaluate.progressive_val_score([], RemoteRegressor(client, name), metrics.Accuracy())
