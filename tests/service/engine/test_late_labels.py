"""Labels that come later: rows wait for them, durably, and are learned once each."""

import shutil
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from tests.service.streams import curve, few_words, part, plain_rows, three_classes, word_counts
from tests.service.writer_bench import Bench, state_of, work_off
from wolfstream.service.engine import blocks
from wolfstream.service.engine.queue_items import LabelRequest, WaitingRowsRequest
from wolfstream.service.errors import (
    AnotherState,
    IdTaken,
    Invalid,
    InvalidSamples,
    StorageFailed,
    TooLarge,
)
from wolfstream.service.model import pending
from wolfstream.service.model.live import Model
from wolfstream.service.model.pending import PendingCounts
from wolfstream.service.model.revision import Revision
from wolfstream.service.recovery.model_files import ModelFileError, load_model
from wolfstream.service.recovery.verification import verify
from wolfstream.service.samples.ids import LateLabels, RowId
from wolfstream.service.samples.record import (
    from_prediction_record,
    rows_record,
    to_prediction_record,
)
from wolfstream.service.samples.validation import Samples
from wolfstream.service.storage.snapshot_format import State, write_state
from wolfstream.service.storage.sqlite_journal import SqliteJournal
from wolfstream.solver.prepare.named_rows import Rows, named_rows, table_of

SPEC: dict[str, Any] = {"working_set": {"max_size": 60}, "asset": None}
SAMPLES = three_classes(200)
ROWS = three_classes(20, 9).X
HOUR = 3_600_000


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> "Clock":
    clock = Clock()
    monkeypatch.setattr("wolfstream.service.engine.group_learning.now", lambda: clock.time)
    return clock


class Clock:
    time = 1_800_000_000_000


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "data")


@pytest.fixture
def model(bench: Bench) -> Model:
    """One that has learned fifty samples."""
    model = bench.create(SPEC)
    bench.learn(model, part(SAMPLES, 0, 50))
    return model


def asked(model: Model, ids: list[RowId], X: Rows) -> WaitingRowsRequest:
    published = model.published
    predictions = published.predict(model.spec.serve, published.head_rows(X))
    told = {
        "sequence": published.sequence,
        "epoch": published.epoch,
        "head": model.spec.serve,
        "prediction": predictions.prediction,
        "decision": predictions.decision,
        "ids": ids,
    }
    answer: Any = object()
    return WaitingRowsRequest(model, ids, X, told, answer, 0.0)


def came(
    model: Model, ids: list[RowId], y: Any, expected: tuple[Revision, ...] = ()
) -> LabelRequest:
    answer: Any = object()
    head = model.spec.serve
    return LabelRequest(model, head, LateLabels(ids, y), answer, 0.0, expected)


def handle(bench: Bench, *requests: Any) -> list[Any]:
    """The answers to a group of requests."""
    work_off(bench.writer, list(requests))
    answers = {id(waiter): said for waiter, said in bench.replies}
    return [answers[id(request.waiter)] for request in requests]


def predict(bench: Bench, model: Model, ids: list[Any], X: Rows) -> Any:
    return handle(bench, asked(model, ids, X))[0]


def label(bench: Bench, model: Model, ids: list[Any], y: Any) -> Any:
    return handle(bench, came(model, ids, y))[0]


def status(answer: Any) -> list[str]:
    found: list[str] = answer["results"]["status"]
    return found


def rows(samples: Samples, *numbers: int) -> Any:
    X: Any = samples.X
    return X[list(numbers)]


def labels_of(samples: Samples, *numbers: int) -> list[Any]:
    return [samples.y[number] for number in numbers]


def waiting(model: Model) -> tuple[int, int, int]:
    """Rows that wait, that were joined, and that left."""
    assert model.pending is not None
    return model.pending.rows, model.pending.joined, model.pending.expired


# -- what is learned ---------------------------------------------------------------------


def test_rows_are_learned_in_the_order_of_their_labels(bench: Bench, model: Model) -> None:
    """As if rows and labels had come together, in that order."""
    twin = bench.create(SPEC, "twin")
    bench.learn(twin, part(SAMPLES, 0, 50))
    predict(bench, model, ["a", "b", 3], rows(SAMPLES, 60, 61, 62))
    predict(bench, model, ["d"], rows(SAMPLES, 63))
    answer = label(bench, model, ["d", "b", "a"], labels_of(SAMPLES, 63, 61, 60))
    assert (answer["sequence"], answer["learned"]) == (53, 3)
    assert status(answer) == ["learned"] * 3
    order = Samples(rows(SAMPLES, 63, 61, 60), labels_of(SAMPLES, 63, 61, 60))
    bench.learn(twin, order)
    assert state_of(model, ROWS)[0] == state_of(twin, ROWS)[0]
    assert waiting(model) == (1, 3, 0)


