"""A number that names a state: the epoch beside the sequence, and requests that are for a state."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, two_classes
from tests.service.web.test_stream import open_stream
from tests.service.writer_bench import Bench, work_off
from wolfstream.service.client.errors import Refused
from wolfstream.service.client.sync import Client
from wolfstream.service.engine.queue_items import LearnRequest
from wolfstream.service.errors import AnotherState, Invalid
from wolfstream.service.model.revision import Revision, check_revision, read_awaited, read_tag
from wolfstream.service.recovery.salvage import recover_directory
from wolfstream.service.web.formats.revisions import read_if_match

SPEC = PAPERS | {"kernel": {"type": "linear"}, "asset": None}
ROWS = {"x": [[0.1, 0.2, 0.5], [0.3, 0.4, 0.5]]}


@pytest.fixture
def path(client: httpx.Client, name: str) -> Iterator[str]:
    """A model of ten samples, with a snapshot."""
    path = f"/v1/models/{name}"
    client.put(path, json=SPEC).raise_for_status()
    client.post(f"{path}/samples", json=body(two_classes(10, features=3))).raise_for_status()
    client.post(f"{path}/snapshot").raise_for_status()
    yield path
    client.delete(path)


def refused(answer: httpx.Response) -> str:
    told = answer.json()
    assert (answer.status_code, told["type"]) == (412, "urn:wolfstream:another-state"), told
    detail: str = told["detail"]
    return detail


def epoch_of(client: httpx.Client, path: str) -> str:
    epoch: str = client.get(path).json()["epoch"]
    return epoch


def learn(client: httpx.Client, path: str, seed: int = 1, **headers: str) -> httpx.Response:
    sent = body(two_classes(3, seed, features=3))
    return client.post(f"{path}/samples", json=sent, headers=headers)


def test_every_answer_has_it_beside_the_sequence(
    client: httpx.Client, server: ServerProcess, path: str
) -> None:
    epoch = epoch_of(client, path)
    sent = body(two_classes(3, 1, features=3))
    later = client.post(f"{path}/asset", json=sent)  # the head is null
    assert later.status_code == 409
    tensor = {"name": "x", "shape": [1, 3], "datatype": "FP64", "data": [0.1, 0.2, 0.3]}
    inferred = client.post(f"/v2/models/{path.rpartition('/')[2]}/infer", json={"inputs": [tensor]})
    answers = [
        client.post(f"{path}/samples", json=sent),
        client.post(f"{path}/samples", json=sent, headers={"prefer": "respond-async"}),
        client.post(f"{path}/predict", json=ROWS),
        client.get(path),
        client.put(path, json=SPEC),
        client.get(f"{path}/history"),
        client.get(f"{path}/learners"),
    ]
    told = [answer.raise_for_status().json() for answer in answers]
    assert {item["epoch"] for item in told} == {epoch}
    assert inferred.json()["parameters"]["epoch"] == epoch
    assert {item["epoch"] for item in told[5]["snapshots"]} == {epoch}
    listed = {item["model"]: item for item in client.get("/v1/models").json()["models"]}
    assert listed[told[0]["model"]]["epoch"] == epoch
    for answer, item in zip(answers, told, strict=True):
        assert answer.headers["etag"] == f'"{epoch}:{item["sequence"]}"'
    with open_stream(server, path.rpartition("/")[2]) as stream:
        assert stream.receive()["hello"]["epoch"] == epoch
        for frame in ({"op": "learn", **sent}, {"op": "predict", **ROWS}):
            assert stream.ask({"id": 1, **frame})["epoch"] == epoch


def test_another_one_after_a_rollback_and_after_being_made_anew(
    client: httpx.Client, path: str
) -> None:
    seen = [epoch_of(client, path)]
    for _ in range(2):
        told = client.post(f"{path}/rollback", json={"sequence": 10}).json()
        assert epoch_of(client, path) == told["epoch"]
        assert learn(client, path).json()["epoch"] == told["epoch"]
        seen.append(told["epoch"])
    client.delete(path)
    client.put(path, json=SPEC)
    seen.append(epoch_of(client, path))
    assert len(set(seen)) == 4


def test_a_restart_keeps_it(tmp_path: Path) -> None:
    """From the journal alone, from a snapshot, after a rollback, and after a later snapshot."""
    bench = Bench(tmp_path)
    model = bench.create({"asset": None})
    bench.learn(model, two_classes(10))
    for step in ("journal", "snapshot", "rollback", "rollback again", "snapshot", "snapshot"):
        if step == "snapshot":
            bench.learn(model, two_classes(10))
            bench.snapshot(model)
        elif step.startswith("rollback"):
            back = bench.writer.history.describe(model)[-1]["sequence"]
            bench.writer.history.roll_back(model, back)
        epoch = model.published.epoch
        bench = bench.restarted()
        again = bench.writer.models.get("m")
        assert again is not None
        assert again.published.epoch == epoch, step
        model = again
    bench.close()


def test_another_one_where_a_lost_end_is_given_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.learn(bench.create({"asset": None}), two_classes(10))
    bench.kill()
    epochs = set()
    for _ in range(2):
        recover_directory(tmp_path)
        bench = Bench(tmp_path)
        (model,) = bench.writer.models.all()
        epochs.add(model.published.epoch)
        bench.kill()
    assert len(epochs) == 2


class TestMinSequence:
    def test_of_this_epoch_is_waited_for(self, client: httpx.Client, path: str):
        state = learn(client, path).headers["etag"].strip('"')
        answer = client.post(f"{path}/predict?min_sequence={state}", json=ROWS)
        assert answer.raise_for_status().headers["etag"] == f'"{state}"'
        assert client.get(f"{path}?min_sequence={state}").status_code == 200

    def test_of_another_is_refused(self, client: httpx.Client, path: str):
        state = learn(client, path).headers["etag"].strip('"')
        client.post(f"{path}/rollback", json={"sequence": 10}).raise_for_status()
        for answer in (
            client.post(f"{path}/predict?min_sequence={state}", json=ROWS),
            client.get(f"{path}?min_sequence={state}"),
        ):
            assert f"is for {state.partition(':')[0]}" in refused(answer)
        assert client.get(f"{path}?min_sequence=13").status_code == 200

    def test_on_a_stream(self, client: httpx.Client, server: ServerProcess, path: str):
        state = client.get(path).headers["etag"].strip('"')
        with open_stream(server, path.rpartition("/")[2]) as stream:
            stream.receive()
            asked = {"id": 1, "op": "predict", **ROWS}
            assert stream.ask(asked | {"min_sequence": state})["sequence"] == 10
            error = stream.ask(asked | {"min_sequence": "another:1"})["error"]
            assert error["type"] == "urn:wolfstream:another-state"

    @pytest.mark.parametrize("given", ["9", ":9", "e:", "e:-1", "e:x", "a b:1", True, 1.5, -1, []])
    def test_that_cannot_be_read(self, given: Any):
        with pytest.raises(Invalid, match="EPOCH:SEQUENCE"):
            read_awaited(given)


class TestIfMatch:
    def test_learning_in_a_state_or_an_epoch(self, client: httpx.Client, path: str):
        tag = client.get(path).headers["etag"]
        epoch = epoch_of(client, path)
        first = learn(client, path, **{"if-match": tag})
        assert first.status_code == 200
        assert f"is at {epoch}:13" in refused(learn(client, path, **{"if-match": tag}))
        for matching in (f'"{epoch}"', "*", f'"x:1", {first.headers["etag"]}, {tag}'):
            assert learn(client, path, **{"if-match": matching}).status_code in (200, 412)
        assert client.get(path).json()["sequence"] == 13 + 2 * 3

    def test_a_request_that_comes_again_under_its_key_has_its_answer(
        self, client: httpx.Client, path: str
    ):
        headers = {"if-match": client.get(path).headers["etag"], "idempotency-key": "k"}
        first, again = (learn(client, path, **headers) for _ in range(2))
        assert first.json() == again.raise_for_status().json()
        assert client.get(path).json()["sequence"] == 13

    def test_two_in_one_group_cannot_both_find_the_state(self, tmp_path: Path):
        bench = Bench(tmp_path)
        model = bench.create({"asset": None})
        expected = (Revision(model.published.epoch, 0),)
        answers: list[Any] = [object(), object()]
        work_off(
            bench.writer,
            [
                LearnRequest(model, "working_set", two_classes(3), answer, 0.0, expected=expected)
                for answer in answers
            ],
        )
        replies = {id(waiter): said for waiter, said in bench.replies}
        first, second = (replies[id(answer)] for answer in answers)
        assert first["sequence"] == 3
        assert isinstance(second, AnotherState)
        bench.close()

    def test_rolling_back_and_deleting(self, client: httpx.Client, path: str):
        old = client.get(path).headers["etag"]
        learn(client, path).raise_for_status()
        back = client.post(f"{path}/rollback", json={"sequence": 10}, headers={"if-match": old})
        refused(back)
        refused(client.delete(path, headers={"if-match": old}))
        present = client.get(path).headers["etag"]
        assert client.delete(path, headers={"if-match": present}).status_code == 204

    @pytest.mark.parametrize("value", ["", "e:1", '"e:1', '"e" "f"', "**", ",".join(['"e"'] * 17)])
    def test_that_cannot_be_read(self, client: httpx.Client, path: str, value: str):
        answer = learn(client, path, **{"if-match": value})
        assert (answer.status_code, client.get(path).json()["sequence"]) == (422, 10)

    def test_weak_tags_and_those_of_others_match_nothing(self):
        for tag in ('W/"e:1"', '"e:1x"', '"other"', '"e:2"', '""'):
            with pytest.raises(AnotherState):
                check_revision("m", "e", 1, read_if_match([tag]))
        check_revision("m", "e", 1, [read_tag('"e:1"')])
        check_revision("m", "e", 1, read_if_match([]))


class TestFrames:
    """`if_match` in a frame of a stream, as `If-Match` in a request."""

    @pytest.fixture
    def stream(self, server: ServerProcess, name: str) -> Iterator[Callable[..., Any]]:
        """Learns a sample in the state that is named; the answer."""
        with Client(server.url) as client:
            client.create(name, SPEC)
        with open_stream(server, name) as opened:
            self.epoch = opened.receive()["hello"]["epoch"]

            def learn(**more: Any) -> Any:
                return opened.ask({"id": 1, "op": "learn", "x": [[0, 1, 2]], "y": ["a"], **more})

            yield learn

    def test_only_in_that_state(self, stream: Callable[..., Any]):
        assert stream(if_match=f"{self.epoch}:0")["sequence"] == 1
        refused = stream(if_match=f"{self.epoch}:0")["error"]
        assert (refused["status"], refused["type"]) == (412, "urn:wolfstream:another-state")
        assert stream(if_match=f"{self.epoch}:1")["sequence"] == 2

    def test_only_in_that_epoch(self, stream: Callable[..., Any]):
        assert stream(if_match=self.epoch)["sequence"] == 1
        assert stream(if_match="another")["error"]["status"] == 412
        assert stream()["sequence"] == 2

    @pytest.mark.parametrize("wrong", ["", ":3", "a:", "a:b", '"quoted"', 3, ["a"], "a:1:2"])
    def test_anything_else_is_refused(self, stream: Callable[..., Any], wrong: Any):
        refused = stream(if_match=wrong)["error"]
        assert (refused["status"], refused["type"]) == (422, "urn:wolfstream:invalid")

    def test_of_predictions_it_is_unknown(self, stream: Callable[..., Any]):
        assert stream(op="predict", if_match=self.epoch)["error"]["status"] == 422


class TestClient:
    def test_results_name_the_state_and_calls_take_it(self, server: ServerProcess, name: str):
        samples = two_classes(30, features=3)
        with Client(server.url) as client:
            first = client.create(name, SPEC)
            learned = client.learn(
                name, samples.X, samples.y, batch=7, if_match=f"{first['epoch']}:0"
            )
            assert learned.state == f"{first['epoch']}:30"
            predicted = client.predict(name, samples.X, min_sequence=learned.state)
            assert predicted.state == learned.state
            with client.stream(name) as stream:
                stream.predict(samples.X, min_sequence=learned.state)
                assert stream.receive().epoch == first["epoch"]
            for call in (
                lambda: client.learn(name, samples.X, samples.y, if_match=f"{learned.epoch}:29"),
                lambda: client.rollback(name, 0, if_match="another"),
                lambda: client.delete(name, if_match="another"),
                lambda: client.predict(name, samples.X, min_sequence="another:3"),
            ):
                with pytest.raises(Refused) as caught:
                    call()
                assert (caught.value.status, caught.value.slug) == (412, "another-state")
            client.delete(name, if_match=learned.state)

    def test_a_stream_takes_it_too(self, server: ServerProcess, name: str):
        with Client(server.url) as client:
            epoch = client.create(name, SPEC)["epoch"]
            with client.stream(name) as stream:
                for at in (f"{epoch}:0", epoch):
                    stream.learn([[0.0, 1.0]], [1], if_match=at)
                    assert stream.receive().state
                stream.learn([[0.0, 1.0]], [1], if_match=f"{epoch}:0")
                with pytest.raises(Refused) as caught:
                    stream.receive()
                assert (caught.value.status, caught.value.slug) == (412, "another-state")

    def test_another_writer_between_two_batches_is_noticed(self, server: ServerProcess, name: str):
        samples = two_classes(30, features=3)
        with Client(server.url) as client, Client(server.url) as other:
            epoch = client.create(name, SPEC)["epoch"]

            def rows() -> Iterator[Any]:
                for at, row in enumerate(samples.X.tolist()):  # type: ignore[union-attr]
                    if at == 15:
                        other.learn(name, samples.X[:2], samples.y[:2])  # type: ignore[index]
                    yield row

            with pytest.raises(Refused) as caught:
                client.learn(name, rows(), iter(samples.y), batch=10, if_match=f"{epoch}:0")
            assert (caught.value.slug, caught.value.acknowledged) == ("another-state", 10)
