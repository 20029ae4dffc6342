"""What a log owns: its samples, its keys, its rows and its number, when system calls fail.

Each test has one call fail, or a few, and then looks at what clients were promised.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.service.specs import read_papers_spec
from tests.service.streams import curve, part, two_classes
from tests.service.syscalls.library import SystemCalls
from tests.service.writer_bench import Bench, work_off
from wolfstream.service.engine.group_learning import GroupRequest
from wolfstream.service.engine.queue_items import LabelRequest, LearnRequest, WaitingRowsRequest
from wolfstream.service.errors import InDoubt, ModelBroken, Refusal, StartupError, StorageFailed
from wolfstream.service.heads.kinds import fit_window
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.directory_models import export_model
from wolfstream.service.recovery.model_files import load_content
from wolfstream.service.recovery.salvage import recover_directory
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.samples.validation import Samples
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.data_directory import forget_high_water, replays_path
from wolfstream.service.storage.snapshot_format import State, encode_state

SPEC: dict[str, Any] = {"working_set": None, "asset": {"dimension": 8}}
OTHER: dict[str, Any] = {"working_set": None, "asset": {"dimension": 4}}
REGRESSION: dict[str, Any] = {"task": "regression", "working_set": None}
SAMPLES = two_classes(60)
LARGE = two_classes(3000)
LOG, SNAPSHOTS = "*log.sqlite*", "*.snapshot"
# In the marks of replays, in the place of a sequence: the snapshot is loaded.
LOADING = 2**63


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "data")
    yield bench
    bench.storage.close()


def revived(bench: Bench) -> Bench:
    """The next one on the directory, after a kill; the fixture closes the first one again."""
    return bench.restarted()


def learn(bench: Bench, model: Model, n: int = 1, key: bytes | None = None) -> Any:
    return bench.learn(model, part(SAMPLES, 0, n), "asset", key)


def asked(model: Model, samples: Samples, key: bytes | None = None) -> LearnRequest:
    return LearnRequest(model, "asset", samples, Future(), 0.0, key)


def answer_to(bench: Bench, request: GroupRequest) -> Any:
    work_off(bench.writer, [request])
    return next(result for answer, result in bench.replies if answer is request.waiter)


def model_in(bench: Bench, name: str) -> Model:
    model = bench.writer.models.get(name)
    assert model is not None
    return model


def learned_state(spec: dict[str, Any], n: int) -> State:
    """The state of a model that has learned n samples elsewhere."""
    learner = Learner(Model(0, "", read_papers_spec(spec)))
    learner.absorb("asset", part(SAMPLES, 0, n))
    return State(*learner.state())


def upload(bench: Bench, name: str, spec: dict[str, Any], n: int) -> Model:
    content = b"".join(encode_state(learned_state(spec, n)))
    return bench.writer.new_models.add(name, load_content(content, "it"))[0]


def follower(bench: Bench, champion: Model, spec: dict[str, Any] = SPEC) -> Model:
    papers = read_papers_spec(spec)
    return bench.writer.challengers.make("c", champion, papers, "empty")[0]


def predict(bench: Bench, model: Model, *ids: str) -> Any:
    """The answer to a prediction whose rows wait for their labels under these ids."""
    published, rows = model.published, SAMPLES.X[: len(ids)]
    response = {
        "prediction": published.predict("asset", published.head_rows(rows)).prediction,
        "sequence": published.sequence,
        "epoch": published.epoch,
        "head": "asset",
    }
    return answer_to(bench, WaitingRowsRequest(model, list(ids), rows, response, Future(), 0.0))


def label(bench: Bench, model: Model, *ids: str) -> list[str]:
    """What becomes of labels that come for these ids."""
    labels = LateLabels(list(ids), SAMPLES.y[: len(ids)])
    answer = answer_to(bench, LabelRequest(model, "asset", labels, Future(), 0.0))
    status: list[str] = answer["results"]["status"]
    return status


class TestCommitsInDoubt:
    def test_large_request_beside_one_is_learned_once(
        self, bench: Bench, system_calls: SystemCalls
    ):
        a, b = bench.create(SPEC, "a"), bench.create(SPEC, "b")
        learn(bench, a, key=b"k")  # its answer is written with the next key
        bench.writer.begin([asked(a, LARGE)])
        with system_calls.failing("sync", LOG):
            assert isinstance(answer_to_begun(bench, asked(b, SAMPLES, b"k")), InDoubt)
        answer_to_begun(bench, asked(b, SAMPLES))
        while bench.writer.busy:
            bench.writer.go_on()
        assert a.published.sequence == 3001
        assert model_in(revived(bench), "a").published.sequence == 3001

    def test_broken_model_learns_nothing_more(
        self, bench: Bench, system_calls: SystemCalls, monkeypatch: pytest.MonkeyPatch
    ):
        a, b = bench.create(SPEC, "a"), bench.create(SPEC, "b")
        learn(bench, a, key=b"k")
        with monkeypatch.context() as patch:
            patch.setattr(Learner, "absorb", _fail)
            learn(bench, a)
        assert a.broken
        before = a.published
        with system_calls.failing("sync", LOG):
            learn(bench, b, key=b"k")
        learn(bench, b)
        assert a.published is before

    def test_challengers_learn_on_after_one(self, bench: Bench, system_calls: SystemCalls):
        champion = bench.create(SPEC, "a")
        challenger = follower(bench, champion)
        learn(bench, champion)
        with system_calls.failing("sync", LOG), pytest.raises(Refusal):
            bench.writer.snapshots.start(challenger)
        work_off(bench.writer, [])
        bench.writer.challengers.catch_up(challenger)
        assert challenger.published.sequence == champion.published.sequence

    def test_same_key_again_has_an_unknown_outcome(self, bench: Bench, system_calls: SystemCalls):
        model = bench.create(SPEC)
        with system_calls.failing("sync", LOG):
            first = learn(bench, model, key=b"k")
            again = learn(bench, model, key=b"k")
        assert first.outcome == "unknown"
        assert again.outcome == "unknown"


def answer_to_begun(bench: Bench, request: LearnRequest) -> Any:
    """The answer to a small request, while large ones of other models wait for their turns."""
    bench.writer.begin([request])
    return next(result for answer, result in bench.replies if answer is request.waiter)


def _fail(*_: Any) -> None:
    raise RuntimeError("no memory is left")


class TestNumbersOfModels:
    @pytest.mark.parametrize("first", [1, 2, 3])
    def test_upload_in_doubt_leaves_nothing_to_the_next_model(
        self, bench: Bench, system_calls: SystemCalls, first: int
    ):
        with system_calls.failing("sync", LOG, first=first), suppress(StorageFailed):
            upload(bench, "lost", OTHER, 50)
        self._check_own(bench)

    def test_clean_up_that_fails_leaves_nothing_to_the_next_model(
        self, bench: Bench, system_calls: SystemCalls
    ):
        system_calls.fail("unlink", "*snapshots*")
        system_calls.fail("rename", "*.deleted")
        with system_calls.failing("sync", "*snapshots/1"), pytest.raises(StorageFailed):
            upload(bench, "lost", OTHER, 50)
        self._check_own(bench)

    def _check_own(self, bench: Bench) -> None:
        model = bench.create(SPEC)
        learn(bench, model)
        after = model_in(revived(bench), "m")
        assert after.published.sequence == 1
        assert after.spec == read_papers_spec(SPEC)

    def test_snapshot_of_another_creation_is_set_aside(self, bench: Bench):
        one, other = bench.create(SPEC, "a"), bench.create(OTHER, "b")
        learn(bench, one, 1)
        learn(bench, other, 50)
        bench.snapshot(other)
        folder = bench.data / "snapshots"
        (folder / str(one.id)).mkdir()
        (there,) = (folder / str(other.id)).glob(SNAPSHOTS)
        (folder / str(one.id) / there.name).write_bytes(there.read_bytes())
        after = model_in(revived(bench), "a")
        assert not after.broken
        assert after.published.sequence == 1
        assert after.spec == read_papers_spec(SPEC)
        assert not list((folder / str(one.id)).glob(SNAPSHOTS))


class TestRollbacks:
    def test_unloaded_model_keeps_its_keys(self, bench: Bench, system_calls: SystemCalls):
        model = bench.create(SPEC)
        first = learn(bench, model, key=b"k")
        bench.snapshot(model)
        bench.snapshot(model)
        learn(bench, model)
        bench.snapshot(model)
        bench = _unloaded(bench, system_calls)
        model = model_in(bench, "m")
        bench.writer.roll_back(model, 1)
        assert learn(bench, model, key=b"k") == {**first, "replayed": True}

    def test_unloaded_upload_keeps_what_is_learned_next(self, bench: Bench):
        model = upload(bench, "m", SPEC, 50)
        bench.kill()
        with closing(
            ReplayMarks(replays_path(bench.data))
        ) as marks:  # loading it ended two processes
            marks.leave_out(model.id, LOADING, marks.max_crashes)
        bench = Bench(bench.data)
        model = model_in(bench, "m")
        bench.writer.roll_back(model, 50)
        assert learn(bench, model)["sequence"] == 51
        assert model_in(revived(bench), "m").published.sequence == 51

    def test_durable_one_ends_the_replay_marks(self, bench: Bench):
        model = bench.create(SPEC)
        learn(bench, model)
        bench.snapshot(model)
        learn(bench, model)
        bench.kill()
        with closing(ReplayMarks(replays_path(bench.data))) as marks:
            marks.leave_out(model.id, LOADING, marks.max_crashes)
        bench = Bench(bench.data)
        model = model_in(bench, "m")
        assert "ended the server" in model.broken
        bench.writer.roll_back(model, 1)
        sequence = learn(bench, model)["sequence"]
        after = model_in(revived(bench), "m")
        assert not after.broken
        assert after.published.sequence == sequence

    def test_that_of_a_challenger_outlives_an_unreadable_snapshot(
        self, bench: Bench, system_calls: SystemCalls
    ):
        champion = bench.create(SPEC, "a")
        challenger = follower(bench, champion)
        for _ in range(2):
            learn(bench, champion, 10)
            bench.writer.challengers.catch_up(challenger)
            bench.snapshot(challenger)
        bench.kill()
        with system_calls.failing("open", f"*/{challenger.id}/*20.snapshot"):
            bench = Bench(bench.data)
        challenger = model_in(bench, "c")
        bench.writer.roll_back(challenger, 10)
        assert model_in(revived(bench), "c").rolled_back is not None

    def test_challenger_takes_no_fit_from_before_it(self, bench: Bench):
        spec = REGRESSION | {"asset": {"dimension": 8}, "semiparametric": {"tol": 0.1}}
        champion = bench.create(spec, "a")
        challenger = follower(bench, champion, spec)
        bench.learn(champion, curve(30), "semiparametric")
        bench.writer.challengers.catch_up(challenger)
        back_to = bench.snapshot(challenger)
        bench.learn(champion, curve(30, 1), "semiparametric")
        bench.writer.challengers.catch_up(challenger)
        window = bench.writer.window(challenger)
        bench.writer.serve_fit(challenger, window, fit_window(window, "1", lambda _: None))
        bench = revived(bench)
        challenger = model_in(bench, "c")
        bench.writer.roll_back(challenger, back_to)
        bench.writer.challengers.catch_up(challenger)
        assert challenger.describe()["heads"]["semiparametric"].get("fit") is None

    def test_row_predicted_after_one_takes_its_label(self, bench: Bench):
        model = bench.create(SPEC | {"pending": {"max_rows": 2}})
        learn(bench, model, 5)
        back_to = bench.snapshot(model)
        for row in "abc":
            predict(bench, model, row)
        learn(bench, model, 5)
        _, saving = bench.writer.snapshots.start(model)
        saving.result()
        bench.writer.roll_back(model, back_to)
        predict(bench, model, "d")
        bench.writer.snapshots.finish()
        bench = revived(bench)
        assert label(bench, model_in(bench, "m"), "d") == ["learned"]


def _unloaded(bench: Bench, system_calls: SystemCalls) -> Bench:
    """The next one on the directory, which could not read a single snapshot."""
    bench.kill()
    with system_calls.failing("open", SNAPSHOTS):
        return Bench(bench.data)


class TestOnlySnapshotOfAnUpload:
    """Its log says nothing of what it had learned before: without the snapshot it is not there."""

    @pytest.fixture
    def uploaded(self, bench: Bench) -> Path:
        """The snapshot of an upload in a directory that has another model, too."""
        model = upload(bench, "m", SPEC, 50)
        learn(bench, bench.create(OTHER, "o"), 3)
        bench.kill()
        (snapshot,) = (bench.data / "snapshots" / str(model.id)).glob(SNAPSHOTS)
        return snapshot

    def assert_set_aside(self, bench: Bench, snapshot: Path, why: str) -> None:
        """The model says why it learns nothing, nothing of it changes, and others learn."""
        model = model_in(bench, "m")
        assert why in model.broken
        assert isinstance(learn(bench, model), ModelBroken)
        assert learn(bench, model_in(bench, "o"))["sequence"] == 4
        bench.kill()
        assert snapshot.exists()

    def test_that_cannot_be_read_is_waited_for(
        self, bench: Bench, uploaded: Path, system_calls: SystemCalls
    ):
        with system_calls.failing("open", str(uploaded)):
            bench = Bench(bench.data)
        self.assert_set_aside(bench, uploaded, "cannot be read now")
        bench = Bench(bench.data)
        assert learn(bench, model_in(bench, "m"))["sequence"] == 51

    def test_that_cannot_be_read_is_not_exported_as_an_empty_model(
        self, bench: Bench, uploaded: Path, system_calls: SystemCalls
    ):
        with (
            system_calls.failing("open", str(uploaded)),
            pytest.raises(StartupError, match="it was at sequence 50"),
        ):
            export_model(bench.data, "m", None, lambda *_: None)
        assert export_model(bench.data, "m", None, lambda *_: None).journal_end == 50

    @pytest.mark.parametrize("marks", [True, False])
    def test_that_is_damaged_can_be_restored(self, bench: Bench, uploaded: Path, marks: bool):
        """Also where the marks of what was acknowledged are given up."""
        content = uploaded.read_bytes()
        uploaded.write_bytes(content[:-1])
        if not marks:
            recover_directory(bench.data)
        self.assert_set_aside(Bench(bench.data), uploaded, "Restore the snapshots")
        uploaded.write_bytes(content)
        bench = Bench(bench.data)
        assert learn(bench, model_in(bench, "m"))["sequence"] == 51


class TestFailedReads:
    def test_challenger_learns_on_after_one(self, bench: Bench, system_calls: SystemCalls):
        champion = bench.create(SPEC, "a")
        challenger = follower(bench, champion)
        for seed in range(4):  # more than SQLite has in memory
            bench.learn(champion, two_classes(1000, seed, 200), "asset")
        with system_calls.failing("read", LOG) as fault:
            assert not bench.writer.challengers.next_turn(challenger).blocks
        assert fault.failed
        bench.writer.challengers.catch_up(challenger)
        assert challenger.published.sequence == 4000

    def test_known_key_is_durable_during_one(self, bench: Bench, system_calls: SystemCalls):
        model = bench.create(SPEC)
        samples = two_classes(1000, 0, 200)
        bench.learn(model, samples, "asset", b"k")
        for seed in range(1, 4):  # more than SQLite has in memory
            bench.learn(model, two_classes(1000, seed, 200), "asset", b"%d" % seed)
        bench = revived(bench)
        with system_calls.failing("read", LOG) as fault:
            answer = bench.learn(model_in(bench, "m"), samples, "asset", b"k")
        assert fault.failed
        assert answer.outcome == "durable"


class TestStartsWithinASecond:
    """What is set aside has the time in its name, in seconds."""

    def test_snapshots_of_no_model_are_set_aside_twice(self, bench: Bench):
        bench.kill()
        self._take_names(bench.data / "snapshots" / "7")
        for _ in range(2):
            (bench.data / "snapshots" / "7").mkdir(parents=True)
            (bench.data / "snapshots" / "7" / "1.snapshot").write_bytes(b"kept")
            Bench(bench.data).kill()
        assert len(list(bench.data.glob("snapshots/7.aside-*"))) == 22

    def test_lost_journal_is_given_up_twice(self, bench: Bench):
        bench.kill()
        self._take_names(bench.data / "snapshots")
        for _ in range(2):
            for path in bench.data.glob("log.sqlite*"):
                path.unlink()
            folder = bench.data / "snapshots" / "7"
            folder.mkdir(parents=True)
            (folder / "00000000000000000001.snapshot").write_bytes(b"kept")
            recover_directory(bench.data)
        assert len(list(bench.data.glob("snapshots.aside-*"))) == 22

    def test_marks_of_what_was_durable_are_kept_twice(self, bench: Bench):
        learn(bench, bench.create(SPEC))
        bench.kill()
        for _ in range(2):
            (bench.data / "high-water").write_bytes(b"kept")
            forget_high_water(bench.data)
        assert len(list(bench.data.glob("high-water.aside-*"))) == 2

    def _take_names(self, path: Path) -> None:
        """Take the names for the next seconds, with something in each of them."""
        for second in range(20):
            time = datetime.now(UTC) + timedelta(seconds=second)
            taken = path.with_name(f"{path.name}.{time:aside-%Y%m%dT%H%M%S}")
            taken.mkdir(parents=True)
            (taken / "1.snapshot").write_bytes(b"before")