def test_late_label_scores_the_earlier_prediction(bench: Bench, model: Model) -> None:
    before = model.describe()["heads"]["working_set"]["prequential"]
    told = predict(bench, model, ["a", "b"], rows(SAMPLES, 60, 61))
    bench.learn(model, part(SAMPLES, 100, 180))
    between = model.describe()["heads"]["working_set"]["prequential"]
    wrong = [10 - value if value in (0, 10) else 0 for value in told["prediction"]]
    answer = label(bench, model, ["a", "b"], wrong)
    assert answer["results"]["prediction"] == told["prediction"]
    after = model.describe()["heads"]["working_set"]["prequential"]
    assert after["samples"] == between["samples"] + 2 == before["samples"] + 82
    hits = [round(score["accuracy"] * score["samples"]) for score in (between, after)]
    assert hits[0] == hits[1]


def test_rows_of_large_requests_in_turn_are_decoded_once(
    bench: Bench, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "_DECODED_BYTES", 1)  # so that one request is kept at a time
    decoded, read = list[bytes](), pending.from_prediction_record
    monkeypatch.setattr(
        pending, "from_prediction_record", lambda record: (decoded.append(record), read(record))[1]
    )
    for name, start in (("a", 60), ("b", 70)):
        predict(
            bench,
            model,
            [f"{name}{k}" for k in range(10)],
            rows(SAMPLES, *range(start, start + 10)),
        )
    decoded.clear()
    ids = [f"{name}{k}" for k in range(10) for name in "ab"]
    order = [start + k for k in range(10) for start in (60, 70)]
    assert status(label(bench, model, list(ids), labels_of(SAMPLES, *order))) == ["learned"] * 20
    # The view that is published looks at the last ones, too.
    assert len(decoded) <= 4


def test_predictions_leave_the_sequence(bench: Bench, model: Model) -> None:
    assert predict(bench, model, ["a"], rows(SAMPLES, 60))["sequence"] == 50
    assert model.published.sequence == 50
    assert bench.learn(model, part(SAMPLES, 50, 51))["sequence"] == 51


@pytest.mark.parametrize("size", [1, 7])
def test_a_label_that_comes_again_is_not_learned_again(
    bench: Bench, model: Model, size: int
) -> None:
    numbers = range(60, 60 + size)
    ids, y = [str(k) for k in numbers], labels_of(SAMPLES, *numbers)
    predict(bench, model, ids, rows(SAMPLES, *numbers))
    first = label(bench, model, ids, y)
    again = label(bench, model, ids, y)
    assert (status(again), again["learned"]) == (["replayed"] * size, 0)
    assert again["sequence"] == first["sequence"] == model.published.sequence
    assert again["results"]["prediction"] == first["results"]["prediction"]


def test_each_label_is_answered_by_itself(bench: Bench, model: Model) -> None:
    predict(bench, model, ["a", "b"], rows(SAMPLES, 60, 61))
    label(bench, model, ["a"], [0])
    answer = label(bench, model, ["a", "a", "none", "b", "b", "b"], [0, 10, 0, 10, 10, 20])
    expected = ["replayed", "conflict", "unknown", "learned", "replayed", "conflict"]
    assert status(answer) == expected
    assert answer["learned"] == 1
    assert model.labels == {"learned": 2, "replayed": 2, "unknown": 1, "expired": 0, "conflict": 2}


def test_labels_of_one_group_know_each_other(bench: Bench, model: Model) -> None:
    predict(bench, model, ["a"], rows(SAMPLES, 60))
    answers = handle(bench, *(came(model, ["a"], [y]) for y in (0, 0, 10)))
    assert [status(answer)[0] for answer in answers] == ["learned", "replayed", "conflict"]


def test_a_label_in_another_spelling_is_replayed(bench: Bench, model: Model) -> None:
    predict(bench, model, ["a"], rows(SAMPLES, 60))
    assert status(label(bench, model, ["a"], [1])) == ["learned"]
    assert status(label(bench, model, ["a"], [True])) == ["replayed"]
    assert status(label(bench, model, ["a"], ["0"])) == ["conflict"]


