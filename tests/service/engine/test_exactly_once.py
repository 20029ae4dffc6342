"""Exactly once whatever happens between: the writer is cut off, snapshots come and are damaged.

The writer alone, in this process; a crash is a writer that is left as it is. What a real server
does when it is killed is in `test_exactly_once_server`.
"""

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.service.specs import read_papers_spec
from tests.service.streams import curve, part, two_classes
from tests.service.writer_bench import work_off
from wolfstream.service.engine.idempotency import frame_key, header_key
from wolfstream.service.engine.queue_items import LearnRequest
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import KeyReused, NotYetLearned, StartupError, StorageFailed
from wolfstream.service.heads.kinds import fit_window
from wolfstream.service.model.learner import Learner
from wolfstream.service.settings import Settings
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.sqlite_log import SqliteTerm
from wolfstream.service.storage.term import Part, Term

SPEC = {"working_set": {"max_size": 20}, "asset": {"dimension": 4}}
SAMPLES = two_classes(60)


class Killed(BaseException):
    """The process ends here."""


class Bench:
    """A writer over a directory, that can be cut off and started again."""

    def __init__(self, data: Path, **more: Any) -> None:
        self.settings = Settings(data=data, **more)
        self.start()
        self.model, _ = self.writer.new_models.create("m", read_papers_spec(SPEC))

    def start(self) -> None:
        self.replies: dict[Any, Any] = {}
        self.storage = open_storage(self.settings.data, self.settings.snapshots)
        self.writer = Writer(
            self.storage, self.settings, lambda given, _: self.replies.update(given), math.inf
        )
        self.writer.recover(lambda _: None)
        if self.writer.models.get("m"):
            self.model = self.writer.models.get("m")

    def kill(self) -> None:
        """What is on disk stays; a snapshot that was begun is on disk too."""
        self.writer.snapshots._saver.shutdown()
        self.storage.close()

    def crash(self) -> None:
        self.kill()
        self.start()

    def restart(self) -> None:
        self.writer.close()
        self.start()

    def close(self) -> None:
        self.writer.close()

    def damage_newest_snapshot(self) -> None:
        files = sorted(self.settings.data.glob("snapshots/*/*.snapshot"))
        files[-1].write_bytes(b"damaged")

    def send(self, *asked: tuple[Any, ...]) -> list[Any]:
        """What a group of (key, number of the samples[, head]) is answered, None if not at all."""
        group = []
        for key, number, *head in asked:
            samples = part(SAMPLES, 3 * number, 3 * number + 3)
            future = Future()
            request_key = header_key([key], "") if key else None
            head_name = head[0] if head else "working_set"
            group.append(LearnRequest(self.model, head_name, samples, future, 0.0, request_key))
        work_off(self.writer, list(group))
        return [self.replies.get(request.waiter) for request in group]

    def ask(self, key: str | None, number: int, *head: str) -> Any:
        (answer,) = self.send((key, number, *head))
        return answer


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches, each over a directory of its own."""
    with contextlib.ExitStack() as stack:

        def open_one(**more: Any) -> Bench:
            bench = Bench(Path(tempfile.mkdtemp(dir=tmp_path)), **more)
            stack.callback(bench.close)
            return bench

        yield open_one


@pytest.fixture
def bench(opened: Callable[..., Bench]) -> Bench:
    return opened()


def again(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "replayed": True}


def same(found: Any, first: dict[str, Any]) -> bool:
    """Whether an answer is a first one, given again, perhaps by a model made in the same way.

    Buffers may differ after a restart.
    """
    told = [
        {**answer, "epoch": "", "head": {**answer["head"], "bytes": 0}}
        for answer in (found, again(first))
    ]
    return bool(told[0] == told[1])


@contextlib.contextmanager
def at_commit(storage: Storage, act: Callable[[Callable[[], None]], None]) -> Iterator[None]:
    """Let something happen around the next commits of entries, keys and answers."""
    append, write = storage.journal.append, SqliteTerm.write_answers

    def appending(parts: Mapping[Term, Part], *rest: Any) -> dict[Term, StorageFailed]:
        failures: dict[Term, StorageFailed] = {}
        try:
            act(lambda: failures.update(append(parts, *rest)))
        except StorageFailed as error:
            return dict.fromkeys(parts, error)
        return failures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.journal, "append", appending)
        patch.setattr(SqliteTerm, "write_answers", lambda *given: act(lambda: write(*given)))
        yield


def killed_behind(commit: Callable[[], None]) -> None:
    commit()
    raise Killed


def disk_full(_: Callable[[], None]) -> None:
    raise StorageFailed("no space left on device")


# -- within one group --------------------------------------------------------------------


def test_duplicates_in_one_group_are_one_entry_and_have_one_answer(bench: Bench) -> None:
    first, other, second, reused, called = bench.send(
        ("k", 0), (None, 1), ("k", 0), ("k", 2), ("k", 0, "asset")
    )
    assert (first["sequence"], other["sequence"]) == (3, 6)
    assert second == again(first)
    assert isinstance(reused, KeyReused)
    assert isinstance(called, KeyReused)
    assert bench.model.published.sequence == 6
    assert len(list(bench.storage.journal.reader(bench.model.id).blocks(0))) == 1


def test_a_group_of_nothing_but_duplicates_writes_nothing(bench: Bench) -> None:
    (first,) = bench.send(("k", 0))
    with at_commit(bench.storage, disk_full):
        assert bench.send(("k", 0), ("k", 0)) == [again(first)] * 2


def test_key_of_refused_request_is_free_again(bench: Bench) -> None:
    bench.ask(None, 0)
    narrow = two_classes(3, features=3)
    requests = [
        LearnRequest(bench.model, "working_set", samples, Future(), 0.0, b"k")
        for samples in (narrow, part(SAMPLES, 3, 6))
    ]
    work_off(bench.writer, list(requests))
    refused, learned = (bench.replies[request.waiter] for request in requests)
    assert refused.slug == "invalid-samples"
    assert learned["sequence"] == 6


def test_requests_without_a_key_cost_one_statement(bench: Bench) -> None:
    statements: list[str] = []
    bench.storage.journal._file.db.set_trace_callback(statements.append)
    bench.send((None, 0), (None, 1))
    assert [text.split(" VALUES")[0] for text in statements] == ["INSERT INTO log"]
    statements.clear()
    bench.send(("k", 0), (None, 1), ("l", 2))
    assert [text.split(" VALUES")[0].split("(")[0] for text in statements] == [
        "BEGIN IMMEDIATE",
        "INSERT INTO log",
        "INSERT OR IGNORE INTO log",
        "COMMIT",
    ]


# -- what fails --------------------------------------------------------------------------


def test_what_could_not_be_logged_leaves_no_key_behind(bench: Bench) -> None:
    with at_commit(bench.storage, disk_full):
        answers = bench.send(("k", 0), ("k", 0), ("k", 1))
    assert all(isinstance(answer, StorageFailed) for answer in answers)
    assert bench.ask("k", 1)["sequence"] == 3
    bench.crash()
    assert bench.ask("k", 1)["replayed"]


def test_a_model_that_breaks_has_the_key_of_what_it_logged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "absorb", lambda *_: 1 / 0)
        assert all(isinstance(a, NotYetLearned) for a in bench.send(("k", 0), ("k", 0)))
        assert isinstance(bench.ask("k", 0), NotYetLearned)
    bench.crash()
    answer = bench.ask("k", 0)
    assert (answer["sequence"], answer["replayed"], bench.model.published.sequence) == (3, True, 3)


def test_no_snapshot_is_begun_while_answers_cannot_be_written(opened: Callable[..., Bench]) -> None:
    bench = opened(snapshot_samples=6)
    first = bench.ask("k", 0)
    with at_commit(bench.storage, disk_full):
        bench.writer.snapshots._start(bench.writer.models.learner(bench.model))
    assert bench.writer.snapshots._saving == {}
    bench.crash()
    assert same(bench.ask("k", 0), first)


# -- crashes -----------------------------------------------------------------------------


def test_killed_between_commit_and_answer(opened: Callable[..., Bench]) -> None:
    bench, without_crash = opened(), opened()
    for either in (bench, without_crash):
        either.ask("before", 0)
    with at_commit(bench.storage, killed_behind), pytest.raises(Killed):
        bench.ask("k", 1)
    bench.crash()
    first = without_crash.ask("k", 1)
    for _ in range(2):
        assert same(bench.ask("k", 1), first)
        bench.crash()
    assert bench.model.published.sequence == 6


def test_killed_behind_the_answer_and_before_it_is_written(bench: Bench) -> None:
    first = [bench.ask(None, 0), bench.ask("k", 1), bench.ask("l", 2, "asset")]
    assert len(bench.storage.journal.reader(bench.model.id).unanswered(0)) == 1
    bench.crash()
    assert bench.storage.journal.reader(bench.model.id).unanswered(0) == []
    assert same(bench.ask("k", 1), first[1])
    assert same(bench.ask("l", 2, "asset"), first[2])
    assert isinstance(bench.ask("l", 2), KeyReused)
    assert bench.model.published.sequence == 9


def test_a_window_that_was_refitted_in_between(opened: Callable[..., Bench]) -> None:
    spec = read_papers_spec({"task": "regression", "asset": None, "semiparametric": {}})
    bench = opened()
    bench.model, _ = bench.writer.new_models.create("window", spec)

    def learn() -> Any:
        request = LearnRequest(bench.model, "semiparametric", curve(20), Future(), 0.0, key("k"))
        work_off(bench.writer, [request])
        return bench.replies[request.waiter]

    first = learn()
    window = bench.writer.window(bench.model)
    bench.writer.serve_fit(bench.model, window, fit_window(window, "job", lambda _: None))
    for _ in range(2):
        assert same(learn(), first)
        bench.crash()
        bench.model = bench.writer.models.get("window")
    assert bench.model.published.sequence == 20


def test_behind_a_snapshot_that_is_newer_than_the_entry(opened: Callable[..., Bench]) -> None:
    bench = opened(snapshot_samples=3)
    first = bench.ask("k", 0)
    bench.crash()
    assert bench.model.snapshot_sequence == 3
    assert same(bench.ask("k", 0), first)
    later = []
    for i in range(1, 6):
        wait(bench.writer.snapshots._saving.values())  # one that is being written puts the next off
        later.append(bench.ask(f"k{i}", i))
    bench.crash()
    assert bench.model.snapshot_sequence == 18
    for i, answer in enumerate(later, 1):
        assert same(bench.ask(f"k{i}", i), answer)


def test_after_a_fall_back_to_the_snapshot_before(opened: Callable[..., Bench]) -> None:
    bench = opened(snapshot_samples=6)
    first = [bench.ask(f"k{i}", i) for i in range(7)]
    bench.writer.snapshots._saver.shutdown()
    bench.damage_newest_snapshot()
    bench.crash()
    for i, answer in enumerate(first):
        assert same(bench.ask(f"k{i}", i), answer)
    assert bench.model.published.sequence == 21


def test_after_a_polite_restart(bench: Bench) -> None:
    first = bench.ask("k", 0)
    bench.restart()
    assert bench.model.snapshot_sequence == 3
    assert bench.ask("k", 0) == again(first)


def test_answers_that_recovery_cannot_write_keep_the_server_from_starting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bench.ask("k", 0)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteTerm, "write_answers", lambda *_: disk_full(lambda: None))
        with pytest.raises(StartupError, match="no space left"):
            bench.crash()
    bench.storage.close()
    bench.start()
    assert same(bench.ask("k", 0), first)


# -- forgetting --------------------------------------------------------------------------


def test_oldest_keys_forgotten_in_portions(
    opened: Callable[..., Bench],
) -> None:
    bench = opened(idempotency_keys=8)
    deleted: list[str] = []
    bench.storage.journal._file.db.set_trace_callback(
        lambda text: deleted.append(text) if text.startswith("DELETE") else None
    )
    for i in range(18):
        bench.ask(f"k{i}", i)
    assert len(deleted) == 5
    kept = [i for i in range(18) if bench.writer._keys.find(bench.model.id, key(f"k{i}"))]
    assert kept == list(range(10, 18))
    bench.crash()
    assert all("replayed" in bench.ask(f"k{i}", i) for i in range(10, 18))
    assert "replayed" not in bench.ask("k0", 0)


def key(text: str) -> bytes:
    found = header_key([text], "")
    assert found is not None
    return found


def test_more_new_keys_in_one_group_than_are_kept(opened: Callable[..., Bench]) -> None:
    bench = opened(idempotency_keys=2)
    first = bench.send(*((f"k{i}", i) for i in range(6)), ("k0", 0))
    assert first[6] == again(first[0])
    assert bench.send(("k4", 4), ("k5", 5)) == [again(first[4]), again(first[5])]
    assert "replayed" not in bench.ask("k3", 3)


def test_keys_that_cannot_be_forgotten_are_kept(
    opened: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = opened(idempotency_keys=1)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteTerm, "forget_keys", lambda *_: disk_full(lambda: None))
        first = [bench.ask(f"k{i}", i) for i in range(4)]
        assert bench.ask("k0", 0) == again(first[0])
    bench.ask("k4", 4)
    assert "replayed" not in bench.ask("k0", 0)


# -- everything together -----------------------------------------------------------------

KEYS = [f"key-{i}" for i in range(12)]
requests = st.lists(
    st.tuples(
        st.sampled_from([*KEYS, None]),
        st.integers(0, 3),
        st.sampled_from(["working_set", "asset"]),
    ),
    min_size=1,
    max_size=6,
)


class ExactlyOnce(RuleBasedStateMachine):
    """Whatever is sent, cut off and started again: what is learned, and what is answered.

    told: by key, the request that was learned under it and its answer, None if that was lost.
    """

    @initialize(snapshot_samples=st.sampled_from([5, 20, 10**6]), most=st.sampled_from([3, 100]))
    def begin(self, snapshot_samples: int, most: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.bench = Bench(
            Path(self.folder.name), snapshot_samples=snapshot_samples, idempotency_keys=most
        )
        self.most = most
        self.sequence = 0
        self.told: dict[str, tuple[Any, Any]] = {}

    @rule(group=requests)
    def send(self, group: list[Any]) -> None:
        for asked, answer in zip(group, self.bench.send(*group), strict=True):
            self._judge(asked, answer)

    def _judge(self, asked: Any, answer: Any) -> None:
        name, *what = asked
        known = self.told.get(name)
        if known is None or (self._old(name) and "replayed" not in as_dict(answer)):
            if isinstance(answer, KeyReused) and known:  # it may still be remembered
                return
            self.sequence += 3
            assert "replayed" not in answer
            assert answer["learned"] == 3
            if name is not None:
                self.told.pop(name, None)
                self.told[name] = what, answer
        elif known[0] != what:
            assert isinstance(answer, KeyReused)
        elif known[1] is None:
            self.told[name] = what, {k: v for k, v in answer.items() if k != "replayed"}
            assert answer["replayed"]
        else:
            assert same(answer, known[1])

    def _old(self, name: str) -> bool:
        """Whether a key may be forgotten."""
        return name not in list(self.told)[-self.most :]

    @rule(group=requests)
    def fail_to_commit(self, group: list[Any]) -> None:
        with at_commit(self.bench.storage, disk_full):
            for (name, *what), answer in zip(group, self.bench.send(*group), strict=True):
                if not isinstance(answer, StorageFailed):
                    assert name in self.told
                    assert isinstance(answer, KeyReused) or what == self.told[name][0]

    @rule(name=st.sampled_from(KEYS), number=st.integers(0, 3))
    def be_killed_behind_the_commit(self, name: str, number: int) -> None:
        before = self.bench.model.published.sequence
        with at_commit(self.bench.storage, killed_behind), contextlib.suppress(Killed):
            self.bench.ask(name, number)
        self.bench.crash()
        if self.bench.model.published.sequence > before:
            assert name not in self.told or self._old(name)
            self.told.pop(name, None)
            self.told[name] = [number, "working_set"], None
            self.sequence += 3

    @rule()
    def crash(self) -> None:
        self.bench.crash()

    @rule()
    def restart(self) -> None:
        self.bench.restart()

    @precondition(lambda self: len(snapshots(self.bench)) > 1)
    @rule()
    def crash_and_lose_the_newest_snapshot(self) -> None:
        self.bench.writer.snapshots._saver.shutdown()
        self.bench.damage_newest_snapshot()
        self.bench.crash()

    @invariant()
    def everything_is_learned_once(self) -> None:
        assert self.bench.model.published.sequence == self.sequence
        assert not self.bench.model.broken

    def teardown(self) -> None:
        self.bench.close()
        self.folder.cleanup()


def as_dict(answer: Any) -> dict[str, Any]:
    return answer if isinstance(answer, dict) else {}


def snapshots(bench: Bench) -> list[Path]:
    return sorted(bench.settings.data.glob("snapshots/*/*.snapshot"))


ExactlyOnce.TestCase.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
test_whatever_happens = ExactlyOnce.TestCase


class TestSizeOfAnswers:
    """Answers are bounded in bytes: the oldest shrink, and none is learned twice."""

    MOST = 10_000

    def total(self, bench: Bench) -> int:
        (n_bytes,) = bench.storage.journal._file.db.execute(  # type: ignore[attr-defined]
            "SELECT coalesce(sum(length(record)), 0) FROM log "
            "WHERE kind = 'answer' AND length(record) > 256"
        ).fetchone()
        return int(n_bytes)

    def test_the_oldest_shrink(self, opened: Callable[..., Bench]) -> None:
        bench = opened(idempotency_bytes=self.MOST)
        firsts = [bench.ask(f"k{number}", number % 20) for number in range(60)]
        bench.ask(None, 0)
        bench.writer._keys.write(bench.writer.models.term(bench.model))
        assert self.total(bench) <= self.MOST
        for _ in range(2):
            oldest, newest = bench.ask("k0", 0), bench.ask("k59", 19)
            assert same(newest, firsts[-1])
            assert oldest.pop("replayed")
            assert oldest.pop("results") == {}
            assert oldest.pop("head") == {"name": "working_set"}
            kept = ("model", "sequence", "epoch", "learned")
            assert oldest == {name: firsts[0][name] for name in kept}
            assert isinstance(bench.ask("k0", 1), KeyReused)
            bench.crash()
        assert bench.model.published.sequence == 183

    def test_those_of_a_larger_bound_shrink_too(self, opened: Callable[..., Bench]) -> None:
        bench = opened()
        for number in range(60):
            bench.ask(f"k{number}", number % 20)
        bench.restart()
        assert self.total(bench) > self.MOST
        bench.settings = bench.settings.model_copy(update={"idempotency_bytes": self.MOST})
        bench.restart()
        for _ in range(2):
            bench.ask(None, 0)
        assert self.total(bench) <= self.MOST
        assert bench.ask("k0", 0)["learned"] == 3

    def test_a_full_disk_keeps_them(self, opened: Callable[..., Bench]) -> None:
        bench = opened(idempotency_bytes=0)
        first = bench.ask("k", 0)
        with at_commit(bench.storage, disk_full):
            bench.ask(None, 1)
        assert bench.ask("k", 0)["sequence"] == first["sequence"]


def test_a_key_belongs_to_the_name_of_the_api_key() -> None:
    assert header_key(["k"], "ops") == header_key(["k"], "ops")
    clients = ["", "a", "a b", 'a" b', "b"]
    header = {header_key([key], client) for client in clients for key in ("k", "b", "1")}
    frames = {
        frame_key(client, producer, number)
        for client in clients
        for producer in ("k", "b")
        for number in (1, "1")
    }
    assert len(header) == 15
    assert len(frames) == 20
    assert not header & frames
