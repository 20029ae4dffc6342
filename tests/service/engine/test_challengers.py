"""Challengers: they learn what their champion learns, from its log, and may take its place."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine.test_late_labels import label, predict
from tests.service.specs import read_papers_spec
from tests.service.streams import part, three_classes
from tests.service.writer_bench import Bench, state_of
from wolfstream.service.errors import Invalid, ModelExists, NotFollowing
from wolfstream.service.model.live import Model
from wolfstream.service.process_settings import Threads
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.following import Start
from wolfstream.service.storage.data_directory import forget_high_water

SPEC: dict[str, Any] = {"working_set": {"max_size": 60}, "asset": None}
OTHER: dict[str, Any] = {"working_set": {"max_size": 20, "C": 3.0}, "asset": None}
SAMPLES = three_classes(300)
ROWS = three_classes(20, 9).X


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "data")


@pytest.fixture
def champion(bench: Bench) -> Model:
    return bench.create(SPEC, "a")


def follow(
    bench: Bench, champion: Model, spec: Any = OTHER, start: Start = "empty", name: str = "b"
) -> Model:
    return bench.writer.challengers.make(name, champion, read_papers_spec(spec), start)[0]


def learn(bench: Bench, model: Model, start: int, stop: int, step: int = 23) -> None:
    """Post a part of the stream in pieces, each of which is a block."""
    for begin in range(start, stop, step):
        bench.learn(model, part(SAMPLES, begin, min(begin + step, stop)))


def catch_up(bench: Bench, model: Model) -> None:
    """Let a challenger learn what its champion has, as the worker does."""
    challengers = bench.writer.challengers
    while (turn := challengers.next_turn(model)).blocks:
        challengers.learn(model, turn, lambda: True)


def found(bench: Bench, name: str) -> Model:
    model = bench.writer.models.get(name)
    assert model is not None
    return model


def test_it_is_what_a_model_is_that_was_sent_the_same(bench: Bench, champion: Model) -> None:
    """Bit for bit, whenever it learns them."""
    challenger, sent = follow(bench, champion), bench.create(OTHER, "c")
    learn(bench, champion, 0, 100)
    catch_up(bench, challenger)
    learn(bench, champion, 100, 300)
    learn(bench, sent, 0, 100)
    learn(bench, sent, 100, 300)
    assert challenger.lag > 0
    catch_up(bench, challenger)
    assert challenger.lag == 0
    assert challenger.published.sequence == 300
    assert state_of(challenger, ROWS) == state_of(sent, ROWS)


def test_weights_and_late_labels_come_with_the_log(bench: Bench, champion: Model) -> None:
    challenger, sent = follow(bench, champion), bench.create(OTHER, "c")
    weighted = part(SAMPLES, 0, 50)._replace(weight=np.linspace(0.5, 2.0, 50))
    bench.learn(champion, weighted)
    ids = list(range(10))
    predict(bench, champion, ids, SAMPLES.X[50:60])
    assert label(bench, champion, ids, SAMPLES.y[50:60])["learned"] == 10
    bench.learn(sent, weighted)
    bench.learn(sent, part(SAMPLES, 50, 60))
    catch_up(bench, challenger)
    assert state_of(challenger, ROWS) == state_of(sent, ROWS)


class TestStarts:
    def test_empty_begins_where_its_champion_is(self, bench: Bench, champion: Model) -> None:
        learn(bench, champion, 0, 100)
        challenger, sent = follow(bench, champion), bench.create(OTHER, "c")
        assert challenger.published.sequence == 100
        learn(bench, champion, 100, 200)
        learn(bench, sent, 100, 200)
        catch_up(bench, challenger)
        assert state_of(challenger, ROWS) == state_of(sent, ROWS)

    def test_state_is_the_champions(self, bench: Bench, champion: Model) -> None:
        learn(bench, champion, 0, 100)
        challenger = follow(bench, champion, SPEC, "state")
        assert state_of(challenger, ROWS) == state_of(champion, ROWS)
        with pytest.raises(Invalid) as refused:
            follow(bench, champion, SPEC | {"kernel": {"type": "linear"}}, "state", "c")
        assert refused.value.errors[0]["pointer"] == "/kernel"

    def test_samples_are_those_that_the_log_holds(self, bench: Bench, champion: Model) -> None:
        learn(bench, champion, 0, 100)
        challenger, sent = follow(bench, champion, start="samples"), bench.create(OTHER, "c")
        learn(bench, sent, 0, 100)
        catch_up(bench, challenger)
        assert state_of(challenger, ROWS) == state_of(sent, ROWS)


class TestRestart:
    def test_it_goes_on_where_its_snapshot_was(self, bench: Bench, champion: Model) -> None:
        """Bit for bit, also where the newest snapshot is damaged: a checkpoint keeps its place."""
        challenger = follow(bench, champion)
        learn(bench, champion, 0, 100)
        catch_up(bench, challenger)
        bench.snapshot(challenger)
        learn(bench, champion, 100, 200)
        catch_up(bench, challenger)
        bench.snapshot(challenger)
        newest = Path(bench.storage.snapshots.name(challenger.id, challenger.published.sequence))
        learn(bench, champion, 200, 300)
        catch_up(bench, challenger)
        before = state_of(challenger, ROWS), challenger.following
        for damage in (False, True):
            if damage:
                newest.write_bytes(b"damaged")
            bench = bench.restarted()
            challenger = found(bench, "b")
            assert challenger.lag == (200 if damage else 100)
            catch_up(bench, challenger)
            assert state_of(challenger, ROWS) == before[0]
            assert challenger.following == before[1]

    def test_the_log_is_kept_for_it(self, bench: Bench, champion: Model) -> None:
        """Also behind snapshots of its champion; once it has its own, it is dropped."""
        challenger, journal = follow(bench, champion), bench.storage.journal
        for end in (100, 200, 300):
            learn(bench, champion, end - 100, end, 100)
            bench.snapshot(champion)
        assert journal.reader(champion.id).begin() == 0
        catch_up(bench, challenger)
        for _ in range(2):
            bench.learn(champion, part(SAMPLES, 0, 10))
            catch_up(bench, challenger)
            bench.snapshot(challenger)
            bench.snapshot(champion)
        assert (journal.reader(champion.id).begin() or 0) >= 300

    def test_without_a_snapshot_it_is_broken_and_others_go_on(
        self, bench: Bench, champion: Model
    ) -> None:
        challenger = follow(bench, champion)
        learn(bench, champion, 0, 50)
        for sequence in bench.storage.snapshots.sequences(challenger.id):
            Path(bench.storage.snapshots.name(challenger.id, sequence)).unlink()
        bench = bench.restarted()
        assert "no complete snapshot" in found(bench, "b").broken
        assert not found(bench, "a").broken

    def test_its_blocks_are_learned_with_the_threads_that_the_champion_had(
        self, tmp_path: Path
    ) -> None:
        """Which a matrix product's last bits depend on; another number is set for them alone."""
        bench = Bench(tmp_path / "threads", threads=2)
        champion = bench.create(SPEC, "a")
        follow(bench, champion)
        learn(bench, champion, 0, 50, 25)
        bench = bench.restarted()
        learn(bench, found(bench, "a"), 50, 100, 25)
        used = list[int]()
        threads = bench.writer._threads
        bench.writer._threads = Noting(threads, used)
        catch_up(bench, found(bench, "b"))
        assert found(bench, "b").lag == 0
        assert used == [2, 1, 2, 1]

    def test_ahead_of_its_champion_it_is_broken(self, bench: Bench, champion: Model) -> None:
        """As where the journal has lost its end, which was given up."""
        challenger = follow(bench, champion)
        learn(bench, champion, 0, 100, 25)
        catch_up(bench, challenger)
        bench.snapshot(challenger)
        bench.storage.journal._file.run("DELETE FROM log WHERE model = ?", (champion.id,))
        bench.kill()
        forget_high_water(bench.data)
        bench = Bench(bench.data)
        assert "only to 0" in found(bench, "b").broken
        assert bench.writer.challengers.next_turn(found(bench, "b")).blocks == []