def test_numbers_are_learned_too(bench: Bench) -> None:
    model = bench.create({"task": "regression", "asset": {"dimension": 8}})
    samples = curve(40)
    bench.learn(model, part(samples, 0, 30), head="asset")
    told = predict(bench, model, ["a", "b"], rows(samples, 30, 31))
    score = model.describe()["heads"]["asset"]["prequential"]
    y = np.array([told["prediction"][0] + 2.0, told["prediction"][1] - 2.0])
    answer = label(bench, model, ["a", "b"], y)
    assert answer["results"]["prediction"] == told["prediction"]
    after = model.describe()["heads"]["asset"]["prequential"]
    assert after["mae"] * 31 == pytest.approx(score["mae"] * 29 + 4.0)
    assert status(label(bench, model, ["a"], y[:1])) == ["replayed"]


@pytest.mark.parametrize("make", [few_words, word_counts])
def test_rows_by_name_come_together_again(bench: Bench, make: Any) -> None:
    """Rows of several requests, in another order than they came, learn as if sent so."""
    spec: Any = {"task": "regression", "kernel": {"type": "linear"}}
    spec = spec if make is word_counts else SPEC
    one, twin = bench.create(spec, "one"), bench.create(spec, "twin")
    samples, head = make(60), one.spec.serve
    for each in (one, twin):
        bench.learn(each, part(samples, 0, 40), head=head)
    for start in (40, 50):
        piece = part(samples, start, start + 10)
        predict(bench, one, list(range(start, start + 10)), piece.X)
    order = [*range(45, 55), 41, 59, 42]
    y: Any = samples.y[order] if make is word_counts else labels_of(samples, *order)
    assert status(label(bench, one, list(order), y)) == ["learned"] * len(order)
    plain = plain_rows(samples)
    bench.learn(twin, Samples(named_rows([plain[k] for k in order]), y), head=head)
    test = part(samples, 0, 20).X
    said = [each.published.predict(head, each.published.head_rows(test)) for each in (one, twin)]
    assert said[0] == said[1]


def test_rows_of_several_forms_are_learned_in_their_order(bench: Bench) -> None:
    spec = {"prepare": {}, "working_set": None, "asset": {"dimension": 8}}
    one, twin = bench.create(spec, "one"), bench.create(spec, "twin")
    names = ("a", "b", "c")
    for each in (one, twin):
        first = Samples(table_of(names, SAMPLES.X[:50]), SAMPLES.y[:50])  # type: ignore[index]
        bench.learn(each, first, head="asset")
    predict(bench, one, ["0"], rows(SAMPLES, 60))
    predict(bench, one, ["1"], table_of(names, rows(SAMPLES, 61)))
    y = labels_of(SAMPLES, 60, 61)
    assert status(label(bench, one, ["0", "1"], y)) == ["learned"] * 2
    bench.learn(twin, Samples(rows(SAMPLES, 60), y[:1]), head="asset")
    bench.learn(twin, Samples(table_of(names, rows(SAMPLES, 61)), y[1:]), head="asset")
    assert state_of_rows(one) == state_of_rows(twin)
    again = bench.restarted()
    restored = again.writer.models.get("one")
    assert restored is not None
    assert state_of_rows(restored) == state_of_rows(one)


def state_of_rows(model: Model) -> Any:
    return model.published.predict(model.spec.serve, model.published.head_rows(ROWS))


# -- what is refused ---------------------------------------------------------------------


def test_an_id_belongs_to_its_row(bench: Bench, model: Model) -> None:
    predict(bench, model, ["a", "b"], rows(SAMPLES, 60, 61))
    refused = predict(bench, model, ["c", "b"], rows(SAMPLES, 62, 63))
    assert isinstance(refused, IdTaken)
    assert [error["pointer"] for error in refused.errors] == ["/ids/1"]
    label(bench, model, ["a"], [0])
    assert isinstance(predict(bench, model, ["a"], rows(SAMPLES, 62)), IdTaken)
    assert waiting(model) == (1, 1, 0)


def test_a_prediction_that_comes_again_gets_its_first_answer(bench: Bench, model: Model) -> None:
    X = rows(SAMPLES, 60, 61)
    first = predict(bench, model, ["a", "b"], X)
    bench.learn(model, part(SAMPLES, 100, 180))
    again = predict(bench, model, ["a", "b"], X)
    assert again["replayed"]
    for name in ("prediction", "sequence", "epoch", "ids"):
        assert again[name] == first[name]
    both = handle(bench, asked(model, ["c"], X[:1]), asked(model, ["c"], X[:1]))
    assert both[1] == both[0] | {"replayed": True, "decision": [None]}
    assert waiting(model) == (3, 0, 0)


