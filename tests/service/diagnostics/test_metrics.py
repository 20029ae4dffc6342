"""`/metrics`: well formed, exactly what was sent, and bounded in its labels."""

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from tests.service.access.test_keys import problem, soon
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import two_classes
from wolfstream.service.diagnostics.metrics import BOUNDS, Histogram
from wolfstream.service.engine.group_queue import GroupQueue
from wolfstream.service.model.counters import SampleCounts
from wolfstream.service.model.live import Model
from wolfstream.service.monitor.model_metrics import ModelCollector
from wolfstream.service.spec.model import ModelSpec

DASHBOARD = Path(__file__).parents[3] / "docker" / "grafana-dashboard.json"
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def families(text: str) -> list[Metric]:
    return list(text_string_to_metric_families(text))


def scrape(client: httpx.Client) -> Series:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families(answer.text)
        for sample in family.samples
    }


def of(series: Series, name: str, **labels: str) -> float | None:
    return series.get((f"wolfstream_{name}", frozenset(labels.items())))


def labelled(series: Series, **labels: str) -> set[str]:
    wanted = labels.items()
    return {name for (name, given), _ in series.items() if wanted <= set(given)}


def rows(n: int, seed: int = 0) -> dict[str, Any]:
    samples = two_classes(n, seed=seed)
    return {"x": np.asarray(samples.X).tolist(), "y": list(samples.y)}


# -- the numbers ------------------------------------------------------------------------


@given(st.lists(st.floats(0, 20) | st.sampled_from(BOUNDS), max_size=50))
def test_a_histogram_counts_what_is_at_most_each_bound(seconds: list[float]) -> None:
    histogram = Histogram()
    for value in seconds:
        histogram.observe(value)
    below = np.cumsum(histogram.counts)
    assert below.tolist() == [sum(v <= bound for v in seconds) for bound in (*BOUNDS, np.inf)]
    assert histogram.total == pytest.approx(sum(seconds))


def test_duplicates_are_counted_on_any_thread() -> None:
    counts = SampleCounts()

    def count() -> None:
        for _ in range(2000):
            counts.count_duplicates(3)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.duplicates == 4 * 2000 * 3


def test_duplicates_are_told_by_model_and_head() -> None:
    model = Model(1, "m", ModelSpec())
    model.counts["asset"].received = 7
    model.counts["asset"].learned = 5
    model.counts["asset"].count_duplicates(2)
    registry = CollectorRegistry()
    engine: Any = SimpleNamespace(recovered=lambda: [model])
    registry.register(ModelCollector(engine, list))
    told = registry.get_sample_value
    labels = {"model": "m", "head": "asset"}
    assert told("wolfstream_samples_duplicate_total", labels) == 2
    assert told("wolfstream_samples_received_total", labels) == 7
    assert told("wolfstream_samples_duplicate_total", {**labels, "head": "working_set"}) == 0
    # A head that the spec does not have is told of only where somebody sent it samples.
    assert told("wolfstream_samples_received_total", {**labels, "head": "semiparametric"}) is None
    # The bank learns what other heads are sent: a count of its own would stay at 0.
    bank = {**labels, "head": "adaptive"}
    assert told("wolfstream_samples_learned_total", bank) is None
    assert told("wolfstream_rows_predicted_total", bank) == 0
    assert generate_latest(registry)


def test_what_waits_is_told_with_its_age() -> None:
    queue: GroupQueue[str] = GroupQueue(10, 100, 10)
    assert queue.waiting() == (0, 0, 0.0)
    queue.put("a", 3, 30)
    first = queue.waiting()
    queue.put("b", 2, 20)
    samples, n_bytes, seconds = queue.waiting()
    assert (samples, n_bytes) == (5, 50)
    assert seconds >= first.seconds >= 0
    queue.close()
    assert list(queue.groups()) == [["a", "b"]]
    assert queue.waiting() == (0, 0, 0.0)


