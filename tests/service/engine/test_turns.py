"""Large requests are learned in parts, which others come between, and mean what they meant."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.streams import few_words, part, plain_rows, three_classes
from tests.service.writer_bench import Bench, state_of, work_off
from wolfstream.service.engine import blocks
from wolfstream.service.engine.blocks import CheckedRequest, in_parts, seconds_per_sample
from wolfstream.service.engine.idempotency import Duplicates
from wolfstream.service.engine.queue_items import LearnRequest, Order, SampleRun
from wolfstream.service.engine.turns import Work
from wolfstream.service.errors import NotYetLearned
from wolfstream.service.model.counters import LearningTime
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import from_record, slice_samples, to_record
from wolfstream.service.samples.validation import Samples

SPEC = {"working_set": {"max_size": 60}, "asset": {"dimension": 8}}
ROWS = three_classes(20, 9).X
SMALL = 100


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "PART_SAMPLES", SMALL)


def request(model: Model, samples: Samples, key: bytes | None = None) -> LearnRequest:
    answer: Any = object()
    return LearnRequest(model, "working_set", samples, answer, 0.0, key)


def replies(bench: Bench) -> dict[int, Any]:
    return {id(waiter): said for waiter, said in bench.replies}


def test_parts_let_others_in_view_whole(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    one, other = bench.create(SPEC, "one"), bench.create(SPEC, "other")
    large, small = request(one, three_classes(450)), request(other, three_classes(3))
    bench.writer.begin([large])
    assert bench.writer.busy == {one}
    seen = []
    while bench.writer.busy:
        bench.writer.begin([request(other, three_classes(3, len(seen)))])
        seen.append((one.published.sequence, id(large.waiter) in replies(bench)))
        bench.writer.go_on()
    work_off(bench.writer, [small])
    assert seen == [(0, False)] * 5
    assert (one.published.sequence, other.published.sequence) == (450, 18)
    answer = replies(bench)[id(large.waiter)]
    assert (answer["sequence"], answer["learned"]) == (450, 450)
    assert {len(column) for column in answer["results"].values()} == {450}
    bench.close()


def test_it_is_learned_as_its_parts_would_be(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    whole, cut = bench.create(SPEC, "whole"), bench.create(SPEC, "cut")
    samples = three_classes(450)
    answer = bench.learn(whole, samples)
    parts = [bench.learn(cut, part(samples, at, min(at + SMALL, 450))) for at in range(0, 450, 100)]
    for name, column in answer["results"].items():
        assert column == [value for one in parts for value in one["results"][name]]
    assert answer["head"] == parts[-1]["head"]
    assert state_of(whole, ROWS) == state_of(cut, ROWS)
    assert whole.counts["working_set"].learned == 450
    bench.close()


@pytest.mark.parametrize("done", [0, 1, 3])
def test_a_kill_between_its_parts(tmp_path: Path, done: int) -> None:
    """It is learned as a whole by the replay, which finds the answer for its key, too."""
    bench = Bench(tmp_path / "data")
    model = bench.create(SPEC)
    bench.learn(model, three_classes(30, 1), key=b"before")
    bench.writer.begin([request(model, three_classes(450), b"key")])
    for _ in range(done):
        bench.writer.go_on()
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    work_off(bench.writer, [])
    answer, before = bench.replies[-1][1], state_of(model, ROWS)
    bench.kill()
    bench = Bench(tmp_path / "killed")
    (model,) = bench.writer.models.all()
    assert (model.published.sequence, state_of(model, ROWS)) == (480, before)
    again = bench.learn(model, three_classes(450), key=b"key")
    assert again["head"].pop("bytes")
    assert answer["head"].pop("bytes")
    assert again == answer | {"replayed": True}
    bench.close()


def test_its_answer_is_kept_where_others_are_committed_between_its_parts(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    one, other = bench.create(SPEC, "one"), bench.create(SPEC, "other")
    large = request(one, three_classes(450), b"key")
    bench.writer.begin([large])
    while bench.writer.busy:
        bench.writer.begin([request(other, three_classes(3), b"of %d" % len(bench.replies))])
        bench.writer.go_on()
    first = replies(bench)[id(large.waiter)]
    assert bench.learn(one, three_classes(450), key=b"key") == first | {"replayed": True}
    bench.close()


def test_a_duplicate_in_its_group_waits_for_its_answer(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model = bench.create(SPEC)
    group = [request(model, three_classes(450), b"key") for _ in range(2)]
    bench.writer.begin(list(group))
    assert bench.replies == []
    work_off(bench.writer, [])
    first, second = (replies(bench)[id(item.waiter)] for item in group)
    assert second == first | {"replayed": True}
    assert first["sequence"] == 450
    bench.close()


def test_what_follows_it_for_the_same_model_comes_behind_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model = bench.create(SPEC)
    group = [request(model, three_classes(n, n)) for n in (3, 450, 5, 350)]
    work_off(bench.writer, list(group))
    said = replies(bench)
    assert [said[id(item.waiter)]["sequence"] for item in group] == [3, 453, 458, 808]
    assert [len(said[id(item.waiter)]["results"]["prediction"]) for item in group] == [
        *(3, 450),
        *(5, 350),
    ]
    bench.close()


def test_an_order_comes_after_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model = bench.create(SPEC)
    asked: Any = object()
    order = Order(lambda: model.published.sequence, asked, model)
    bench.writer.begin([request(model, three_classes(450)), order])
    assert replies(bench)[id(asked)] == 450
    assert not bench.writer.busy
    bench.close()


def test_orders_of_others_do_not_wait_for_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model, other = bench.create(SPEC), bench.create(SPEC, "other")
    bench.learn(other, three_classes(30))
    to = bench.snapshot(other)
    bench.writer.begin([request(model, three_classes(450))])
    asked: Any = object()
    bench.writer.begin([Order(lambda: bench.writer.history.roll_back(other, to), asked, other)])
    assert replies(bench)[id(asked)]["rolled_back"]["to"] == to
    assert bench.writer.busy == {model}
    bench.writer.models.delete(other)
    bench.create(SPEC, "another")
    work_off(bench.writer, [])
    bench = bench.restarted()
    stand = {one.name: one.published.sequence for one in bench.writer.models.all()}
    assert stand == {"m": 450, "another": 0}
    bench.close()


def test_model_deleted_before_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another thread may carry out orders while a turn of another model takes longer than said."""
    bench = Bench(tmp_path)
    model, other = bench.create(SPEC), bench.create(SPEC, "other")
    absorb = Learner.absorb

    def delete_other(learner: Learner, *given: Any) -> Any:
        if learner.model is model:
            bench.writer.delete(other)
        return absorb(learner, *given)

    monkeypatch.setattr(Learner, "absorb", delete_other)
    group = [request(other, three_classes(3)), request(model, three_classes(3))]
    work_off(bench.writer, list(group))
    assert [replies(bench)[id(item.waiter)]["sequence"] for item in group] == [3, 3]
    assert not caplog.records
    bench.close()


