"""What a replica's /metrics says of its fleet, and that alerts and pages name nothing else."""

import re
from pathlib import Path

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.service.fleet.trio import Trio, wait_for
from wolfstream.service.fleet.streams import STREAMS

ROOT = Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "docker" / "README.md"]
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "docker" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]


def names_of(client: httpx.Client) -> set[str]:
    """The names of all series that a server has, or would have for more models."""
    found = set[str]()
    for family in text_string_to_metric_families(client.get("/metrics").text):
        total = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}
        suffixes = total.get(family.type, ["_info"] if family.name.endswith("_build") else [""])
        found |= {family.name, *(f"{family.name}{suffix}" for suffix in suffixes)}
    return found


def test_each_metric_of_an_alert_exists(trio: Trio):
    there = names_of(trio.clients[0])
    for rule in RULES:
        named = set(re.findall(r"\bwolfstream_\w+", rule["expr"]))
        assert named <= there, rule["alert"]
        assert named or "up{" in rule["expr"], rule["alert"]


def test_each_metric_of_a_page_exists(trio: Trio):
    there = names_of(trio.clients[0])
    for page in PAGES:
        named = set(re.findall(r"`(wolfstream_\w+)", page.read_text()))
        assert named <= there, page.name


def test_streams_are_told_with_their_bounds_and_copies(trio: Trio):
    client = trio.clients[0]

    def told() -> dict[str, dict[str, int]]:
        streams: dict[str, dict[str, int]] = client.get("/v1/fleet").json()["streams"]
        return streams if streams.keys() == set(STREAMS) else {}

    for stream in wait_for(told).values():
        assert stream["missing_copies"] == 0  # there is one server, which keeps all that it can
        assert 0 <= stream["n_bytes"] < stream["most_bytes"]
