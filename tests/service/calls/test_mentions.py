"""Calls that messages, documentation and the console name are calls that exist."""

import re
from pathlib import Path

import pytest

from wolfstream.service.calls.lookup import target

ROOT = Path(__file__).parents[3]
MENTION = re.compile(r"\b(GET|PUT|POST|DELETE) (/v[12](?:/[\w.{}$!:@<>-]+)*)")
FILES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "service").rglob("*.py")),
    *sorted((ROOT / "service/console").rglob("*.js")),
]


def mentions(text: str) -> set[tuple[str, str]]:
    """Methods and paths, with a name in place of what a message puts in.

    A path whose call is put in, or that has optional parts, is none.
    """
    found = [
        m
        for m in MENTION.finditer(text)
        if "{call}" not in m[2] and text[m.end() : m.end() + 1] != "["
    ]
    return {(m[1], re.sub(r"[{<$][^/]*", "m", m[2]).rstrip(".:")) for m in found}


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_mentioned_calls_exist(file: Path):
    unknown = {
        (method, path)
        for method, path in mentions(file.read_text())
        if target(path, method).call is None
    }
    assert unknown == set()


def test_mentions_are_parsed():
    text = 'f"look: GET /v1/models/{name!r}/history, or PUT /v1/models/{name}."'
    assert mentions(text) == {("GET", "/v1/models/m/history"), ("PUT", "/v1/models/m")}