def test_a_spec_without_room_refuses(bench: Bench) -> None:
    none = bench.create(SPEC | {"pending": None}, "none")
    few = bench.create(SPEC | {"pending": {"max_rows": 2}}, "few")
    for each in (none, few):
        bench.learn(each, part(SAMPLES, 0, 50))
    assert isinstance(predict(bench, none, ["a"], rows(SAMPLES, 60)), Invalid)
    assert isinstance(label(bench, none, ["a"], [0]), Invalid)
    assert isinstance(predict(bench, few, ["a", "b", "c"], rows(SAMPLES, 60, 61, 62)), TooLarge)


def test_labels_that_cannot_be_learned_are_refused_as_a_whole(bench: Bench) -> None:
    model = bench.create(SPEC | {"classes": [0, 10]})
    bench.learn(model, part(SAMPLES, 0, 50))
    predict(bench, model, ["a", "b"], rows(SAMPLES, 60, 61))
    refused = label(bench, model, ["none", "a", "b"], [0, 0, 30])
    assert isinstance(refused, InvalidSamples)
    assert [error["row"] for error in refused.errors] == [2]
    assert waiting(model) == (2, 0, 0)
    assert status(label(bench, model, ["a", "b"], [0, 10])) == ["learned"] * 2


def test_labels_for_another_state_are_refused(bench: Bench, model: Model) -> None:
    predict(bench, model, ["a"], rows(SAMPLES, 60))
    (refused,) = handle(bench, came(model, ["a"], [0], (Revision(model.published.epoch, 49),)))
    assert isinstance(refused, AnotherState)
    assert waiting(model) == (1, 0, 0)