# -- the format -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def used(server: ServerProcess) -> str:
    """A model with every kind of head's figures, and its name."""
    with httpx.Client(base_url=server.url, timeout=300) as client:
        client.put("/v1/models/used").raise_for_status()
        client.post("/v1/models/used/samples", json=rows(40)).raise_for_status()
        client.post("/v1/models/used/asset", json=rows(40)).raise_for_status()
        client.post("/v1/models/used/predict", json={"x": [[0.0] * 4]}).raise_for_status()
        spec = {"task": "regression", "working_set": None, "semiparametric": {"window": 50}}
        client.put("/v1/models/fitted", json=spec).raise_for_status()
        numbers = {"x": [[i / 9] for i in range(20)], "y": [i * i / 81 for i in range(20)]}
        client.post("/v1/models/fitted/samples", json=numbers).raise_for_status()
        client.post("/v1/models/fitted/asset", json=numbers).raise_for_status()
        job = client.post("/v1/models/fitted/refit").headers["location"]
        assert soon(lambda: client.get(job).json()["status"] == "done")
        client.post("/v1/models/fitted/samples", json=numbers).raise_for_status()
    return "used"


def test_both_formats_are_well_formed_and_say_the_same(client: httpx.Client, used: str) -> None:
    plain = client.get("/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=")
    strict = client.get("/metrics", headers=OPENMETRICS)
    assert strict.headers["content-type"].startswith("application/openmetrics-text; version=")
    of_strict = list(openmetrics_parser.text_string_to_metric_families(strict.text))
    ours = [f for f in of_strict if f.name.startswith("wolfstream")]
    assert len(ours) > 30
    told = {sample.name for family in families(plain.text) for sample in family.samples}
    assert {sample.name for family in ours for sample in family.samples} <= told
    assert f'model="{used}"' in strict.text


@pytest.mark.parametrize("kind", ["text/plain", "application/openmetrics-text"])
@pytest.mark.parametrize("version", ["1.x", "a.b", '"1.0.0', "\\", "9" * 5000, "", "1..2", "-1"])
def test_a_version_that_is_none_asks_for_some_format(
    client: httpx.Client, kind: str, version: str
) -> None:
    for more in ("", ";escaping", "; escaping=none; q=x"):
        answer = client.get("/metrics", headers={"Accept": f"{kind}; version={version}{more}"})
        assert answer.status_code == 200
        assert "wolfstream_ready 1.0" in answer.text


def test_names_follow_the_rules_of_the_ecosystem(client: httpx.Client, used: str) -> None:
    """As promtool's linter has them: base units, `_total` for counters and for nothing else."""
    del used
    text = client.get("/metrics").text
    # What the parser calls a family has lost the suffix.
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    helps = dict(re.findall(r"^# HELP (\w+) (.+)$", text, re.MULTILINE))
    assert kinds.keys() == helps.keys()
    for name, kind in kinds.items():
        assert re.fullmatch(r"(wolfstream|process)_[a-z]+(_[a-z0-9]+)*", name)
        assert name.endswith("_total") == (kind == "counter")
        assert not re.search(
            r"_(ms|us|milliseconds|minutes|kb|mb|percent|counter|gauge)(_|$)", name
        )
        assert not name.endswith(("_count", "_sum", "_bucket"))
        assert kind not in name
        if re.search(r"_(duration|age|busy)(_|$)", name):
            assert name.endswith("_seconds")
        if kind == "histogram":
            assert name.endswith("_duration_seconds")
        assert helps[name].strip().endswith(".")
    labels = {key for family in families(text) for s in family.samples for key in s.labels}
    told = {
        "model",
        "head",
        "rule",
        "over",
        "part",
        "route",
        "method",
        "status",
        "le",
        "confidence",
        "class",
    }
    assert labels - told == {"version", "python", "numpy", "numba"}


def test_the_library_tells_of_the_process_and_the_build(client: httpx.Client) -> None:
    series = scrape(client)
    (build,) = [dict(given) for (name, given) in series if name == "wolfstream_build_info"]
    assert re.match(r"\d+\.\d+", build["version"])
    for name in ("resident_memory_bytes", "cpu_seconds_total", "open_fds", "start_time_seconds"):
        assert series[f"process_{name}", frozenset()] > 0
    assert of(series, "ready") == 1
    assert of(series, "data_bytes", part="log") > 0  # type: ignore[operator]
    assert of(series, "data_free_bytes") > 0  # type: ignore[operator]


