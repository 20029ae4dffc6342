"""The contract over HTTP, against a real server."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

from tests.service.specs import PAPERS
from tests.service.streams import body, curve, part, three_classes, two_classes
from wolfstream.service.web.formats.wire import JSON

MSGPACK = {"Content-Type": "application/vnd.msgpack", "Accept": "application/vnd.msgpack"}


def problem(answer: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["type"] == f"urn:wolfstream:{slug}"
    assert told["status"] == status
    assert told["detail"]
    return told


def create(client: httpx.Client, name: str, spec: dict[str, Any] | None = None) -> None:
    assert client.put(f"/v1/models/{name}", json=spec or {}).status_code == 201


# -- models -----------------------------------------------------------------------------


def test_an_empty_spec_is_a_model_with_every_default(client: httpx.Client, name: str) -> None:
    answer = client.put(f"/v1/models/{name}", json={})
    assert answer.status_code == 201
    spec = client.get(f"/v1/models/{name}").json()["spec"]
    assert spec["kernel"] == {"type": "rbf", "gamma": "auto"}
    assert spec["working_set"]["max_size"] == 5000
    assert spec["asset"]["lambda"] == 1e-4
    assert spec["serve"] == "adaptive"
    assert spec["prepare"] == {
        "missing": "mean",
        "named": "table",
        "names": "learned",
        "columns": {},
        "timestamps": [],
        "texts": "crossed",
        "codes": "crossed",
    }


def test_creating_needs_no_body(client: httpx.Client, name: str) -> None:
    assert client.put(f"/v1/models/{name}").status_code == 201


def test_the_same_spec_again_is_fine_and_another_is_a_conflict(
    client: httpx.Client, name: str
) -> None:
    create(client, name)
    assert client.put(f"/v1/models/{name}", json={"seed": 0}).status_code == 200
    problem(client.put(f"/v1/models/{name}", json={"seed": 1}), 409, "model-exists")


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"kernal": {}}, "/kernal"),
        ({"working_set": {"C": "1"}}, "/working_set/C"),
        ({"working_set": {"C": 0}}, "/working_set/C"),
        ({"kernel": {"type": "rbf", "gamma": -1}}, "/kernel/gamma"),
        ({"kernel": {"type": "sigmoid"}}, "/kernel"),
        ({"asset": {"dimension": 1.5}}, "/asset/dimension"),
        ({"task": "clustering"}, "/task"),
    ],
)
def test_a_wrong_spec_names_the_wrong_field(
    client: httpx.Client, name: str, spec: dict[str, Any], pointer: str
) -> None:
    told = problem(client.put(f"/v1/models/{name}", json=spec), 422, "invalid")
    assert pointer in [error["pointer"] for error in told["errors"]]
    assert client.get(f"/v1/models/{name}").status_code == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [("..", 404), (".hidden", 422), ("a" * 300, 422), ("a%2Fb", 404), ("a b", 422), ("ä", 422)],
)
def test_a_name_outside_the_pattern_is_refused(
    client: httpx.Client, path: str, status: int
) -> None:
    answer = client.put(f"/v1/models/{path}", json={})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_models_are_listed_described_and_deleted(client: httpx.Client, name: str) -> None:
    create(client, name)
    client.post(f"/v1/models/{name}/samples", json=body(two_classes(50)))
    listed = {m["model"]: m for m in client.get("/v1/models").json()["models"]}
    assert listed[name].pop("epoch")
    assert listed[name] == {"model": name, "sequence": 50, "status": "ok", "features": 4}
    told = client.get(f"/v1/models/{name}").json()
    head = told["heads"]["working_set"]
    assert told["sequence"] == 50
    assert sorted(head["classes"]) == ["no", "yes"]
    assert 0 < head["support_vectors"] <= head["size"] <= 50
    assert head["objective"] < 0 <= head["gap"]
    assert head["prequential"]["samples"] >= 45
    assert 0.4 < head["prequential"]["accuracy"] <= 1
    assert head["bytes"] > 0
    assert client.delete(f"/v1/models/{name}").status_code == 204
    problem(client.get(f"/v1/models/{name}"), 404, "unknown-model")
    create(client, name, {"seed": 5})
    assert client.get(f"/v1/models/{name}").json()["sequence"] == 0


# -- learning and predicting ------------------------------------------------------------


def test_learn_then_predict_in_json(client: httpx.Client, name: str) -> None:
    create(client, name)
    samples = two_classes(400)
    answer = client.post(f"/v1/models/{name}/samples", json=body(samples)).json()
    assert (answer["model"], answer["sequence"], answer["learned"]) == (name, 400, 400)
    results = answer["results"]
    assert {len(column) for column in results.values()} == {400}
    assert results["prediction"][0] is None
    assert results["decision"][0] is None
    assert results["step"][0] == "initial"
    assert set(results["step"][1:]) <= {"toward", "away", "drop"}
    # The head whose predictions these are, not the one that the path names.
    assert answer["head"]["name"] == "adaptive"
    assert answer["head"]["prequential"]["samples"] == 399
    told = client.post(f"/v1/models/{name}/predict", json={"x": samples.X.tolist()}).json()
    assert told["sequence"] == 400
    assert told["head"] == "adaptive"
    agreed = [p == y for p, y in zip(told["prediction"], samples.y, strict=True)]
    assert np.mean(agreed) > 0.9
    positive = told["classes"][1]
    said = zip(told["decision"], told["prediction"], strict=True)
    assert all((d > 0) == (p == positive) for d, p in said)


def test_many_classes_have_one_decision_a_class(client: httpx.Client, name: str) -> None:
    create(client, name)
    samples = three_classes(300)
    answer = client.post(f"/v1/models/{name}/samples", json=body(samples)).json()
    lengths = [len(d) if isinstance(d, list) else d for d in answer["results"]["decision"]]
    assert lengths[0] is None
    assert lengths[-1] == 3
    told = client.post(f"/v1/models/{name}/predict", json={"x": samples.X[:5].tolist()}).json()
    assert sorted(told["classes"]) == [0, 10, 20]
    for decision, prediction in zip(told["decision"], told["prediction"], strict=True):
        assert told["classes"][int(np.argmax(decision))] == prediction


def test_both_heads_count_in_one_sequence(client: httpx.Client, name: str) -> None:
    create(client, name)
    samples = two_classes(200)
    client.post(f"/v1/models/{name}/samples", json=body(samples))
    answer = client.post(f"/v1/models/{name}/asset", json=body(samples)).json()
    assert answer["sequence"] == 400
    assert set(answer["results"]) == {"prediction", "decision"}
    assert answer["head"]["name"] == "adaptive"
    told = client.post(f"/v1/models/{name}/predict?head=asset", json={"x": [[1, 1, 1, 1]]}).json()
    assert told["head"] == "asset"
    assert told["prediction"] == ["yes"]


def test_one_sample_needs_no_list_around_it(client: httpx.Client, name: str) -> None:
    create(client, name)
    for x, y in (([0.0, 1.0], True), ([5.0, 6.0], False)):
        answer = client.post(f"/v1/models/{name}/samples", json={"x": x, "y": y})
        assert answer.json()["learned"] == 1
    told = client.post(f"/v1/models/{name}/predict", json={"x": [0.1, 1.1]}).json()
    assert told["prediction"] == [True]
    assert isinstance(told["decision"][0], float)


def test_labels_come_back_as_they_came(client: httpx.Client, name: str) -> None:
    create(client, name)
    labels = [2, True, "3", -7]
    x = [[0, 0], [9, 0], [0, 9], [9, 9]]
    client.post(f"/v1/models/{name}/samples", json={"x": x * 3, "y": labels * 3})
    told = client.post(f"/v1/models/{name}/predict", json={"x": x}).json()
    assert [(type(p), p) for p in told["prediction"]] == [(type(y), y) for y in labels]


def test_curl_says_form_and_means_json(client: httpx.Client, name: str) -> None:
    create(client, name)
    answer = client.post(
        f"/v1/models/{name}/samples",
        content=b'{"x": [[0, 1], [5, 6]], "y": ["a", "b"]}',
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 200


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i8"])
def test_messagepack_carries_raw_arrays(client: httpx.Client, name: str, dtype: str) -> None:
    create(client, name)
    X = np.round(two_classes(60).X * 4).astype(dtype)
    y = np.arange(60) % 2
    raw = {
        "x": {"dtype": dtype, "shape": list(X.shape), "data": X.tobytes()},
        "y": {"dtype": "<i8", "shape": [60], "data": y.astype("<i8").tobytes()},
    }
    answer = client.post(f"/v1/models/{name}/samples", content=msgpack.packb(raw), headers=MSGPACK)
    assert answer.headers["content-type"] == "application/vnd.msgpack"
    packed = msgpack.unpackb(answer.content)
    plain = f"{name}p"
    create(client, plain)
    told = client.post(
        f"/v1/models/{plain}/samples", json={"x": X.astype(float).tolist(), "y": y.tolist()}
    ).json()
    assert packed["results"] == told["results"]


def test_the_answer_follows_accept(client: httpx.Client, name: str) -> None:
    create(client, name)
    answer = client.get(f"/v1/models/{name}", headers={"Accept": "application/x-msgpack"})
    assert msgpack.unpackb(answer.content)["model"] == name
    refused = client.get("/v1/models/nobody", headers={"Accept": "application/vnd.msgpack"})
    problem(refused, 404, "unknown-model")


def test_an_untrained_model_says_so(client: httpx.Client, name: str) -> None:
    create(client, name)
    for _ in range(2):
        answer = client.post(f"/v1/models/{name}/predict", json={"x": [[1, 2]]})
        problem(answer, 409, "untrained")
        client.post(f"/v1/models/{name}/samples", json={"x": [[1, 2]], "y": ["only"]})


def test_a_null_head_says_so(client: httpx.Client, name: str) -> None:
    create(client, name, {"asset": None, "adaptive": None})
    samples = body(two_classes(10))
    problem(client.post(f"/v1/models/{name}/asset", json=samples), 409, "no-such-head")
    client.post(f"/v1/models/{name}/samples", json=samples)
    answer = client.post(f"/v1/models/{name}/predict?head=asset", json={"x": [[1, 1, 1, 1]]})
    problem(answer, 409, "no-such-head")


def test_min_sequence_reads_your_own_writes(client: httpx.Client, name: str) -> None:
    create(client, name)
    at = client.post(f"/v1/models/{name}/samples", json=body(two_classes(20))).json()["sequence"]
    rows = {"x": [[1, 1, 1, 1]]}
    told = client.post(f"/v1/models/{name}/predict?min_sequence={at}", json=rows)
    assert told.json()["sequence"] >= at
    with ThreadPoolExecutor(1) as pool:
        behind = f"/v1/models/{name}/predict?min_sequence={at + 1}"
        later = pool.submit(client.post, behind, json=rows)
        assert not wait([later], 0.3).done, "it waits for a sample that nobody has sent"
        learn_one = {"x": rows["x"], "y": ["no"]}
        client.post(f"/v1/models/{name}/samples", json=learn_one).raise_for_status()
        assert later.result().json()["sequence"] == at + 1
    for wrong in ("-1", "soon"):
        answer = client.post(f"/v1/models/{name}/predict?min_sequence={wrong}", json=rows)
        problem(answer, 422, "invalid")
    problem(client.post(f"/v1/models/{name}/predict?head=tail", json=rows), 422, "invalid")


# -- bad input: a clear problem, nothing half-learned, the server alive ---------------------

GOOD = '{"x": [[1, 2], [3, 4]], "y": ["a", "b"]}'
BAD_BODIES = {
    "wrong dimension": ('{"x": [[1, 2, 3]], "y": ["a"]}', 422, "invalid-samples"),
    "one row of another length": ('{"x": [[1, 2], [1]], "y": ["a", "b"]}', 422, "invalid-samples"),
    "NaN": ('{"x": [[1, NaN]], "y": ["a"]}', 422, "invalid-samples"),
    "infinity": ('{"x": [[1, 2], [-Infinity, 2]], "y": ["a", "b"]}', 422, "invalid-samples"),
    "too large for float64": ('{"x": [[1, 1e400]], "y": ["a"]}', 422, "invalid-samples"),
    "an integer too large": (f'{{"x": [[1, {"9" * 400}]], "y": ["a"]}}', 422, "invalid-samples"),
    "too large for a kernel": ('{"x": [[1, 1e300]], "y": ["a"]}', 422, "invalid-samples"),
    "text for a number": ('{"x": [[1, "2"]], "y": ["a"]}', 422, "invalid-samples"),
    "null for a number": ('{"x": [[1, null]], "y": ["a"]}', 422, "invalid-samples"),
    "true for a number": ('{"x": [[1, true]], "y": ["a"]}', 422, "invalid-samples"),
    "one label missing": ('{"x": [[1, 2], [3, 4]], "y": ["a"]}', 422, "invalid-samples"),
    "a row too many": ('{"x": [[1, 2], [3, 4], [5, 6]], "y": ["a", "b"]}', 422, "invalid-samples"),
    "a null label": ('{"x": [[1, 2]], "y": [null]}', 422, "invalid-samples"),
    "a fraction as a label": ('{"x": [[1, 2]], "y": [0.5]}', 422, "invalid-samples"),
    "an empty batch": ('{"x": [], "y": []}', 422, "invalid-samples"),
    "an empty row": ('{"x": [[]], "y": ["a"]}', 422, "invalid-samples"),
    "rows of named numbers": ('{"x": [{"a": 1}], "y": ["a"]}', 422, "invalid-samples"),
    "an unknown field": ('{"x": [[1, 2]], "y": ["a"], "z": 1}', 422, "invalid"),
    "a missing field": ('{"x": [[1, 2]]}', 422, "invalid"),
    "an array": ("[1, 2]", 422, "invalid-samples"),
    "half a body": (GOOD[:20], 400, "unreadable"),
    "no body": ("", 400, "unreadable"),
    "not UTF-8": (b'{"x": "\xff"}', 400, "unreadable"),
}


@pytest.mark.parametrize("head", ["samples", "asset"])
@pytest.mark.parametrize("wrong", BAD_BODIES)
def test_bad_samples_are_refused_as_a_whole(
    client: httpx.Client, name: str, head: str, wrong: str
) -> None:
    content, status, slug = BAD_BODIES[wrong]
    create(client, name, PAPERS)
    path = f"/v1/models/{name}/{head}"
    assert client.post(path, content=GOOD).status_code == 200
    before = client.get(f"/v1/models/{name}").json()
    problem(client.post(path, content=content), status, slug)
    assert client.get(f"/v1/models/{name}").json() == before
    assert client.post(path, content=GOOD).json()["sequence"] == 4


def test_a_bad_row_is_pointed_at(client: httpx.Client, name: str) -> None:
    create(client, name)
    rows = [[float(i)] * 8 for i in range(5)]
    rows[3][7] = math.inf
    content = str({"x": rows, "y": list("abcde")}).replace("'", '"').replace("inf", "Infinity")
    told = problem(
        client.post(f"/v1/models/{name}/samples", content=content), 422, "invalid-samples"
    )
    assert [(e["row"], e["pointer"]) for e in told["errors"]] == [(3, "/x/3/7")]


@pytest.mark.parametrize(
    ("content_type", "content", "status", "slug"),
    [
        ("application/vnd.msgpack", GOOD.encode(), 422, "invalid"),
        ("application/vnd.msgpack", b"\xc1", 400, "unreadable"),
        ("application/vnd.msgpack", b"\xdd\xff\xff\xff\xff", 400, "unreadable"),
        ("application/json", msgpack.packb({"x": [[1.0]], "y": ["a"]}), 400, "unreadable"),
        ("text/plain", GOOD.encode(), 415, "unsupported-format"),
        ("image/png", b"\x89PNG", 415, "unsupported-format"),
    ],
)
def test_a_body_that_is_not_what_it_says(
    client: httpx.Client, name: str, content_type: str, content: bytes, status: int, slug: str
) -> None:
    create(client, name)
    headers = {"Content-Type": content_type, "Accept": "application/json"}
    answer = client.post(f"/v1/models/{name}/samples", content=content, headers=headers)
    # MessagePack reads the byte "{" as the number 123 and stops at what follows.
    if content == GOOD.encode() and content_type.endswith("msgpack"):
        assert answer.status_code in (400, 422)
    else:
        problem(answer, status, slug)


def test_an_unknown_model_is_404_on_every_call(client: httpx.Client) -> None:
    calls: list[Callable[[], httpx.Response]] = [
        lambda: client.get("/v1/models/nobody"),
        lambda: client.delete("/v1/models/nobody"),
        lambda: client.post("/v1/models/nobody/samples", content=GOOD),
        lambda: client.post("/v1/models/nobody/asset", content=GOOD),
        lambda: client.post("/v1/models/nobody/predict", json={"x": [[1, 2]]}),
    ]
    for call in calls:
        problem(call(), 404, "unknown-model")


def test_paths_and_methods_that_do_not_exist_are_problems_too(client: httpx.Client) -> None:
    problem(client.get("/v3"), 404, "no-such-path")
    answer = client.patch("/v1/models/x")
    problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "DELETE, GET, PUT"


def test_a_regression_target_as_labels_is_noticed(client: httpx.Client, name: str) -> None:
    create(client, name)
    told = client.post(
        f"/v1/models/{name}/samples",
        json={"x": [[i] for i in range(500)], "y": list(range(500))},
    )
    assert "100 different labels" in problem(told, 422, "invalid-samples")["detail"]
    assert client.get(f"/v1/models/{name}").json()["sequence"] == 0


# -- features so large that float32 distances lose their digits ----------------------------


@pytest.mark.parametrize("gamma", ["auto", 0.5])
def test_a_large_common_offset_changes_nothing(
    client: httpx.Client, name: str, gamma: float | str
) -> None:
    samples = two_classes(300)
    rounded = np.round(samples.X * 16) / 16  # exact also behind the offset
    said = []
    for model, offset in ((name, 0.0), (f"{name}o", 2.0**32)):
        create(client, model, {"kernel": {"type": "rbf", "gamma": gamma}})
        content = {"x": (rounded + offset).tolist(), "y": samples.y}
        for head in ("samples", "asset"):
            answer = client.post(f"/v1/models/{model}/{head}", json=content).json()
            said.append(answer["results"]["prediction"])
    assert said[0] == said[2]
    # Random features approximate the kernel around zero: another place has another approximation.
    right = [np.mean(np.array(given) == np.array(samples.y)) for given in (said[1], said[3])]
    assert right[1] == pytest.approx(right[0], abs=0.05)


def test_two_far_clusters_with_fine_structure(client: httpx.Client, name: str) -> None:
    """Within each cluster distances are about 1, between them 1e8: float32 sees only the latter."""
    create(client, name, PAPERS | {"kernel": {"type": "rbf", "gamma": 0.5}, "asset": None})
    random = np.random.default_rng(0)
    fine = random.integers(0, 2, 200)
    X = np.round(random.standard_normal((200, 2)) * 8) / 64 + fine[:, None] * 3.0
    X += 1e8 * random.integers(0, 2, 200)[:, None]
    labels = fine.tolist()
    client.post(f"/v1/models/{name}/samples", json={"x": X.tolist(), "y": labels})
    told = client.post(f"/v1/models/{name}/predict", json={"x": X.tolist()}).json()
    assert told["prediction"] == labels


def test_a_stream_in_pieces_is_learned_in_order(client: httpx.Client, name: str) -> None:
    samples = two_classes(120)
    whole = f"{name}w"
    for model, cuts in ((whole, [0, 120]), (name, [0, 1, 4, 50, 120])):
        create(client, model)
        said = []
        for start, stop in pairwise(cuts):
            answer = client.post(
                f"/v1/models/{model}/samples", json=body(part(samples, start, stop))
            )
            said += answer.json()["results"]["admitted"]
        assert len(said) == 120
        if model == whole:
            expected = said
    assert said == expected


REGRESSION = {"task": "regression", "asset": {"dimension": 32, "lambda": 1e-3}}


class TestRegression:
    def test_numbers_in_every_format_make_the_same_model(
        self, client: httpx.Client, name: str
    ) -> None:
        """JSON, MessagePack and raw arrays: the same targets to the last bit."""
        samples = curve(200)
        X, y = samples.X, np.float64(np.float32(samples.y))
        raw_x = {"dtype": "<f8", "shape": [200, 3], "data": X.tobytes()}
        raw_y = {"dtype": "<f4", "shape": [200], "data": y.astype("<f4").tobytes()}
        json_body = JSON.encode({"x": X.tolist(), "y": y.tolist()})
        bodies = [
            (json_body, "application/json"),
            (msgpack.packb({"x": X.tolist(), "y": y.tolist()}), "application/vnd.msgpack"),
            (msgpack.packb({"x": raw_x, "y": raw_y}), "application/x-msgpack"),
        ]
        told = []
        for i, (content, media_type) in enumerate(bodies):
            client.put(f"/v1/models/{name}{i}", json=REGRESSION).raise_for_status()
            headers = {"content-type": media_type, "accept": "application/json"}
            url = f"/v1/models/{name}{i}/asset"
            answer = client.post(url, content=content, headers=headers).raise_for_status().json()
            told.append(answer["results"])
            rows = {"x": X[:20].tolist()}
            said = client.post(f"/v1/models/{name}{i}/predict", json=rows).json()
            assert "classes" not in said
            assert said["prediction"] == said["decision"]
            told.append(said["prediction"])
        assert told[0] == told[2] == told[4]
        assert told[1] == told[3] == told[5]
        assert {type(value) for value in told[1]} == {float}

    def test_a_label_is_refused_with_its_place_and_the_task(
        self, client: httpx.Client, name: str
    ) -> None:
        client.put(f"/v1/models/{name}", json=REGRESSION).raise_for_status()
        sent = {"x": [[0, 1], [1, 0], [1, 1]], "y": [1.5, "high", True]}
        refused = client.post(f"/v1/models/{name}/asset", json=sent)
        assert refused.status_code == 422
        assert "task is regression" in refused.json()["detail"]
        assert refused.json()["errors"] == [
            {"row": 1, "pointer": "/y/1", "detail": "must be a number, not text"},
            {"row": 2, "pointer": "/y/2", "detail": "must be a number, not a boolean"},
        ]
        assert client.get(f"/v1/models/{name}").json()["sequence"] == 0

    def test_a_number_for_a_class_is_refused_with_a_hint(
        self, client: httpx.Client, name: str
    ) -> None:
        client.put(f"/v1/models/{name}", json={}).raise_for_status()
        refused = client.post(f"/v1/models/{name}/samples", json={"x": [[0, 1]], "y": [1.5]})
        assert refused.status_code == 422
        assert '"task": "regression"' in refused.json()["errors"][0]["detail"]

    def test_there_is_no_working_set(self, client: httpx.Client, name: str) -> None:
        client.put(f"/v1/models/{name}", json=PAPERS | REGRESSION).raise_for_status()
        refused = client.post(f"/v1/models/{name}/samples", json={"x": [[0, 1]], "y": [1.5]})
        assert refused.status_code == 409
        url = f"/v1/models/{name}/predict"
        assert client.post(f"{url}?head=working_set", json={"x": [[0, 1]]}).status_code == 409
        untrained = client.post(url, json={"x": [[0, 1]]})
        assert untrained.json()["type"] == "urn:wolfstream:untrained"

    def test_what_is_wrong_with_samples_depends_on_a_model_that_exists(
        self, client: httpx.Client, name: str
    ) -> None:
        sent = {"x": [[0, "one"]], "y": [1.5]}
        assert client.post(f"/v1/models/{name}/asset", json=sent).status_code == 404
