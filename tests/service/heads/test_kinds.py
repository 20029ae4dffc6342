"""What follows for a model from the heads that its spec has, and what an untrained one answers."""

from typing import Any

import httpx
import pytest

from tests.service.specs import read_papers_spec
from tests.service.streams import curve
from wolfstream.service.heads.kinds import head_of_call, how_to_teach, learners
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.heads import HeadName, LearningCall

BOTH: dict[str, Any] = {}
NUMBERS: dict[str, Any] = {"task": "regression"}
FITTED = NUMBERS | {"semiparametric": {}}
FITTED_ALONE = FITTED | {"asset": None}


@pytest.mark.parametrize(
    ("spec", "call", "named", "taught"),
    [
        (BOTH, "samples", "working_set", ("working_set",)),
        (BOTH, "asset", "asset", ("asset",)),
        (NUMBERS, "asset", "asset", ("asset",)),
        (FITTED, "samples", "semiparametric", ("semiparametric",)),
        (FITTED, "asset", "asset", ("asset", "semiparametric")),
        (FITTED_ALONE, "samples", "semiparametric", ("semiparametric",)),
    ],
)
def test_who_learns_what(
    spec: dict[str, Any], call: LearningCall, named: HeadName, taught: tuple[HeadName, ...]
) -> None:
    assert head_of_call(read_papers_spec(spec), call) == named
    assert learners(read_papers_spec(spec), named) == taught


@pytest.mark.parametrize(
    ("spec", "call", "missing"),
    [(NUMBERS, "samples", "working_set"), (FITTED_ALONE, "asset", "asset")],
)
def test_call_without_head_names_the_missing_one(
    spec: dict[str, Any], call: LearningCall, missing: HeadName
) -> None:
    assert head_of_call(read_papers_spec(spec), call) == missing


@pytest.mark.parametrize(
    ("spec", "head", "how"),
    [
        (BOTH, "working_set", "POST /v1/models/m/samples"),
        (BOTH, "asset", "POST /v1/models/m/asset"),
        (
            FITTED,
            "semiparametric",
            "POST /v1/models/m/samples or POST /v1/models/m/asset, then POST /v1/models/m/refit",
        ),
        (
            FITTED_ALONE,
            "semiparametric",
            "POST /v1/models/m/samples, then POST /v1/models/m/refit",
        ),
    ],
)
def test_how_to_teach(spec: dict[str, Any], head: HeadName, how: str) -> None:
    assert how_to_teach("m", read_papers_spec(spec), head) == f"teach it with {how}"


def test_gauges_are_numbers_of_the_description() -> None:
    learner = Learner(Model(1, "m", read_papers_spec(FITTED)))
    assert learner.model.published.heads["semiparametric"].gauges["support_vectors"] is None
    learner.absorb("asset", curve(50))
    learner.publish()
    views = learner.model.published.heads
    assert views["semiparametric"].gauges["window_samples"] == 50
    memory = views["asset"].stats["bytes"]
    assert views["asset"].gauges == {"head_memory_bytes": memory}


@pytest.mark.parametrize(
    ("head", "met", "detail"),
    [
        ("asset", 0, "has met no sample: two classes are needed"),
        ("working_set", 1, "has met the class 'only' only: two classes are needed"),
    ],
)
def test_an_untrained_head_says_how_to_teach_it(
    client: httpx.Client, name: str, head: str, met: int, detail: str
) -> None:
    path = f"/v1/models/{name}"
    client.put(path, json={}).raise_for_status()
    for _ in range(met):
        client.post(f"{path}/samples", json={"x": [1.0], "y": "only"}).raise_for_status()
    refused = client.post(f"{path}/predict?head={head}", json={"x": [1.0]})
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:wolfstream:untrained")
    call = {"asset": "asset", "working_set": "samples"}[head]
    assert refused.json()["detail"] == (
        f"the head {head} of model {name!r} {detail}; teach it with POST {path}/{call}"
    )