def test_the_dashboard_asks_for_nothing_that_is_not_told(client: httpx.Client, used: str) -> None:
    """Each metric of its queries is there, with the labels that they choose and sum by."""
    del used
    told: dict[str, set[str]] = {}
    for name, labels in scrape(client):
        told.setdefault(name, {"instance"}).update(dict(labels))
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [v["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    assert len(queries) > 20
    for query in queries:
        (name,) = re.findall(r"(?:wolfstream|process)_\w+", query)
        chosen = set(re.findall(r"(\w+)=~?\"", query))
        summed = {by for many in re.findall(r"by \(([^)]*)\)", query) for by in many.split(", ")}
        assert chosen | summed <= told[name], query
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            (name,) = re.findall(r"(?:wolfstream|process)_\w+", target["expr"])
            assert shown <= told[name]
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


# -- the figures ------------------------------------------------------------------------

COUNTS = ("received", "learned", "rejected", "duplicate")


def counts(series: Series, model: str, head: str) -> tuple[float | None, ...]:
    return tuple(of(series, f"samples_{n}_total", model=model, head=head) for n in COUNTS)


def test_samples_are_counted_exactly(client: httpx.Client, server: ServerProcess, name: str):
    client.put(f"/v1/models/{name}", json=PAPERS).raise_for_status()
    before = scrape(client)
    for part in range(10):
        answer = client.post(f"/v1/models/{name}/samples", json=rows(100, seed=part))
        assert answer.json()["learned"] == 100
    narrow = {"x": [[1.0]] * 5, "y": ["a"] * 5}
    for _ in range(3):
        answer = client.post(f"/v1/models/{name}/samples", json=narrow)
        assert problem(answer) == (422, "invalid-samples")
    client.post(f"/v1/models/{name}/asset", json=rows(30)).raise_for_status()
    client.post(f"/v1/models/{name}/samples", json={"x": [[None]], "y": [1]})  # not samples at all
    with connect(f"{server.url.replace('http', 'ws', 1)}/v1/models/{name}/stream") as stream:
        stream.recv(10)
        for i, op in enumerate(("learn", "asset", "predict")):
            body = rows(7)
            if op == "predict":
                del body["y"]
            stream.send(json.dumps({"id": i, "op": op, **body}))
            stream.recv(10)
    client.post(f"/v1/models/{name}/predict", json={"x": rows(11)["x"]}).raise_for_status()

    after = scrape(client)
    assert counts(after, name, "working_set") == (1000 + 15 + 7, 1007, 15, 0)
    assert counts(after, name, "asset") == (37, 37, 0, 0)
    assert of(after, "model_sequence", model=name) == 1007 + 37
    assert of(after, "rows_predicted_total", model=name, head="working_set") == 18

    def more(family: str) -> float:
        name = f"{family}_duration_seconds_count"
        return after[f"wolfstream_{name}", frozenset()] - before[f"wolfstream_{name}", frozenset()]

    # One by one, each request is a group and a block; what is refused is not logged.
    assert (more("learn"), more("commit"), more("absorb")) == (13, 13, 13)
    assert more("predict") == 2
    seconds = [of(s, "learn_duration_seconds_sum") for s in (after, before)]
    bucket = [of(s, "learn_duration_seconds_bucket", le="+Inf") for s in (after, before)]
    assert bucket[0] - bucket[1] == 13  # type: ignore[operator]
    assert 0 < seconds[0] - seconds[1] < 60  # type: ignore[operator]
    assert of(after, "queue_samples") == of(after, "queue_bytes") == 0
    assert of(after, "queue_age_seconds") == 0
    # The writer answers just before it has ended its group.
    assert soon(lambda: of(scrape(client), "writer_busy_seconds") == 0)


def test_samples_for_a_head_that_is_not_there_are_rejected(client: httpx.Client, name: str):
    client.put(f"/v1/models/{name}", json=PAPERS | {"asset": None}).raise_for_status()
    assert counts(scrape(client), name, "asset") == (None,) * 4
    answer = client.post(f"/v1/models/{name}/asset", json=rows(4))
    assert problem(answer) == (409, "no-such-head")
    assert counts(scrape(client), name, "asset") == (4, 0, 4, 0)


def test_a_head_stands_as_it_is_described(client: httpx.Client, used: str) -> None:
    series = scrape(client)
    heads = client.get(f"/v1/models/{used}").json()["heads"]
    for head, told in heads.items():
        labels = {"model": used, "head": head}
        assert of(series, "head_memory_bytes", **labels) == told["bytes"]
        scores = told["prequential"]
        for over, accuracy in (("all", "accuracy"), ("recent", "recent_accuracy")):
            error = of(series, "prequential_error_ratio", over=over, **labels)
            assert error == pytest.approx(1 - scores[accuracy])
            rule = of(
                series, "prequential_baseline_error_ratio", rule="majority", over=over, **labels
            )
            assert rule == pytest.approx(1 - scores[accuracy.replace("acc", "majority_acc")])
    own = {"model": used, "head": "working_set"}
    assert of(series, "set_size", **own) == heads["working_set"]["size"]
    assert of(series, "support_vectors", **own) == heads["working_set"]["support_vectors"]


def test_a_regression_and_its_refits(client: httpx.Client, used: str) -> None:
    del used
    series = scrape(client)
    heads = client.get("/v1/models/fitted").json()["heads"]
    for head, told in heads.items():
        for over, prefix in (("all", ""), ("recent", "recent_")):
            labels = {"model": "fitted", "head": head, "over": over}
            scores = told["prequential"]
            mean = of(series, "prequential_absolute_error", **labels)
            root = of(series, "prequential_root_mean_square_error", **labels)
            assert (mean, root) == (scores[f"{prefix}mae"], scores[f"{prefix}rmse"])
            rule = of(series, "prequential_baseline_absolute_error", rule="last_value", **labels)
            assert rule == scores[f"{prefix}last_value_mae"]
    own = {"model": "fitted", "head": "semiparametric"}
    assert of(series, "window_samples", **own) == heads["semiparametric"]["window"]
    fit = heads["semiparametric"]["fit"]
    assert of(series, "support_vectors", **own) == fit["support_vectors"]
    assert of(series, "refits_total", status="done") == 1
    assert of(series, "refits_total", status="failed") == 0
    assert of(series, "refit_jobs", status="running") == 0


def test_connections_and_streams_are_counted_while_they_are_open(
    client: httpx.Client, server: ServerProcess, used: str
) -> None:
    before = scrape(client)
    with connect(f"{server.url.replace('http', 'ws', 1)}/v1/models/{used}/stream") as stream:
        stream.recv(10)
        during = scrape(client)
        assert of(during, "streams") == of(before, "streams") + 1  # type: ignore[operator]
        assert of(during, "connections") == of(before, "connections") + 1  # type: ignore[operator]
    assert soon(lambda: of(scrape(client), "streams") == of(before, "streams"))
    labels = {"route": "/v1/models/{name}/stream", "method": "GET"}
    assert of(during, "http_requests_total", status="1xx", **labels) >= 1  # type: ignore[operator]
    name = "http_request_duration_seconds_count"
    assert of(during, name, status="1xx", **labels) is None


# -- the labels -------------------------------------------------------------------------


def test_a_deleted_model_leaves_nothing_behind(client: httpx.Client, name: str) -> None:
    client.put(f"/v1/models/{name}").raise_for_status()
    client.post(f"/v1/models/{name}/samples", json=rows(3)).raise_for_status()
    number = of(scrape(client), "models")
    assert len(labelled(scrape(client), model=name)) > 8
    client.delete(f"/v1/models/{name}").raise_for_status()
    assert not labelled(scrape(client), model=name)
    assert of(scrape(client), "models") == number - 1  # type: ignore[operator]
    client.put(f"/v1/models/{name}").raise_for_status()
    assert counts(scrape(client), name, "working_set") == (0, 0, 0, 0)


def test_requests_are_counted_by_route_method_and_class_of_status(
    client: httpx.Client, name: str
) -> None:
    def number(status: str, method: str = "GET", route: str = "/v1/models/{name}") -> float:
        told = of(scrape(client), "http_requests_total", route=route, method=method, status=status)
        return told or 0.0

    found, missing = number("2xx"), number("4xx")
    client.put(f"/v1/models/{name}")
    for _ in range(3):
        assert client.get(f"/v1/models/{name}").status_code == 200
    for _ in range(2):
        assert client.get(f"/v1/models/{name}x").status_code == 404
    assert (number("2xx") - found, number("4xx") - missing) == (3, 2)
    versioned = "/v2/models/{name}/versions/{version}"
    assert number("2xx", route=versioned) == 0
    client.get(f"/v2/models/{name}/versions/1")
    assert number("2xx", route=versioned) == 1
    before = number("4xx", "PATCH")
    assert client.patch(f"/v1/models/{name}").status_code == 405
    assert number("4xx", "PATCH") == before + 1


def test_nobody_makes_labels_with_hostile_requests(client: httpx.Client, used: str) -> None:
    for method in ("GET", "POST", "PROPFIND"):
        client.request(method, "/nowhere")
        client.request(method, f"/v1/models/{used}/nowhere")
        client.request(method, "/v1/models/none/predict")
        client.request(method, "/v1/models/none")
    before = set(scrape(client))
    for i in range(100):
        method = ("GET", "POST", "PROPFIND")[i % 3]
        head = {"X-Request-ID": f"id{i}", "User-Agent": f"a{i}", "Accept": f"x/{i}"}
        for path in (f"/{i}/%0a%22", f"/v1/models/x{i}", f"/v1/models/x{i}/predict"):
            client.request(method, f"{path}?q={i}", headers=head)
        client.request(method, f"/v1/models/{used}/{i}", headers=head)
    assert set(scrape(client)) == before
    methods = {dict(given).get("method") for _, given in before} - {None}
    assert methods <= {"GET", "POST", "PUT", "DELETE", "PATCH", "other"}
    assert "other" in methods


# -- a full queue, snapshots ------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that snapshots often, with room for one request at a time in its queue."""
    settings = {"queue_bytes": 1, "snapshot_samples": 10}
    with closing(ServerProcess(tmp_path / "data", **settings)) as running:
        yield running.start()


def test_refused_samples_and_snapshots_over_a_restart(small: ServerProcess) -> None:
    own = {"model": "m", "head": "working_set"}
    with httpx.Client(base_url=small.url, timeout=30) as client:
        client.put("/v1/models/m").raise_for_status()
        assert of(scrape(client), "snapshot_age_seconds", model="m") is None
        with connect(f"{small.url.replace('http', 'ws', 1)}/v1/models/m/stream") as stream:
            stream.recv(10)
            for i in range(100):
                stream.send(json.dumps({"id": i, "op": "learn", "x": [i], "y": i % 2}))
            answers = [json.loads(stream.recv(10)) for _ in range(100)]
        refused = sum("error" in answer for answer in answers)
        series = scrape(client)
        assert counts(series, "m", "working_set") == (100, 100 - refused, refused, 0)
        for i in range(12):
            client.post("/v1/models/m/samples", json={"x": [i], "y": i % 2}).raise_for_status()

        def is_noted() -> bool:
            """Whether the snapshot is, which is noted when the model learns next."""
            client.post("/v1/models/m/samples", json={"x": [0], "y": 0}).raise_for_status()
            return of(scrape(client), "snapshot_age_seconds", model="m") is not None

        assert soon(is_noted)
        series = scrape(client)
        assert 0 <= of(series, "snapshot_age_seconds", model="m") < 60  # type: ignore[operator]
        assert of(series, "snapshots_total", status="saved") >= 1  # type: ignore[operator]
        assert of(series, "snapshots_total", status="failed") == 0
        assert of(series, "data_bytes", part="snapshots") > 0  # type: ignore[operator]
        described = client.get("/v1/models/m").json()
        lag = described["sequence"] - described["snapshot_sequence"]
        assert of(scrape(client), "snapshot_lag_samples", model="m") == lag
    assert small.terminate() == 0

    # The clock on the wall tells once how old a file is.
    for file in (small.data / "snapshots").glob("*/*.snapshot"):
        os.utime(file, (time.time() - 3600,) * 2)
    small.start()
    with httpx.Client(base_url=small.url, timeout=30) as client:
        series = scrape(client)
        assert 3600 <= of(series, "snapshot_age_seconds", model="m") < 4200  # type: ignore[operator]
        assert of(series, "snapshot_lag_samples", model="m") == 0
        assert of(series, "samples_learned_total", **own) == 0
        assert of(series, "model_sequence", model="m") == described["sequence"]
