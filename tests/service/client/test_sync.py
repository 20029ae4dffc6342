"""The blocking client: a real server, and servers that misbehave on purpose."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.client.frames import Frame
from tests.service.process import ServerProcess
from tests.service.streams import curve, plain_rows, two_classes, word_counts
from wolfstream import (
    Client,
    ClientError,
    Learned,
    Predictions,
    Refused,
)
from wolfstream.service.client.results import join_learned

SPEC = {"kernel": {"type": "rbf", "gamma": 0.5}, "asset": {"dimension": 32}}


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url) as made:
        yield made


class TestRealServer:
    def test_life_of_a_model(self, client: Client, name: str):
        assert client.create(name, SPEC, seed=3)["spec"]["seed"] == 3
        assert client.create(name, {**SPEC, "seed": 3})["sequence"] == 0
        assert name in [model["model"] for model in client.models()]
        with pytest.raises(Refused, match="409") as caught:
            client.create(name, seed=4)
        assert caught.value.slug == "model-exists"
        client.delete(name)
        with pytest.raises(Refused, match="404"):
            client.describe(name)

    def test_arrays_are_learned_in_batches_and_predicted(self, client: Client, name: str):
        samples = two_classes(300)
        client.create(name, SPEC)
        result = client.learn(name, samples.X, np.array(samples.y), batch=64)
        assert isinstance(result, Learned)
        assert (result.sequence, result.learned, result.replayed) == (300, 300, False)
        assert result.predictions.shape == result.decisions.shape == (300,)
        assert result.predictions[0] is None
        assert result.admitted is not None
        assert result.admitted.dtype == bool
        assert result.steps is not None
        assert len(result.steps) == 300
        assert result.head["name"] == "adaptive"
        said = client.predict(name, samples.X, min_sequence=300)
        assert isinstance(said, Predictions)
        assert (said.sequence, said.head) == (300, "adaptive")
        assert said.classes is not None
        assert sorted(said.classes) == ["no", "yes"]
        assert np.mean(said.predictions == samples.y) > 0.8
        assert np.array_equal(said.predictions == said.classes[1], said.decisions > 0)
        asset = client.learn(name, samples.X, samples.y, head="asset")
        assert (asset.sequence, asset.admitted, asset.steps) == (600, None, None)

    @pytest.mark.parametrize(
        "of", [lambda X: X.astype(np.float32), lambda X: X.tolist(), np.asfortranarray, list]
    )
    def test_rows_may_come_as_any_array(self, client: Client, name: str, of: Any):
        samples = two_classes(40)
        rows = of(samples.X)
        client.create(name, SPEC)
        assert client.learn(name, rows, samples.y).sequence == 40
        exact = np.asarray(rows, np.float64)
        assert np.array_equal(
            client.predict(name, rows).decisions, client.predict(name, exact).decisions
        )

    def test_named_rows_one_sample_pairs_and_iterables(self, client: Client, name: str):
        samples = word_counts(30)
        rows = plain_rows(samples)
        targets = samples.y.tolist()
        client.create(name, task="regression", working_set=None, asset={"dimension": 16})
        client.learn(name, rows[:10], targets[:10], head="asset")
        client.learn(name, rows[10], targets[10], head="asset")
        client.learn(name, zip(rows[11:20], targets[11:20], strict=True), head="asset", batch=4)
        result = client.learn(name, iter(rows[20:]), iter(samples.y[20:]), head="asset", batch=4)
        assert (result.sequence, result.learned) == (30, 10)
        assert result.predictions.dtype == np.float64
        assert client.predict(name, rows[0], head="asset").predictions.shape == (1,)

    def test_a_call_under_an_old_key_learns_nothing_twice(self, client: Client, name: str):
        samples = two_classes(50)
        client.create(name, SPEC)
        first = client.learn(name, samples.X, samples.y, batch=20, idempotency_key="monday")
        again = client.learn(name, samples.X, samples.y, batch=20, idempotency_key="monday")
        assert again.replayed
        assert again.sequence == first.sequence == 50
        assert np.array_equal(again.predictions, first.predictions)
        with pytest.raises(Refused, match="422") as caught:
            client.learn(name, samples.X, samples.y[::-1], idempotency_key="monday")
        assert caught.value.slug == "idempotency-key-reused"
        assert client.describe(name)["sequence"] == 50

    def test_what_is_too_large_is_divided(
        self, client: Client, name: str, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("wolfstream.service.client.sample_calls.MAX_BYTES", 600)
        samples = two_classes(50)
        client.create(name, SPEC)
        assert client.learn(name, plain_rows(samples), samples.y).sequence == 50

    def test_a_data_frame_keeps_its_columns_apart(self, client: Client, name: str):
        client.create(name)
        warmth = [20.0 + k % 9 for k in range(200)]
        rooms = [["hall", "attic"][k % 2] for k in range(200)]
        y = ["dry" if room == "hall" else "humid" for room in rooms]
        learned = client.learn(name, Frame({"warmth": warmth, "room": rooms}), y, batch=50)
        assert learned.sequence == 200
        turned = Frame({"room": rooms, "warmth": warmth})
        assert client.predict(name, turned).predictions.tolist() == y
        with client.stream(name) as stream:
            stream.learn(turned, y)
            stream.predict(turned)
            _, served = list(stream)
        assert served.predictions.tolist() == y
        misspelled = client.predict(name, Frame({"room": rooms, "warmht": warmth}))
        assert misspelled.predictions.tolist() == y
        warning, absent = misspelled.warnings
        assert (absent["slug"], absent["column"]) == ("absent-column", "warmth")
        assert warning["slug"] == "unknown-column"
        assert "did you mean `warmth`" in warning["message"]

    def test_a_refusal_says_how_far_it_came(self, client: Client, name: str):
        samples = two_classes(30)
        samples.X[25] = np.inf
        client.create(name, SPEC)
        with pytest.raises(Refused, match=r"422.*; 20 samples were acknowledged") as caught:
            client.learn(name, samples.X, samples.y, batch=10)
        assert caught.value.acknowledged == 20
        assert caught.value.idempotency_key
        assert client.describe(name)["sequence"] == 20

    def test_refit_is_waited_for(self, client: Client, name: str):
        samples = curve(60)
        basis = [{"type": "constant"}]
        client.create(name, task="regression", semiparametric={"basis": basis, "tol": 0.01})
        with pytest.raises(Refused, match="422"):
            client.refit(name)
        client.learn(name, samples.X, samples.y, head="asset")
        job = client.refit(name, wait_seconds=60)
        assert (job["status"], job["samples"]) == ("done", 60)
        assert client.predict(name, samples.X, head="semiparametric").decisions.shape == (60,)

    def test_a_stream_gives_results_in_the_order_of_sending(self, client: Client, name: str):
        samples = two_classes(600)
        client.create(name, SPEC)
        with client.stream(name) as stream:
            results = list(stream.learn_each(zip(samples.X, samples.y, strict=True)))
            stream.learn(samples.X[:8], samples.y[:8], head="asset")
            stream.predict(samples.X[:5], min_sequence=608)
            more = list(stream)
        assert [result.sequence for result in results] == list(range(1, 601))
        assert [type(result) for result in more] == [Learned, Predictions]
        assert stream.acknowledged == 608
        assert np.array_equal(more[1].decisions, client.predict(name, samples.X[:5]).decisions)

    def test_threads_share_a_client_and_a_stream(self, client: Client, name: str):
        samples = two_classes(40)
        client.create(name, SPEC)
        with client.stream(name) as stream, ThreadPoolExecutor(4) as threads:
            tickets = list(threads.map(stream.learn, samples.X, samples.y))
            calls = threads.map(lambda x, y: client.learn(name, x, y).learned, *samples[:2])
            assert list(calls) == [1] * 40
        assert sorted(tickets) == list(range(1, 41))
        assert client.describe(name)["sequence"] == 80

    def test_a_refused_frame_is_raised_in_its_place(self, client: Client, name: str):
        client.create(name, SPEC)
        with client.stream(name) as stream:
            stream.learn([0.0, 1.0], "a")
            stream.learn([0.0, 1.0, 2.0], "b")
            stream.learn([3.0, 1.0], "b")
            assert stream.receive().sequence == 1
            with pytest.raises(Refused, match="422") as caught:
                stream.receive()
            assert caught.value.ticket == 2
            assert stream.receive().sequence == 2
            with pytest.raises(ClientError, match="every response has been received"):
                stream.receive()

    def test_a_refusal_that_nobody_receives_is_raised_at_the_end(self, client: Client, name: str):
        client.create(name, SPEC)
        with pytest.raises(Refused, match="422"), client.stream(name) as stream:
            stream.learn([0.0, np.inf], "a")

    def test_a_source_that_begins_again_learns_nothing_twice(self, client: Client, name: str):
        samples = two_classes(20)
        pairs = list(zip(samples.X, samples.y, strict=True))
        client.create(name, SPEC)
        with client.stream(name, "meter", first=1) as stream:
            list(stream.learn_each(pairs[:12]))
        with client.stream(name, "meter", first=6) as stream:
            results = list(stream.learn_each(pairs[5:]))
        assert [result.replayed for result in results] == [True] * 7 + [False] * 8
        assert client.describe(name)["sequence"] == 20

    def test_source_without_a_number_learns_again(self, client: Client, name: str):
        samples = two_classes(20)
        client.create(name, SPEC)
        for begun in (0, 10):
            with client.stream(name, "meter") as stream:
                pairs = zip(
                    samples.X[begun : begun + 10], samples.y[begun : begun + 10], strict=True
                )
                results = list(stream.learn_each(pairs))
            assert not any(result.replayed for result in results)
        assert client.describe(name)["sequence"] == 20

    def test_what_the_server_has_shrunk_is_none(self):
        shrunk = {"model": "m", "sequence": 3, "learned": 2, "results": {}, "head": {}}
        result = join_learned([shrunk])
        assert result.learned == 2
        assert result.predictions.tolist() == [None, None]
        assert np.isnan(result.decisions).all()
        assert (result.admitted, result.steps) == (None, None)

    def test_a_queue_that_is_full_costs_no_order(self, tmp_path: Path, name: str):
        samples = two_classes(120)
        pairs = [(samples.X[i : i + 3], samples.y[i : i + 3]) for i in range(0, 120, 3)]
        running = ServerProcess(tmp_path / "data", queue_samples=60).start()
        try:
            with Client(running.url) as client:
                for model in (name, f"{name}-alone"):
                    client.create(model, SPEC)
                client.learn(f"{name}-alone", samples.X, samples.y, batch=60)
                with client.stream(name) as stream:
                    results = list(stream.learn_each(pairs))
                said = [client.predict(n, samples.X) for n in (name, f"{name}-alone")]
        finally:
            running.close()
        assert [result.sequence for result in results] == list(range(3, 121, 3))
        assert np.array_equal(said[0].predictions, said[1].predictions)

    def test_no_such_model(self, client: Client, name: str):
        with pytest.raises(Refused, match="404"), client.stream(name):
            pass

    def test_rows_that_wait_for_labels_take_no_head(self, client: Client, name: str):
        with pytest.raises(ValueError, match="leave head out"):
            client.predict(name, [[1.0]], head="asset", ids=["a"])
