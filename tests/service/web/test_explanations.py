"""Reasons for predictions: members of the set by their sequence, and gradients by feature."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.streams import body, two_classes

SAMPLES = two_classes(300)
ROW = np.asarray(SAMPLES.X[7]).tolist()
NO_NEIGHBOURS: dict[str, Any] = {"adaptive": {"neighbours": []}}


@pytest.fixture
def model(client: httpx.Client, name: str) -> str:
    """A model whose heads have all learned, in calls to both of them; its URL."""
    url = f"/v1/models/{name}"
    client.put(url, json=NO_NEIGHBOURS).raise_for_status()
    for start in range(0, 300, 60):
        call = "asset" if start == 120 else "samples"
        client.post(f"{url}/{call}", json=body(SAMPLES.part(start, start + 60))).raise_for_status()
    return url


def asked(client: httpx.Client, url: str, row: Any, **more: Any) -> Any:
    answer = client.post(f"{url}/predict", params=more, json={"x": [row]})
    answer.raise_for_status()
    return answer.json()


def log_odds(client: httpx.Client, url: str, row: Any, head: str, wanted: Any, other: Any) -> float:
    said = asked(client, url, row, head=head, probability="true")
    p = dict(zip(said["classes"], said["probability"][0], strict=True))
    return float(np.log(p[wanted]) - np.log(p[other]))


@pytest.mark.parametrize("head", ["adaptive", "working_set", "asset"])
def test_gradient_is_in_the_users_units(client: httpx.Client, model: str, head: str):
    (found,) = asked(client, model, ROW, head=head, explain=100)["explanation"]
    pair = found["for"], found["against"]
    at = log_odds(client, model, ROW, head, *pair)
    assert found["log_odds"] == pytest.approx(at, abs=1e-6)
    assert len(found["gradient"]) == len(ROW)
    sizes = [abs(one["gradient"] * one["deviation"]) for one in found["gradient"]]
    assert sizes == sorted(sizes, reverse=True)
    # Kernel values of a set, to which the bank listens, are float32; trees jump between far steps.
    step = {"asset": 1e-4, "adaptive": 1e-3, "working_set": 1e-2}[head]
    for one in found["gradient"]:
        above, below = (
            log_odds(
                client,
                model,
                [v + s * step * (j == one["feature"]) for j, v in enumerate(ROW)],
                head,
                *pair,
            )
            for s in (1.0, -1.0)
        )
        assert one["gradient"] == pytest.approx((above - below) / (2 * step), rel=2e-2, abs=1e-3)


def test_members_are_named_by_what_was_posted(client: httpx.Client, model: str):
    said = asked(client, model, ROW, head="working_set", explain=4)
    (found,) = said["explanation"]
    members = found["members"]
    pulls = [one["pull"] for one in members["for"]]
    assert len(pulls) == 4
    assert pulls == sorted(pulls, reverse=True)
    assert all(one["pull"] < 0.0 for one in members["against"])
    for one in (*members["for"], *members["against"]):
        assert one["pull"] == pytest.approx(one["weight"] * one["kernel"])
        assert one["label"] == SAMPLES.y[one["sequence"] - 1]
        assert one["sequence"] - 1 not in range(120, 180)  # learned by ASSET
        assert one["label"] == (found["for"] if one["weight"] > 0.0 else found["against"])


def test_all_pulls_and_the_bias_make_the_decision(client: httpx.Client, model: str):
    said = asked(client, model, ROW, head="working_set", explain=100)
    members = said["explanation"][0]["members"]
    total = members["bias"] + sum(one["pull"] for one in members["for"] + members["against"])
    if len(members["for"]) < 100 and len(members["against"]) < 100:
        assert total == pytest.approx(members["decision"], rel=1e-6)
    assert abs(said["decision"][0]) == pytest.approx(abs(members["decision"]), rel=1e-5)


def test_members_know_their_sequence_after_a_restart(client: httpx.Client, name: str, model: str):
    before = asked(client, model, ROW, head="working_set", explain=5)["explanation"]
    state = client.get(f"{model}/state", headers={"accept": "application/octet-stream"})
    headers = {"content-type": "application/octet-stream"}
    url = f"/v1/models/{name}-again"
    client.put(f"{url}/state", content=state.content, headers=headers).raise_for_status()
    after = asked(client, url, ROW, head="working_set", explain=5)["explanation"]
    told = [[one["sequence"] for one in e[0]["members"]["for"]] for e in (before, after)]
    assert told[0] == told[1]


def test_a_table_is_explained_by_names_and_categories(client: httpx.Client, name: str):
    url = f"/v1/models/{name}"
    # Without a set, whose kernel values are float32: the steps are small.
    spec = NO_NEIGHBOURS | {"prepare": {"timestamps": ["at"]}, "working_set": None}
    client.put(url, json=spec).raise_for_status()
    random = np.random.default_rng(0)
    rows: list[dict[str, Any]] = [
        {
            "wind": ["east", "west"][int(random.integers(2))],
            "hectopascals": 1000.0 + 20.0 * float(random.standard_normal()),
            "at": 1.7e9 + 600.0 * i + float(random.integers(300)),
        }
        for i in range(200)
    ]
    y = ["wet" if r["wind"] == "west" or r["hectopascals"] < 990 else "dry" for r in rows]
    client.post(f"{url}/asset", json={"x": rows, "y": y}).raise_for_status()
    row = {"wind": "west", "hectopascals": 991.0, "at": 1.7e9 + 600.0 * 200}
    (found,) = asked(client, url, row, explain=10)["explanation"]
    by_name = {(one["feature"], one.get("category")): one for one in found["gradient"]}
    assert set(by_name) <= {
        ("hectopascals", None),
        ("at", None),
        ("wind", "east"),
        ("wind", "west"),
    }
    pair = found["for"], found["against"]
    for feature, step in (("hectopascals", 1e-3), ("at", 1.0)):
        above, below = (
            log_odds(client, url, row | {feature: row[feature] + s * step}, "adaptive", *pair)
            for s in (1.0, -1.0)
        )
        assert by_name[feature, None]["gradient"] == pytest.approx(
            (above - below) / (2 * step), rel=1e-3, abs=1e-9
        )
    (wind,) = found["values"]
    assert (wind["feature"], wind["value"]) == ("wind", "west")
    without = log_odds(client, url, row | {"wind": None}, "adaptive", *pair)
    assert wind["without"] == pytest.approx(without, rel=1e-6)
    assert found["for"] == "wet"
    assert by_name["hectopascals", None]["gradient"] < 0.0
    assert by_name["wind", "west"]["gradient"] > by_name["wind", "east"]["gradient"]


def test_numbers_are_explained_by_the_gradient_of_the_prediction(client: httpx.Client, name: str):
    url = f"/v1/models/{name}"
    client.put(url, json=NO_NEIGHBOURS | {"task": "regression"}).raise_for_status()
    X = 5.0 + 2.0 * np.random.default_rng(0).standard_normal((200, 2))
    y = 100.0 + 3.0 * X[:, 0] - 7.0 * X[:, 1]
    client.post(f"{url}/asset", json={"x": X.tolist(), "y": y.tolist()}).raise_for_status()
    for head in ("adaptive", "asset"):
        said = asked(client, url, [5.5, 4.0], head=head, explain=2)
        (found,) = said["explanation"]
        assert set(found) == {"gradient"}
        for one in found["gradient"]:
            above, below = (
                asked(
                    client,
                    url,
                    [v + s * 1e-3 * (j == one["feature"]) for j, v in enumerate((5.5, 4.0))],
                    head=head,
                )["prediction"][0]
                for s in (1.0, -1.0)
            )
            assert one["gradient"] == pytest.approx((above - below) / 2e-3, rel=1e-3)


def test_sparse_rows_are_explained_by_their_words(client: httpx.Client, name: str):
    url = f"/v1/models/{name}"
    client.put(url, json={"prepare": {"named": "sparse"}}).raise_for_status()
    rows = [{"sun": 1, "blue": 1}, {"rain": 1, "fog": 1}] * 30
    for call in ("samples", "asset"):
        answer = client.post(f"{url}/{call}", json={"x": rows, "y": ["dry", "wet"] * 30})
        answer.raise_for_status()
    (of_set,) = asked(client, url, {"fog": 1}, head="working_set", explain=3)["explanation"]
    assert of_set["for"] == "wet"
    assert of_set["members"]["for"][0]["label"] == "wet"
    assert [one["feature"] for one in of_set["gradient"]] == ["fog"]
    (of_asset,) = asked(client, url, {"fog": 1}, head="asset", explain=3)["explanation"]
    assert [one["feature"] for one in of_asset["gradient"]] == ["fog"]
    (of_bank,) = asked(client, url, {"fog": 1}, explain=3)["explanation"]
    assert of_bank["for"] == "wet"
    assert [one["feature"] for one in of_bank["gradient"]] == ["fog"]


def test_the_bank_explains_rows_of_many_columns(client: httpx.Client, name: str):
    url = f"/v1/models/{name}"
    client.put(url, json={"working_set": None, "asset": None}).raise_for_status()
    X = np.random.default_rng(0).standard_normal((200, 300))
    y = (X[:, 280] > 0.0).astype(int).tolist()
    client.post(f"{url}/samples", json={"x": X.tolist(), "y": y}).raise_for_status()
    (why,) = asked(client, url, X[0].tolist(), explain=3)["explanation"]
    assert why["gradient"][0]["feature"] == 280


def test_reasons_for_very_many_rows_are_refused(client: httpx.Client, model: str):
    answer = client.post(f"{model}/predict?explain=1", json={"x": [ROW] * 1001})
    assert answer.status_code == 422
    assert "at most 1000 rows" in answer.text


@pytest.mark.parametrize(
    ("query", "more", "pointer"),
    [
        ({"explain": "0"}, {}, "/explain"),
        ({"explain": "101"}, {}, "/explain"),
        ({"explain": "many"}, {}, "/explain"),
        ({}, {"explain": True}, "/explain"),
        ({}, {"explain": None}, "/explain"),
        ({"confidence": "1"}, {}, "/confidence"),
        ({"confidence": "nan"}, {}, "/confidence"),
        ({}, {"confidence": 0}, "/confidence"),
        ({}, {"confidence": "0.9"}, "/confidence"),
        ({}, {"confidence": 1.5}, "/confidence"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_place(
    client: httpx.Client, model: str, query: Any, more: Any, pointer: str
):
    answer = client.post(f"{model}/predict", params=query, json={"x": [ROW]} | more)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer
