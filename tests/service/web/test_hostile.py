"""What was once let through: hostile bodies, damaged files, values at the edge of float64."""

import asyncio
import hashlib
import io
import json
import os
import sqlite3
import tracemalloc

import numpy as np
import pytest
from starlette.responses import PlainTextResponse

from tests.service.storage.writing import append, create
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.engine.recovery_order import Room, recover
from wolfstream.service.errors import Invalid, InvalidSamples, StartupError
from wolfstream.service.heads.kinds import build
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples, read_samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State, read_state
from wolfstream.service.web.formats.problems import problem_response
from wolfstream.service.web.formats.wire import JSON
from wolfstream.service.web.transport.guard import Guard
from wolfstream.service.web.transport.origins import Origins


def raw(values, dtype="<f8"):
    array = np.array(values, dtype)
    return {"dtype": dtype, "shape": list(array.shape), "data": array.tobytes()}


class TestHeads:
    """What a head of a request says is not kept in memory when the request is over."""

    @pytest.mark.parametrize("layer", ["guard", "origins"])
    def test_long_ones_are_forgotten(self, layer, tmp_path):
        ring, settings = KeyRing(KeyFile(tmp_path)), Settings()
        inner = PlainTextResponse("done")
        app = {
            "guard": Guard(inner, ring, problem_response),
            "origins": Origins(inner, settings, ring, problem_response),
        }[layer]

        async def send_all():
            for i in range(300):
                long = f"{i}{'a' * 50_000}"
                headers = {b"host": long.encode()}
                path = f"/v1/models/{long}"
                scope = {"type": "http", "method": "GET", "path": path, "headers": []}
                await app(scope | {"state": {"headers": headers}}, none, none)

        async def none(*_):
            pass

        tracemalloc.start()
        asyncio.run(send_all())
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert kept < 1 << 20


@pytest.mark.parametrize("dtype", [[], {}, ["<f8"]])
def test_a_dtype_is_text(dtype):
    with pytest.raises(InvalidSamples) as caught:
        read_samples({"x": raw([1.0]) | {"dtype": dtype}, "y": 1})
    assert caught.value.errors[0]["pointer"] == "/x/dtype"


