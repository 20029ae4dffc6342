"""A model's state out of a server and into one: the same answers, and refusals of all else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import wolfstream
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, three_classes
from tests.service.web.test_http import problem
from wolfstream import Client, Refused, SFWClassifier, StreamClassifier, StreamRegressor
from wolfstream.service.recovery.model_files import load_model
from wolfstream.service.storage.snapshot_format import State, decode_state, encode_state

SAMPLES = three_classes(150)
X, Y = np.asarray(SAMPLES.X), np.array(SAMPLES.y)
ASKED = np.asarray(three_classes(40, seed=1).X)
MOST = 8 << 20
ROOM = {"state_bytes": MOST, "features": 50, "classes": 20}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("server") / "data", **ROOM).start()
    yield running
    running.close()


@pytest.fixture
def wolf(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> State:
    """A small model without preparation."""
    path = tmp_path_factory.mktemp("files") / "a.model"
    wolfstream.save(SFWClassifier().fit(X, Y), path)
    return load_model(path).state


def whole(state: State) -> bytes:
    return b"".join(encode_state(state))


def put(client: httpx.Client, name: str, content: bytes, **headers: str) -> httpx.Response:
    path = f"/v1/models/{name}/state"
    return client.put(path, content=content, headers={"content-type": OCTETS, **headers})


OCTETS = "application/octet-stream"


class TestThroughTheClient:
    def test_a_fitted_model_answers_as_it_did_and_goes_on(self, wolf: Client, name: str):
        model = StreamClassifier().fit(X, Y)
        created = wolf.upload(name, model)
        assert (created["sequence"], created["spec"]["task"]) == (150, "classification")
        said = wolf.predict_proba(name, ASKED)
        order = [said.classes.index(label) for label in model.classes_.tolist()]
        # Two processes that compile at the same time may differ in the last bit.
        np.testing.assert_allclose(
            said.probabilities[:, order], model.predict_proba(ASKED), rtol=0, atol=1e-9
        )
        learned = wolf.learn(name, X, Y)
        assert learned.sequence == 300
        model.partial_fit(X, Y)
        told = wolf.predict_proba(name, ASKED, min_sequence=300).probabilities
        np.testing.assert_allclose(told[:, order], model.predict_proba(ASKED), rtol=0, atol=1e-9)

    def test_numbers_go_up_and_down(self, wolf: Client, name: str):
        model = StreamRegressor().fit(X, X[:, 0])
        wolf.upload(name, model)
        told = wolf.predict(name, ASKED).predictions
        assert list(told) == model.predict(ASKED).tolist()
        again = wolf.download(name)
        np.testing.assert_array_equal(again.predict(ASKED), model.predict(ASKED))

    def test_a_served_model_becomes_an_estimator_or_a_file(
        self, wolf: Client, name: str, tmp_path: Path
    ):
        wolf.create(name, temporal=True)
        wolf.learn(name, X, Y)
        again = wolf.download(name)
        assert isinstance(again, StreamClassifier)
        assert again.temporal
        said = wolf.predict(name, ASKED)
        assert list(said.predictions) == again.predict(ASKED).tolist()
        assert wolf.download(name, tmp_path / "a.model") is None
        assert wolf.upload(f"{name}.copy", tmp_path / "a.model")["sequence"] == 150
        copied = wolf.predict(f"{name}.copy", ASKED)
        np.testing.assert_array_equal(copied.decisions, said.decisions)
        assert [path.name for path in tmp_path.iterdir()] == ["a.model"]

    def test_failed_download_leaves_no_file(self, wolf: Client, name: str, tmp_path: Path):
        wolf.upload(name, SFWClassifier().fit(X, Y))
        (tmp_path / "directory").mkdir()
        with pytest.raises(IsADirectoryError):
            wolf.download(name, tmp_path / "directory")
        assert [path.name for path in tmp_path.iterdir()] == ["directory"]

    def test_sent_again_it_is_found_until_it_has_learned(self, wolf: Client, name: str):
        model = SFWClassifier().fit(X, Y)
        first, second = wolf.upload(name, model), wolf.upload(name, model)
        assert first == second
        wolf.learn(name, X[:1], Y[:1])
        with pytest.raises(Refused, match="409 The model exists in another state"):
            wolf.upload(name, model)
        assert wolf.describe(name)["sequence"] == 151

    def test_every_kind_of_model_comes_down_and_goes_up(
        self, wolf: Client, client: httpx.Client, name: str
    ):
        """Those that are no estimator, too."""
        spec = {"working_set": {"max_size": 50}, "asset": {"dimension": 32}}
        wolf.create(name, spec)
        for call in ("samples", "asset"):
            wolf.learn(name, X, Y, head=call)
        answer = client.get(f"/v1/models/{name}/state")
        told = wolf.describe(name)
        assert answer.headers["etag"] == f'"{told["epoch"]}:300"'
        assert answer.headers["content-type"] == OCTETS
        assert int(answer.headers["content-length"]) == len(answer.content)
        assert put(client, f"{name}.copy", answer.content).status_code == 201
        copy = wolf.describe(f"{name}.copy")
        for heads in (copy["heads"], told["heads"]):
            for stats in heads.values():
                del stats["bytes"]  # what is reserved differs
        assert copy["heads"] == told["heads"]
        assert copy["epoch"] != told["epoch"]
        with pytest.raises(ValueError, match="no estimator has the heads"):
            wolf.download(name)


def test_it_is_durable_before_it_is_answered(tmp_path: Path) -> None:
    model = SFWClassifier().fit(X, Y)
    server = ServerProcess(tmp_path / "data").start()
    try:
        with Client(server.url) as client:
            client.upload("m", model)
            before = client.predict("m", ASKED)
            server.kill()
            server.start()
            np.testing.assert_array_equal(client.predict("m", ASKED).decisions, before.decisions)
            assert client.history("m")["snapshots"][0]["sequence"] == 150
    finally:
        server.close()


class TestRefused:
    def unusable(self, client: httpx.Client, name: str, content: bytes) -> str:
        told = problem(put(client, name, content), 422, "unusable-state")
        assert client.get(f"/v1/models/{name}").status_code == 404
        assert "/tmp" not in told["detail"]
        return str(told["detail"])

    def test_damage_and_other_versions(self, client: httpx.Client, name: str, papers: State):
        content = whole(papers)
        assert "checksum" in self.unusable(client, name, content[:-1])
        assert "checksum" in self.unusable(client, name, content[:-50] + bytes(50))
        assert "another one" in self.unusable(client, name, content[:7] + b"\x09" + content[8:])
        assert "not a model file" in self.unusable(client, name, b"{}")
        assert "not a model file" in self.unusable(client, name, b"")

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"sequence": -1}, "sequence"),
            ({"sequence": 10**30}, "sequence"),
            ({"sequence": "7"}, "sequence"),
            ({"dimension": 10**12}, "shape"),
            ({"dimension": None}, "no features"),
            ({"spec": {"task": "regression"}}, "cannot be"),
            ({"spec": {"from": "the future"}}, "holds no model that this version knows"),
            ({"spec": None}, "holds no model"),
            ({"heads": {}}, "cannot be restored"),
            ({"heads": []}, "cannot be restored"),
            ({"names": [str(i) for i in range(51)]}, "51 names"),
            ({"names": [["a"], {}]}, "a name"),
            ({"names": ["a" * 300]}, "a name"),
            ({"schema": {"columns": "no"}}, "cannot be restored"),
            ({"schema": {"columns": [["a", True, [], 0, False]]}}, "cannot be"),
        ],
    )
    def test_a_plain_part_that_was_made_up(
        self, client: httpx.Client, name: str, papers: State, change: Any, said: str
    ):
        made = State({**papers.plain, **change}, papers.arrays)
        assert said in self.unusable(client, name, whole(made))

    @pytest.mark.parametrize(
        ("labels", "said"),
        [
            (list(range(21)), "more labels"),
            ([1.5, 2, 3], "a label"),
            (["a" * 300, "b", "c"], "longer than 256"),
            ([[1], [2], [3]], "a label"),
            ("abc", "more labels"),
            (["a", "b"], "number of classes"),
        ],
    )
    def test_labels_that_were_made_up(
        self, client: httpx.Client, name: str, papers: State, labels: Any, said: str
    ):
        plain = json.loads(json.dumps(papers.plain))
        plain["heads"]["working_set"]["classes"] = labels
        assert said in self.unusable(client, name, whole(State(plain, papers.arrays)))

    def test_scores_that_were_made_up(self, client: httpx.Client, name: str, papers: State):
        plain = json.loads(json.dumps(papers.plain))
        own = plain["heads"]["working_set"]
        found = [name for name in own if name not in ("classes", "features")]
        for part in found:
            changed = json.loads(json.dumps(plain))
            changed["heads"]["working_set"][part] = {"made": "up"}
            answer = put(client, name, whole(State(changed, papers.arrays)))
            assert answer.status_code in (201, 422)
            if answer.status_code == 201:
                client.delete(f"/v1/models/{name}").raise_for_status()

    def test_arrays_that_were_made_up(self, client: httpx.Client, name: str, papers: State):
        arrays = {**papers.arrays, "working_set.column": papers.arrays["working_set.column"] + 9999}
        assert "column" in self.unusable(client, name, whole(State(papers.plain, arrays)))
        arrays = {key: array[:0] for key, array in papers.arrays.items()}
        self.unusable(client, name, whole(State(papers.plain, arrays)))
        self.unusable(client, name, whole(State(papers.plain, {})))

    def test_more_bytes_than_a_state_may_have(self, client: httpx.Client, name: str):
        told = problem(put(client, name, bytes(MOST + 1)), 413, "too-large")
        assert str(MOST) in told["detail"]

    def test_another_content_type(self, client: httpx.Client, name: str, papers: State):
        answer = put(client, name, whole(papers), **{"content-type": "application/json"})
        problem(answer, 415, "unsupported-format")

    def test_names_that_no_model_has(self, client: httpx.Client, papers: State):
        problem(put(client, ".hidden", whole(papers)), 422, "invalid")
        problem(put(client, "a" * 64, whole(papers)), 422, "invalid")

    def test_a_name_that_is_taken(self, client: httpx.Client, name: str, papers: State):
        client.put(f"/v1/models/{name}", json={**PAPERS, "task": "regression"})
        told = problem(put(client, name, whole(papers)), 409, "state-exists")
        assert "DELETE" in told["detail"]
        assert client.get(f"/v1/models/{name}").json()["spec"]["task"] == "regression"

    def test_a_model_that_is_not_there(self, client: httpx.Client, name: str):
        problem(client.get(f"/v1/models/{name}/state"), 404, "unknown-model")

    def test_what_a_life_elsewhere_said_is_left_out(
        self, client: httpx.Client, name: str, papers: State
    ):
        made = {"rolled_back": {"to": "nowhere"}, "epoch": ["x"], "model": 7, "memory_bytes": "x"}
        plain = {**papers.plain, **made, "trained": {"algorithm": 3}, "made": 7, "junk": "x"}
        assert put(client, name, whole(State(plain, papers.arrays))).status_code == 201
        told = client.get(f"/v1/models/{name}").json()
        assert (told["model"], told["rolled_back"]) == (name, None)
        content = client.get(f"/v1/models/{name}/state").content
        kept = decode_state(content, "it").plain
        assert kept["epoch"] == told["epoch"]
        assert type(kept["memory_bytes"]) is int
        assert not {"junk", "made", "trained"} & kept.keys()

    def test_the_server_goes_on(self, client: httpx.Client, name: str):
        client.put(f"/v1/models/{name}", json=PAPERS).raise_for_status()
        learned = client.post(f"/v1/models/{name}/samples", json=body(three_classes(20)))
        assert learned.json()["learned"] == 20