def test_a_failure_in_one_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is seen, it is durable, and a restart learns it."""
    bench = Bench(tmp_path)
    model, other = bench.create(SPEC), bench.create(SPEC, "other")
    absorb, absorbed = Learner.absorb, []

    def fail(learner: Learner, *given: Any) -> Any:
        absorbed.append(learner)
        if len(absorbed) == 3:
            raise ZeroDivisionError
        return absorb(learner, *given)

    group = [request(model, three_classes(450)), request(model, three_classes(3))]
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "absorb", fail)
        work_off(bench.writer, list(group))
    assert all(isinstance(said, NotYetLearned) for said in replies(bench).values())
    assert model.published.sequence == 0
    assert bench.learn(other, three_classes(3))["sequence"] == 3
    bench = bench.restarted()
    assert bench.writer.models.all()[0].published.sequence == 453
    bench.close()


def test_parts_are_bounded_in_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "PART_BYTES", 500)
    bench = Bench(tmp_path)
    model = bench.create(SPEC)
    bench.learn(model, three_classes(60))
    records = [len(entry.record) for (entry,) in bench.storage.journal.reader(model.id).blocks(0)]
    assert len(records) > 3
    assert max(records) <= 600
    bench.close()


@pytest.mark.parametrize("make", [three_classes, few_words])
def test_a_part_is_what_its_rows_would_be(make: Any) -> None:
    samples = make(40, 3)
    for start, stop in ((0, 40), (0, 1), (7, 23), (39, 40)):
        found, rows = slice_samples(samples, start, stop), part(samples, start, stop)
        assert to_record(found) == to_record(rows)
        assert plain_rows(from_record(to_record(found))) == plain_rows(rows)
        assert list(found.y) == list(rows.y)


class TestOrder:
    """Which model's turn is next, and how much a turn is."""

    def test_the_model_that_had_the_least_time(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        models = [bench.create(SPEC, name) for name in "abc"]
        turns = bench.writer._learning._turns
        for model, had in zip(models, (3.0, 1.0, 2.0), strict=True):
            turns._had_by[model] = had
            turns.leave(work_of(model, 300))
        order = []
        while (work := turns.next()) is not None:
            order.append(work.model.name)
        assert order == ["b", "c", "a"]
        bench.kill()

    def test_a_newcomer_counts_as_one_that_has_had_as_much(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        old, new, busy = (bench.create(SPEC, name) for name in ("old", "new", "busy"))
        turns = bench.writer._learning._turns
        turns._had, turns._had_by[busy] = 5.0, 7.0
        works = [work_of(model, 300) for model in (old, new, busy)]
        for work in works:
            turns.leave(work)
        assert [work.had for work in works] == [5.0, 5.0, 7.0]
        bench.kill()

    def test_short_turns_run_beside_a_long_one(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        one, two, short = (bench.create(SPEC, name) for name in ("one", "two", "short"))
        turns = bench.writer._learning._turns
        for model, n in ((one, 300), (two, 300), (short, 3)):
            turns.leave(work_of(model, n))
        turns._had_by[short] = 1.0
        turns._long_turns = 1
        work = turns.next()
        assert work is not None
        assert work.model is short
        assert turns.next() is None
        assert not turns.may_begin
        turns._long_turns = 0
        assert turns.may_begin
        bench.kill()

    def test_a_model_in_use_is_passed_over(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        one, two = bench.create(SPEC, "one"), bench.create(SPEC, "two")
        turns, role = bench.writer._learning._turns, bench.writer.role
        for model in (one, two):
            turns.leave(work_of(model, 3))
        with role.job([one]):
            work = turns.next()
            assert work is not None
            assert work.model is two
            assert turns.next() is None
        assert turns.may_begin
        bench.kill()


def work_of(model: Model, n: int) -> Work:
    accepted = CheckedRequest(request(model, three_classes(n)), n, [run_of(three_classes(n))])
    return Work(model, [[item] for item in in_parts([accepted], 1)], Duplicates(None))  # type: ignore[arg-type]


def run_of(samples: Samples) -> SampleRun:
    return SampleRun(samples, to_record(samples))


class TestBlocks:
    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [(0.0, SMALL), (0.001, SMALL), (0.01, 40), (0.1, 16), (10.0, 16)],
    )
    def test_they_are_bounded_by_expected_time(self, seconds: float, expected: int) -> None:
        assert blocks.block_size(seconds) == expected

    def test_slow_samples_are_learned_in_smaller_blocks(self, tmp_path: Path) -> None:
        """A request is divided, and small ones that come together are not one block."""
        bench = Bench(tmp_path)
        model = bench.create(SPEC)
        for _ in range(2):
            model.learning_time.add("working_set", 10, 0.2)
        bench.learn(model, three_classes(60))
        for _ in range(2):
            model.learning_time.add("working_set", 10, 0.2)
        work_off(bench.writer, [request(model, three_classes(9, k)) for k in range(6)])
        blocks = [
            [entry.samples for entry in block]
            for block in bench.storage.journal.reader(model.id).blocks(0)
        ]
        assert blocks == [[20]] * 3 + [[9, 9]] * 3
        before = state_of(model, ROWS)
        bench = bench.restarted()
        assert state_of(bench.writer.models.all()[0], ROWS) == before
        bench.close()

    def test_one_slow_block_says_nothing(self) -> None:
        """It may have waited for a compiler."""
        time = LearningTime()
        assert time.seconds_per_sample("working_set") is None
        for seconds in (5.0, 0.012, 7.0):
            time.add("working_set", 10, seconds)
        assert time.seconds_per_sample("working_set") == pytest.approx(0.001)
        assert time.seconds_per_sample("asset") is None

    def test_what_compiling_took_is_not_counted_as_learning(self) -> None:
        """A replay finds the code compiled, so no snapshot is due for it."""
        time, counted = LearningTime(), list[float]()
        for seconds in (60.0, 0.012, 30.0, 0.011):
            time.add("working_set", 10, seconds)
            counted.append(time.without_compiling("working_set", 10, seconds))
        assert counted == pytest.approx([0.002, 0.012, 0.012, 0.011])
        time.add("working_set", 1, 0.0007)
        assert time.without_compiling("working_set", 1, 0.0007) == 0.0007

    def test_before_anything_was_measured_size_counts(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        model = bench.create(SPEC)
        narrow, wide = three_classes(50), Samples(np.zeros((50, 2_000)), [*range(50)])
        seconds = [seconds_per_sample(model, "working_set", samples) for samples in (narrow, wide)]
        assert seconds[0] < 0.0002
        assert seconds[1] > 0.003
        bench.close()