class Noting:
    """Notes the numbers of threads that are set."""

    def __init__(self, threads: Threads, used: list[int]) -> None:
        self._threads, self._used = threads, used

    def use(self, count: int) -> None:
        self._used.append(count)
        self._threads.use(count)

    def using(self, count: int) -> Any:
        self._used.append(count)
        return self._threads.using(count)


class TestChampions:
    def test_a_rollback_leaves_those_that_follow(self, bench: Bench, champion: Model) -> None:
        challenger = follow(bench, champion)
        learn(bench, champion, 0, 100)
        bench.snapshot(champion)
        learn(bench, champion, 100, 200)
        bench.writer.history.roll_back(champion, 100)
        learn(bench, champion, 200, 300)
        sent = bench.create(OTHER, "c")
        for start in (0, 100, 200):
            learn(bench, sent, start, start + 100)
        catch_up(bench, challenger)
        assert state_of(challenger, ROWS) == state_of(sent, ROWS)
        assert challenger.following.comparison.samples == 100  # with what the champion is since

    def test_a_deletion_frees_those_that_follow(self, bench: Bench, champion: Model) -> None:
        challenger = follow(bench, champion)
        learn(bench, champion, 0, 100)
        catch_up(bench, challenger)
        before = state_of(challenger, ROWS)
        bench.writer.delete(champion)
        assert challenger.champion is None
        bench = bench.restarted()
        challenger = found(bench, "b")
        assert state_of(challenger, ROWS) == before
        assert challenger.describe()["follows"] is None
        assert bench.learn(challenger, part(SAMPLES, 100, 110))["sequence"] == 110


class TestPassingOver:
    def test_what_its_spec_cannot_take(self, bench: Bench, champion: Model) -> None:
        challenger = follow(bench, champion, OTHER | {"classes": ["a", "b"]})
        labels = ["a", "b"] * 10
        bench.learn(champion, Samples(SAMPLES.X[:20], labels))
        bench.learn(champion, Samples(SAMPLES.X[20:25], ["c"] * 5))
        bench.learn(champion, Samples(SAMPLES.X[25:45], labels))
        catch_up(bench, challenger)
        follows = challenger.describe()["follows"]
        assert challenger.published.sequence == 45
        assert follows["passed_over"] == 5
        assert "classes" in follows["reason"]


class TestPromotion:
    @pytest.fixture
    def challenger(self, bench: Bench, champion: Model) -> Model:
        challenger = follow(bench, champion)
        learn(bench, champion, 0, 200)
        return challenger

    def promote(self, bench: Bench, champion: Model, challenger: Model) -> dict[str, Any]:
        return bench.writer.promotion.promote(champion, challenger)

    def test_both_are_what_the_other_was(
        self, bench: Bench, champion: Model, challenger: Model
    ) -> None:
        """Also after a kill; it catches up first."""
        before = state_of(champion, ROWS)
        told = self.promote(bench, champion, challenger)
        assert told["rolled_back"]["of"] == "b"
        assert told["sequence"] == 200
        assert champion.spec.working_set is not None
        assert champion.spec.working_set.max_size == 20
        promoted = state_of(champion, ROWS)
        assert state_of(challenger, ROWS) == before != promoted
        bench = bench.restarted()
        assert state_of(found(bench, "a"), ROWS) == promoted
        assert state_of(found(bench, "b"), ROWS) == before

    def test_both_go_on_as_they_would_have(
        self, bench: Bench, champion: Model, challenger: Model
    ) -> None:
        self.promote(bench, champion, challenger)
        bench.learn(champion, part(SAMPLES, 200, 250))
        catch_up(bench, challenger)
        went_on = state_of(champion, ROWS), state_of(challenger, ROWS)
        again = bench.restarted()
        catch_up(again, found(again, "b"))
        assert (state_of(found(again, "a"), ROWS), state_of(found(again, "b"), ROWS)) == went_on
        again.learn(found(again, "a"), part(SAMPLES, 250, 300))
        assert found(again, "b").champion is found(again, "a")

    def test_a_rollback_undoes_it(self, bench: Bench, champion: Model, challenger: Model) -> None:
        before = state_of(champion, ROWS)
        self.promote(bench, champion, challenger)
        bench.learn(champion, part(SAMPLES, 200, 250))
        bench.writer.history.roll_back(champion, 200)
        assert state_of(champion, ROWS) == before
        assert champion.spec == read_papers_spec(SPEC)
        bench = bench.restarted()
        assert state_of(found(bench, "a"), ROWS) == before
        assert found(bench, "a").spec == read_papers_spec(SPEC)

    def test_rows_that_wait_stay_with_the_name(
        self, bench: Bench, champion: Model, challenger: Model
    ) -> None:
        predict(bench, champion, list("vwxyz"), SAMPLES.X[200:205])
        self.promote(bench, champion, challenger)
        bench = bench.restarted()
        told = label(bench, found(bench, "a"), list("vwxyz"), SAMPLES.y[200:205])
        assert told["results"]["status"] == ["learned"] * 5

    def test_only_a_challenger_is_promoted(self, bench: Bench, champion: Model) -> None:
        with pytest.raises(NotFollowing):
            self.promote(bench, champion, bench.create(OTHER, "c"))


class TestRefusals:
    def test_no_circles(self, bench: Bench, champion: Model) -> None:
        challenger = follow(bench, champion)
        for name, followed in (("c", challenger), ("a", champion)):
            with pytest.raises(Invalid) as refused:
                follow(bench, followed, name=name)
            assert refused.value.errors[0]["pointer"] == "/follows"

    def test_of_another_task(self, bench: Bench, champion: Model) -> None:
        with pytest.raises(Invalid) as refused:
            follow(bench, champion, {"task": "regression"})
        assert refused.value.errors[0]["pointer"] == "/task"

    def test_the_same_again_is_found(self, bench: Bench, champion: Model) -> None:
        challenger = follow(bench, champion)
        assert follow(bench, champion) is challenger
        with pytest.raises(ModelExists):
            follow(bench, champion, SPEC)
