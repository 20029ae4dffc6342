"""Requests that take long to check: others learn meanwhile, and models become the same."""

import asyncio
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.writer_bench import work_off
from wolfstream.service.engine import group_learning
from wolfstream.service.engine.queue_items import LabelRequest, LearnRequest, WaitingRowsRequest
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import ServerFailed
from wolfstream.service.model.draft import Draft
from wolfstream.service.model.live import Model
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.samples.validation import Samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.solver.prepare.cells import cells_of_numbers

LIGHT = {"working_set": None, "adaptive": None, "asset": {"dimension": 16}, "serve": "asset"}
WIDE = 9000


class Bench:
    """A writer and the replies to what it was given."""

    def __init__(self, folder: Path) -> None:
        self.replies = list[Any]()
        self.writer = Writer(
            open_storage(folder),
            Settings(data=folder),
            lambda given, _: self.replies.extend(given),
            math.inf,
        )
        self.writer.recover(lambda _: None)
        self._loop = asyncio.new_event_loop()

    def model(self, name: str) -> Model:
        return self.writer.new_models.create(name, read_spec(LIGHT))[0]

    def learn(self, model: Model, samples: Samples) -> LearnRequest:
        return LearnRequest(model, "asset", samples, self._loop.create_future(), 0.0)

    def predicted(self, model: Model, ids: list[Any], rows: Any) -> WaitingRowsRequest:
        answer = {
            **{"model": model.name, "sequence": model.published.sequence},
            **{"epoch": model.published.epoch, "head": "asset", "prediction": [0] * len(ids)},
        }
        return WaitingRowsRequest(model, ids, rows, answer, self._loop.create_future(), 0.0)

    def label(self, model: Model, ids: list[Any], y: list[Any]) -> LabelRequest:
        return LabelRequest(model, "asset", LateLabels(ids, y), self._loop.create_future(), 0.0)

    def close(self) -> None:
        self.writer.close()
        self._loop.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    opened = Bench(tmp_path)
    yield opened
    opened.close()


def table(rows: int, width: int, first: int = 0) -> Samples:
    names = tuple(f"c{first + k}" for k in range(width))
    numbers = np.random.default_rng(first).normal(size=(rows, width))
    return Samples(cells_of_numbers(names, numbers), [i % 2 for i in range(rows)])


def numbers(rows: int) -> Samples:
    X = np.random.default_rng(3).normal(size=(rows, 3))
    return Samples(X, (X[:, 0] > 0.0).astype(int).tolist())


@pytest.fixture
def beside(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What another thread can do while something costly is checked."""
    done, known = list[Any](), group_learning.with_precomputed
    other = bench.model("other")

    def learn() -> None:
        with bench.writer.role.step():
            assert bench.writer.max_request_bytes is not None
            bench.writer.begin([bench.learn(other, table(1, 3))])
        done.append(other.published.sequence)

    def with_precomputed(requests: Any, *given: Any) -> Any:
        assert {request.model for request in requests} <= bench.writer.busy
        thread = threading.Thread(target=learn)
        thread.start()
        thread.join(30)
        return known(requests, *given)

    monkeypatch.setattr(group_learning, "with_precomputed", with_precomputed)
    return done


def test_other_models_learn_beside_the_first_wide_rows(bench: Bench, beside: list[Any]):
    model = bench.model("m")
    with bench.writer.role.step():
        work_off(bench.writer, [bench.learn(model, table(2, WIDE))])
    assert (beside, model.published.sequence) == ([1], 2)
    assert bench.writer.max_request_bytes is None


def test_other_models_learn_beside_many_labels(bench: Bench, beside: list[Any]):
    model, n = bench.model("m"), 3000
    work_off(bench.writer, [bench.learn(model, numbers(10))])
    work_off(bench.writer, [bench.predicted(model, list(range(n)), numbers(n).X)])
    with bench.writer.role.step():
        work_off(bench.writer, [bench.label(model, list(range(n))[::-1], [0] * n)])
    assert (beside, model.published.sequence) == ([1], 10 + n)


def test_small_requests_are_not_checked_in_advance(bench: Bench, beside: list[Any]):
    model = bench.model("m")
    work_off(bench.writer, [bench.learn(model, table(2, 20))])
    assert (beside, model.published.sequence) == ([], 2)


@pytest.mark.parametrize("fails", [False, True])
def test_a_group_is_learned_as_without(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, fails: bool
):
    group = [table(2, WIDE), table(3, WIDE, 7), table(2, WIDE), table(1, WIDE)]

    def learned(name: str) -> tuple[Model, list[Any]]:
        model, n = bench.model(name), len(bench.replies)
        work_off(bench.writer, [bench.learn(model, samples) for samples in group])
        return model, [reply for _, reply in bench.replies[n:]]

    if fails:

        def fail(*_: Any) -> Any:
            raise RuntimeError("fails")

        monkeypatch.setattr(group_learning, "with_precomputed", fail)
    one, replies = learned("one")
    monkeypatch.setattr(group_learning, "is_costly", lambda _: False)
    two, others = learned("two")
    assert [type(reply) for reply in replies] == [type(reply) for reply in others]
    learned_samples = sum(reply["learned"] for reply in replies if isinstance(reply, dict))
    assert one.published.sequence == two.published.sequence == learned_samples
    state, other = (bench.writer.state(model) for model in (one, two))
    assert state.arrays.keys() == other.arrays.keys()
    assert all(np.array_equal(state.arrays[k], other.arrays[k]) for k in state.arrays)


def test_a_request_whose_check_fails_is_refused_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    one, two = bench.model("one"), bench.model("two")
    add = Draft.add

    def failing(draft: Draft, head: Any, samples: Samples, *given: Any) -> None:
        if "fails" in list(samples.y):
            raise IndexError("fails")
        add(draft, head, samples, *given)

    monkeypatch.setattr(Draft, "add", failing)
    fails = Samples(numbers(1).X, ["fails"])
    group = [bench.learn(one, numbers(2)), bench.learn(one, fails), bench.learn(two, numbers(3))]
    work_off(bench.writer, group)
    replies = dict(bench.replies)
    assert isinstance(replies[group[1].waiter], ServerFailed)
    assert (one.published.sequence, two.published.sequence) == (2, 3)
    assert [replies[request.waiter]["learned"] for request in (group[0], group[2])] == [2, 3]
