"""Data directories that older versions wrote: models stay what they were, under the same body."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, few_words, part, plain_rows
from wolfstream.service.storage.sqlite_rows import sealed, unsealed

# As it was sent; the version that learned it stored all fields that it knew.
SPEC = {"working_set": {"max_size": 150}, "asset": {"dimension": 32}}
Spec = dict[str, Any]


def before_rows_were_prepared(stored: Spec) -> Spec:
    lacking = ("prepare", "adaptive", "temporal", "classes")
    return without_later_fields({name: stored[name] for name in stored if name not in lacking})


def before_rows_were_tables(stored: Spec) -> Spec:
    prepare = {"missing": stored["prepare"]["missing"]}
    own = {name: stored["adaptive"][name] for name in ("horizons", "steps", "neighbours")}
    return without_later_fields(stored | {"prepare": prepare, "adaptive": own}, "classes")


def without_later_fields(stored: Spec, *others: str) -> Spec:
    """The spec of a version whose set counted pairs and did not fade; also without other fields."""
    later = ("horizon", "scores")
    own = {name: value for name, value in stored["working_set"].items() if name not in later}
    return {name: stored[name] for name in stored if name not in others} | {"working_set": own}


SET_BEFORE = SPEC["working_set"] | {"horizon": None, "scores": "counted"}
VERSIONS: list[tuple[Callable[[Spec], Spec], Spec]] = [
    (before_rows_were_prepared, PAPERS | {"working_set": SET_BEFORE}),
    (
        before_rows_were_tables,
        {
            "prepare": {
                "named": "sparse",
                "outliers": "clipped",
                "units": "kept",
                "texts": "slots",
                "codes": "numbers",
            },
            "adaptive": {"naive_bayes": []},
            "working_set": SET_BEFORE,
            "asset": SPEC["asset"] | {"horizon": None},
            "temporal": False,
        },
    ),
]


def said(client: httpx.Client, rows: list[Any]) -> list[Any]:
    heads = ("working_set", "asset")
    paths = [f"/v1/models/old/predict?head={head}" for head in heads]
    return [client.post(path, json={"x": rows}).raise_for_status().json() for path in paths]


@pytest.mark.parametrize(("as_stored", "meant"), VERSIONS)
def test_a_model_stays_what_it_was(
    tmp_path: Path, as_stored: Callable[[Spec], Spec], meant: Spec
) -> None:
    samples = few_words(120)
    server = ServerProcess(tmp_path / "data").start()
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            client.put("/v1/models/old", json=SPEC | meant).raise_for_status()
            for call in ("samples", "asset"):
                for start in (0, 60):
                    piece = body(part(samples, start, start + 60))
                    client.post(f"/v1/models/old/{call}", json=piece).raise_for_status()
            stored = client.get("/v1/models/old").json()["spec"]
            before = said(client, plain_rows(samples)[:20])
        server.kill()
        with sqlite3.connect(tmp_path / "data" / "log.sqlite") as db:
            row = unsealed(db.execute("SELECT * FROM log WHERE kind = 'created'").fetchone())
            created = json.loads(row.record) | {"spec": as_stored(stored)}
            row = sealed(row._replace(record=json.dumps(created).encode()))
            db.execute("UPDATE log SET record = ? WHERE kind = 'created'", (row.record,))
        db.close()
        server.start()
        with httpx.Client(base_url=server.url, timeout=60) as client:
            assert client.get("/v1/models/old").json()["spec"] == stored
            assert said(client, plain_rows(samples)[:20]) == before
            assert client.put("/v1/models/old", json=SPEC).status_code == 200
            assert client.put("/v1/models/old", json=SPEC | {"seed": 1}).status_code == 409
    finally:
        server.close()