@pytest.mark.parametrize("fails", ["predict", "label"])
def test_what_is_not_durable_did_not_happen(
    bench: Bench, model: Model, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def full(*_: Any) -> None:
        raise StorageFailed("no space left")

    predict(bench, model, ["a"], rows(SAMPLES, 60))
    with monkeypatch.context() as context:
        context.setattr(SqliteJournal, "_append", full)
        if fails == "predict":
            answers = [predict(bench, model, ["b"], rows(SAMPLES, 61))]
        else:
            labels = came(model, ["a"], [0]), came(model, ["a", "none"], [0, 0])
            answers = handle(bench, *labels)
        assert all(isinstance(answer, StorageFailed) for answer in answers)
    assert waiting(model) == (1, 0, 0)
    assert status(label(bench, model, ["b", "a"], [0, 0])) == ["unknown", "learned"]


# -- bounds ------------------------------------------------------------------------------


def test_the_oldest_leave_where_there_are_too_many(bench: Bench) -> None:
    model = bench.create(SPEC | {"pending": {"max_rows": 3}})
    bench.learn(model, part(SAMPLES, 0, 50))
    for k, ids in enumerate((["a", "b"], ["c"], ["d", "e"])):
        predict(bench, model, ids, rows(SAMPLES, *range(60 + 2 * k, 60 + 2 * k + len(ids))))
    assert waiting(model) == (3, 0, 2)
    found = status(label(bench, model, list("abcde"), [0] * 5))
    assert found == ["expired"] * 2 + ["learned"] * 3


def test_bytes_are_bounded(bench: Bench) -> None:
    model = bench.create(SPEC | {"pending": {"max_bytes": 1 << 16}})
    bench.learn(model, part(SAMPLES, 0, 50))
    for k in range(20):
        predict(bench, model, [f"{k} {i}" for i in range(20)], rows(SAMPLES, *range(20)))
        assert model.pending is not None
        assert model.pending.n_bytes <= 1 << 16
    assert 0 < model.pending.rows < 200


def test_rows_grow_too_old(bench: Bench, clock: Clock) -> None:
    model = bench.create(SPEC | {"pending": {"max_age_seconds": 3600.0}})
    bench.learn(model, part(SAMPLES, 0, 50))
    predict(bench, model, ["a"], rows(SAMPLES, 60))
    clock.time += HOUR
    predict(bench, model, ["b"], rows(SAMPLES, 61))
    assert status(label(bench, model, ["a"], [0])) == ["learned"]
    predict(bench, model, ["c"], rows(SAMPLES, 62))
    clock.time += HOUR + 1
    assert status(label(bench, model, ["b"], [0])) == ["expired"]
    assert waiting(model) == (2, 1, 0)  # nothing leaves between two entries
    told = predict(bench, model, ["b"], rows(SAMPLES, 63))
    assert "replayed" not in told
    assert waiting(model) == (1, 1, 2)
    assert status(label(bench, model, ["c", "b"], [0, 0])) == ["expired", "learned"]


def test_a_clock_that_goes_back_makes_nothing_old(bench: Bench, clock: Clock) -> None:
    model = bench.create(SPEC | {"pending": {"max_age_seconds": 3600.0}})
    bench.learn(model, part(SAMPLES, 0, 50))
    predict(bench, model, ["a"], rows(SAMPLES, 60))
    clock.time -= 1000 * HOUR
    predict(bench, model, ["b"], rows(SAMPLES, 61))
    assert status(label(bench, model, ["a", "b"], [0, 0])) == ["learned"] * 2


def test_ids_of_labelled_rows_are_forgotten_in_the_end(bench: Bench) -> None:
    model = bench.create(SPEC | {"pending": {"max_rows": 3}})
    bench.learn(model, part(SAMPLES, 0, 50))
    for k in range(5):
        predict(bench, model, [k], rows(SAMPLES, 60 + k))
        label(bench, model, [k], [0])
    found = status(label(bench, model, list(range(5)), [0] * 5))
    assert found == ["unknown"] * 2 + ["replayed"] * 3


# -- what a restart finds ----------------------------------------------------------------


def everything(bench: Bench, model: Model) -> Any:
    """The model's whole state, to the last bit."""
    plain, arrays = bench.writer.models.learner(model).state()
    return plain, {name: (array.dtype.str, array.tolist()) for name, array in arrays.items()}


def live(bench: Bench, model: Model, clock: Clock, seed: int) -> None:
    """Predictions, labels of some of them, samples and snapshots, as they come."""
    random = np.random.default_rng(seed)
    unlabelled: list[int] = []
    for step in range(30):
        clock.time += int(random.integers(0, HOUR // 3))
        kind = random.integers(0, 5)
        if kind <= 1:
            ids = [1000 * seed + 10 * step + k for k in range(random.integers(1, 6))]
            predict(bench, model, ids, rows(SAMPLES, *random.integers(0, 200, len(ids))))
            unlabelled += ids
        elif kind == 2 and unlabelled:
            chosen = [int(k) for k in random.choice(unlabelled, random.integers(1, 6))]
            label(bench, model, chosen, [int(random.integers(0, 3)) * 10 for _ in chosen])
        elif kind == 3:
            bench.learn(model, part(SAMPLES, step, step + 3))
        elif random.random() < 0.5:
            bench.snapshot(model)


def plain(counts: PendingCounts) -> tuple[Any, ...]:
    """Counts of rows that wait, with the rows that wait by value."""
    newest = [(row, at.time, at.first, at.record, at.gone) for row, at in counts.newest]
    return (*counts._replace(newest=()), newest)


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_restart_finds_the_same_rows_bit_for_bit(tmp_path: Path, clock: Clock, seed: int) -> None:
    bench = Bench(tmp_path / "data")
    spec = SPEC | {"pending": {"max_rows": 20, "max_age_seconds": 7200.0}}
    model = bench.create(spec)
    bench.learn(model, part(SAMPLES, 0, 50))
    live(bench, model, clock, seed)
    before, counts = everything(bench, model), plain(model.pending)
    again = bench.restarted()
    restored = again.writer.models.get("m")
    assert restored is not None
    assert everything(again, restored) == before
    assert plain(restored.pending) == counts
    live(again, restored, clock, seed + 100)  # and it goes on
    later = everything(again, restored)
    third = again.restarted()
    found = third.writer.models.get("m")
    assert found is not None
    assert everything(third, found) == later
    third.close()


def test_what_waits_is_verified(bench: Bench, model: Model) -> None:
    predict(bench, model, ["a", "b"], rows(SAMPLES, 60, 61))
    label(bench, model, ["a"], [0])
    bench.snapshot(model)
    predict(bench, model, ["c"], rows(SAMPLES, 62))
    label(bench, model, ["c"], [0])
    bench.kill()
    assert list(verify(bench.data, lambda _: None)) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda numbers, *rest: [numbers[:3], *rest],
        lambda numbers, requests, settled: [numbers, requests * 2 + [[b"", b""]], settled],
        lambda numbers, requests, settled: [numbers, [[requests[0][0], b"\0"]], settled],
        lambda numbers, requests, _: [numbers, requests, [[["a"], 0, 0]]],
        lambda numbers, requests, _: [numbers, requests, [["a", 0]]],
        lambda numbers, requests, _: [numbers, [[_with_rows(requests[0][0]), b"\0\0"]], []],
    ],
)
def test_a_file_with_rows_that_are_not_whole_is_refused(
    bench: Bench, model: Model, change: Any, tmp_path: Path
) -> None:
    """Nobody knows who wrote a model file."""
    predict(bench, model, ["a", "b"], rows(SAMPLES, 60, 61))
    plain, arrays = bench.writer.models.learner(model).state()
    changed = change(*msgpack.unpackb(arrays["pending"].tobytes()))
    arrays["pending"] = np.frombuffer(msgpack.packb(changed), np.uint8)
    write_state(tmp_path / "m.model", State(plain, arrays))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "m.model")


