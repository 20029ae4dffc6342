"""`make demo` prints its tables: of small streams here, as its own are large."""

import io
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks.demo import learn, regression_table, table
from benchmarks.demo_streams import Stream
from tests.service.process import ServerProcess


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with closing(ServerProcess(tmp_path_factory.mktemp("demo") / "data").start()) as server:
        yield server.url


def stream(name: str, spec: dict[str, Any]) -> Stream:
    """Five hundred rows whose first value decides, and a hundred that are held back."""
    X = np.random.default_rng(0).normal(size=(600, 3))
    y = X[:, 0] if spec else (X[:, 0] > 0).astype(np.int64)
    return Stream(name, "small", spec, X[:500], y[:500], X[500:], y[500:])


def printed(content: Any) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(content)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_table_has_each_model_and_rule(url: str):
    results = learn(stream("signs", {}), url, Console(file=io.StringIO()))
    text = printed(table(results))
    for line in ("signs", "working_set", "asset", "majority class", "last label"):
        assert line in text
    default, working_set, asset = [one.size for one in results]
    assert 0 < default <= 500
    assert 0 < working_set <= 500
    assert asset == 512
    assert all(one.held_back > 0.8 for one in results)


def test_regression_table(url: str):
    results = learn(stream("slope", {"task": "regression"}), url, Console(file=io.StringIO()))
    assert "running mean" in printed(regression_table(results))