@pytest.mark.parametrize(
    "body",
    [
        {"x": [[1]] + [0] * 200_000, "y": [1]},
        {"x": [[None] * 200_000], "y": [1]},
        {"x": [None] * 200_000, "y": 1},
        {"x": [{}] + [0] * 200_000, "y": [1]},
        {"x": [{"a": None}] * 200_000, "y": [1]},
        {"x": [{"x" * 1_000_000: 1}] * 20, "y": [1]},
        {"x": [[1]], "y": [{}] * 200_000},
        {"x": [[1]], "y": [1]} | {str(i): 0 for i in range(200_000)},
    ],
    ids=["rows", "numbers", "single", "kinds", "named", "name", "labels", "fields"],
)
def test_a_refusal_costs_no_more_than_its_errors(body):
    tracemalloc.start()
    with pytest.raises(Invalid) as caught:
        read_samples(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(caught.value.errors) <= 21
    assert peak < 8_000_000


def test_a_signalling_nan_is_a_nan():
    x = {"dtype": "<f4", "shape": [1, 1], "data": bytes.fromhex("0000a07f")}
    with pytest.raises(InvalidSamples):
        read_samples({"x": x, "y": [1]})


@pytest.mark.parametrize("read", [read_samples, read_spec])
def test_pointers_are_escaped(read):
    with pytest.raises(Invalid) as caught:
        read({"x": [1], "y": 1, "a/b~c": 2})
    assert "/a~1b~0c" in [e["pointer"] for e in caught.value.errors]


@pytest.mark.parametrize(
    ("kernel", "pointer"),
    [
        ({"type": "linear", "gamma": 1.0}, "/kernel/gamma"),
        ({"type": "rbf", "degree": 2}, "/kernel/degree"),
        ({"type": "polynomial", "linear": 2}, "/kernel/linear"),
        ({"colour": 2}, "/kernel/colour"),
    ],
)
def test_an_unknown_kernel_field_is_pointed_at(kernel, pointer):
    with pytest.raises(Invalid) as caught:
        read_spec({"kernel": kernel})
    assert [e["pointer"] for e in caught.value.errors] == [pointer]


SPECS = {
    "linear": ("working_set", {"kernel": {"type": "linear"}}),
    "polynomial": ("working_set", {"kernel": {"type": "polynomial", "gamma": 1.0}}),
    "auto": ("working_set", {"kernel": {"type": "polynomial"}}),
    "rbf": ("working_set", {}),
    "asset": ("asset", {"asset": {"dimension": 8}}),
    "nystrom": ("asset", {"asset": {"features": "nystrom", "dimension": 8}}),
    "polynomial asset": ("asset", {"kernel": {"type": "polynomial"}, "asset": {"dimension": 8}}),
    "identity": ("asset", {"kernel": {"type": "linear"}}),
}


@pytest.mark.parametrize(("name", "spec"), SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("value", [1e51, 1e155, 1e308, 1.7e308])
def test_predict_refuses_what_learning_refuses(name, spec, value):
    head = build(name, read_spec(spec))
    head.absorb(np.random.default_rng(0).standard_normal((150, 2)), ["a", "b"] * 75)
    with pytest.raises(InvalidSamples) as caught:
        head.view().predict(np.array([[1.0, 2.0], [value, -value]]))
    assert caught.value.errors[0]["row"] == 1


@pytest.mark.parametrize("degree", [2, 3, 8])
@pytest.mark.parametrize("small", [1e-6, 1e-20, 1e-50])
@pytest.mark.parametrize("first", [2, 128])
@pytest.mark.parametrize("head", ["working_set", "asset"])
def test_a_stream_may_outgrow_its_gamma(head, degree, small, first):
    random = np.random.default_rng(0)
    X = np.concatenate(
        [small * random.standard_normal((first, 2)), 1e5 * random.standard_normal((50, 2))]
    )
    labels = ["a", "b"] * (len(X) // 2)
    kernel = {"type": "polynomial", "degree": degree}
    learner = Learner(Model(1, "m", read_spec({"kernel": kernel, "asset": {"dimension": 150}})))
    Draft(learner, Limits(100, 100)).add(head, Samples(X, labels))
    answers = learner.absorb(head, Samples(X, labels))
    learner.publish()
    assert np.isfinite(answers.decision[2:]).all()
    view = learner.model.published.heads[head]
    if head == "working_set":
        said, hidden = view.stats["objective"], "rounding hides" in view.stats.get("warning", "")
        assert (view.stats["gap"] is None) is (said is None) is hidden
        assert hidden or (said < 0.0 and np.isfinite([said, view.stats["gap"]]).all())
        assert view.gauges["indefinite"] == 0.0
    assert np.isfinite(view.predict(1e-3 * X[:first]).decision).all()
    json.loads(JSON.encode(learner.model.describe()), parse_constant=pytest.fail)


def test_the_cost_of_a_prediction_counts_features():
    spec = read_spec({"asset": {"dimension": 16384}, "working_set": None})
    head = build("asset", spec)
    head.absorb(np.random.default_rng(0).standard_normal((4, 100)), ["a", "b"] * 2)
    assert head.view().cost(10, 1000) >= 10 * 100 * 16384


def test_a_failed_snapshot_leaves_no_partial_file(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    snapshots = SnapshotFiles(tmp_path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        snapshots.save(1, State({"sequence": 1}, {"a": np.zeros(1000)}))
    assert list((tmp_path / "1").iterdir()) == []


def test_a_partial_file_of_a_killed_process_is_removed(tmp_path):
    snapshots = SnapshotFiles(tmp_path)
    snapshots.save(1, State({"sequence": 1}, {}))
    (tmp_path / "1" / f"{2:020d}.partial").write_bytes(bytes(1000))
    snapshots.save(1, State({"sequence": 3}, {}))
    assert sorted(f.suffix for f in (tmp_path / "1").iterdir()) == [".snapshot"] * 2


def test_a_damaged_snapshot_breaks_a_model_whose_journal_lacks_the_rest(tmp_path):
    storage = open_storage(tmp_path)
    snapshots = storage.snapshots
    spec = read_spec({"asset": {"dimension": 4}})
    learner = Learner(Model(create(storage, "m", spec.plain()), "m", spec), "epoch of m")
    for _ in range(2):
        learner.absorb("asset", Samples(np.ones((1, 2)), ["a"]))
        snapshots.save(learner.model.id, State(*learner.state()))
    (newest,) = (tmp_path / "snapshots").glob(f"*/{2:020d}.snapshot")
    newest.write_bytes(b"damaged")
    ((again, _),) = recover(storage, lambda _: None, Room(1, 0))
    assert "it was at sequence 2, but what can be read ends at 1" in str(again.model.broken)
    assert snapshots.sequences(learner.model.id) == [2, 1]
    storage.close()


@pytest.mark.parametrize("body", [b"", "npy"])
def test_a_right_digest_of_something_else_is_damage(tmp_path, body):
    if body == "npy":
        file = io.BytesIO()
        np.save(file, np.arange(3))
        body = file.getvalue()
    path = tmp_path / "x.snapshot"
    path.write_bytes(b"WOLFSN\x00\x01" + hashlib.sha256(body).digest() + body)
    with pytest.raises(DamagedSnapshot):
        read_state(path)


def damaged_journal(path):
    storage = open_storage(path.parent)
    learner = create(storage, "m", {})
    append(storage, [Entry(learner, n, 1, n, "asset", 1, bytes(3000)) for n in range(1, 100)])
    storage.close()
    content = bytearray(path.read_bytes())
    return learner, content


def test_damaged_entries_keep_the_server_from_starting(tmp_path):
    path = tmp_path / "log.sqlite"
    _, content = damaged_journal(path)
    content[3 * 4096 :] = b"\xff" * (len(content) - 3 * 4096)
    path.write_bytes(content)
    with pytest.raises(StartupError):
        open_storage(tmp_path)


def test_a_damaged_list_of_models_keeps_the_server_from_starting(tmp_path):
    path = tmp_path / "log.sqlite"
    _, content = damaged_journal(path)
    content[4096 : 2 * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(StartupError):
        open_storage(tmp_path).catalogue.models()


def test_a_log_of_another_format_is_closed_and_untouched(tmp_path):
    path = tmp_path / "log.sqlite"
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    before = path.read_bytes()
    opened = []
    connect = sqlite3.connect

    def remember(*arguments, **options):
        opened.append(connect(*arguments, **options))
        return opened[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", remember)
        with pytest.raises(StartupError):
            open_storage(tmp_path)
    assert path.read_bytes() == before
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