def _with_rows(record: bytes) -> bytes:
    """A prediction's record whose rows are infinite."""
    predicted = from_prediction_record(record)
    return to_prediction_record(predicted._replace(rows=rows_record(np.full((2, 3), np.inf))))


def test_the_second_newest_snapshot_leads_to_the_same_rows(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "data")
    model = bench.create(SPEC)
    bench.learn(model, part(SAMPLES, 0, 50))
    bench.snapshot(model)
    predict(bench, model, ["a", "b"], rows(SAMPLES, 60, 61))
    label(bench, model, ["a"], [0])
    newest = bench.snapshot(model)
    predict(bench, model, ["c"], rows(SAMPLES, 62))
    before = everything(bench, model)
    bench.kill()
    (path,) = (tmp_path / "data").glob(f"snapshots/*/*{newest}.snapshot")
    path.write_bytes(b"damaged")
    again = Bench(tmp_path / "data")
    restored = again.writer.models.get("m")
    assert restored is not None
    assert everything(again, restored) == before


def test_predictions_without_labels_do_not_fill_the_journal(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "data", snapshot_samples=40)
    model = bench.create(SPEC | {"pending": {"max_rows": 30}})
    bench.learn(model, part(SAMPLES, 0, 50))
    for k in range(40):
        predict(bench, model, [f"{k} {i}" for i in range(10)], rows(SAMPLES, *range(10)))
        bench.writer.snapshots.finish(wait=True)
    (held,) = bench.storage.journal._file.db.execute(  # type: ignore[attr-defined]
        "SELECT count(*) FROM log WHERE kind = 'prediction'"
    ).fetchone()
    assert held <= 12
    before = everything(bench, model)
    again = bench.restarted()
    restored = again.writer.models.get("m")
    assert restored is not None
    assert everything(again, restored) == before


def test_a_rollback_brings_back_the_rows_that_waited(bench: Bench, model: Model) -> None:
    predict(bench, model, ["a"], rows(SAMPLES, 60))
    to = bench.snapshot(model)
    label(bench, model, ["a"], [0])
    predict(bench, model, ["b"], rows(SAMPLES, 61))
    bench.writer.history.roll_back(model, to)
    assert waiting(model) == (1, 0, 0)
    predict(bench, model, ["c"], rows(SAMPLES, 62))
    before = everything(bench, model)
    again = bench.restarted()
    restored = again.writer.models.get("m")
    assert restored is not None
    found = everything(again, restored)
    assert found == before
    assert status(label(again, restored, ["a", "b", "c"], [0] * 3)) == [
        "learned",
        "unknown",
        "learned",
    ]


@pytest.mark.parametrize("done", [0, 2])
def test_a_kill_between_the_parts_of_many_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    monkeypatch.setattr(blocks, "PART_SAMPLES", 30)
    bench = Bench(tmp_path / "data")
    model = bench.create(SPEC)
    bench.learn(model, part(SAMPLES, 0, 50))
    ids: list[RowId] = list(range(150))
    predict(bench, model, ids, rows(SAMPLES, *range(50, 200)))
    y = labels_of(SAMPLES, *range(50, 200))
    bench.writer.begin([came(model, ids, y)])
    for _ in range(done):
        bench.writer.go_on()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    while bench.writer.busy:
        bench.writer.go_on()
    answer = bench.replies[-1][1]
    assert (answer["learned"], status(answer)) == (150, ["learned"] * 150)
    again = Bench(tmp_path / "copy")
    restored = again.writer.models.get("m")
    assert restored is not None
    assert everything(again, restored) == everything(bench, model)
    assert status(label(again, restored, ids, y)) == ["replayed"] * 150
