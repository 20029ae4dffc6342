"""Kinds of experts: what a bank walks through, and what a new kind needs."""

import numpy as np
import pytest

from wolfstream.solver.adaptive import learners
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.diagonal import DIAGONAL
from wolfstream.solver.adaptive.experts import ExpertsBeside, Kind
from wolfstream.solver.adaptive.learners import BESIDE, LearnersView
from wolfstream.solver.adaptive.merge import merge
from wolfstream.solver.adaptive.view import predict_classes

WIDE = 300


class Frequencies(ExpertsBeside):
    """Scores each class by how often it came, whatever the row."""

    def __init__(self):
        self.kinds = [{"learner": "frequencies"}]
        self.counts = np.zeros(1)

    @property
    def nbytes(self):
        return self.counts.nbytes

    def meet(self, classes):
        late = classes + 1 - len(self.counts)
        self.counts = np.concatenate([self.counts, np.repeat(self.counts[-1:], late)])

    def absorb(self, rows, Y, weight):
        del rows, weight
        before = np.cumsum(np.concatenate([self.counts[None], Y]), axis=0)
        self.counts = before[-1]
        return before[:-1, None]

    def view(self):
        return self.counts.copy()

    def state(self):
        return {"frequencies": self.counts.copy()}

    def restore(self, state):
        self.counts = np.array(state["frequencies"])

    def merge(self, each, orders, share):
        del share
        for other, order in zip(each, orders, strict=True):
            np.add.at(self.counts, order[: len(other.counts) - 1], other.counts[:-1])


def scores(counts, Phi):
    return np.tile(counts, (len(Phi), 1, 1))


FREQUENCIES = Kind("texts", "features", lambda _: Frequencies(), lambda _: 1, scores)


def samples(n=100, columns=3):
    random = np.random.default_rng(7)
    X = random.normal(size=(n, columns))
    y = (random.random(n) < 0.3).astype(np.int64)
    y[:2] = 0, 1
    return X, y, random.integers(0, 4, (n, 2)).astype(float)


def test_fields_of_views_are_the_kinds_beside():
    assert LearnersView._fields[-len(BESIDE) :] == tuple(kind.name for kind in BESIDE)


@pytest.mark.parametrize("columns", [3, WIDE])
def test_places_of_experts_follow_each_other(columns):
    bank = AdaptiveClassifier(columns, texts=2)
    places = [bank.learners.place_of(experts) for experts in bank.learners.each]
    assert [place.start for place in places] == [0, *(place.stop for place in places[:-1])]
    assert places[-1].stop == bank.learners.count == len(bank.learners.kinds)
    X, y, codes = samples(columns=columns)
    bank.absorb(X, y, codes=codes)
    view = bank.learners.view()
    bayes = bank.learners.bayes
    assert view.bayes is None or view.bayes_place == bank.learners.place_of(bayes)
    assert [place for _, _, place in view.beside] == places[-len(view.beside) :]


@pytest.mark.parametrize("columns", [3, WIDE])
def test_each_restores_what_it_saves(columns):
    X, y, codes = samples(columns=columns)
    bank, fresh = (AdaptiveClassifier(columns, texts=2) for _ in range(2))
    bank.absorb(X, y, codes=codes)
    for experts, restored in zip(bank.learners.each, fresh.learners.each, strict=True):
        restored.restore(experts.state())
        again = restored.state()
        assert again.keys() == experts.state().keys()
        for name, array in experts.state().items():
            np.testing.assert_array_equal(again[name], array)
        assert restored.nbytes > 0
        assert restored.kinds == experts.kinds


class TestNewKind:
    @pytest.fixture(autouse=True)
    def in_the_list(self, monkeypatch):
        monkeypatch.setattr(learners, "BESIDE", (DIAGONAL, FREQUENCIES))

    def test_learns_and_weighs(self):
        X, y, _ = samples()
        bank = AdaptiveClassifier(3)
        bank.absorb(X, y)
        (experts,) = (one for one in bank.learners.each if isinstance(one, Frequencies))
        assert experts.counts.tolist() == [(y == 0).sum(), (y == 1).sum(), 0.0]
        expert_weights = bank.expert_weights()
        assert {"learner": "frequencies"} in expert_weights.kinds
        assert expert_weights.weight[expert_weights.kinds.index({"learner": "frequencies"})] > 0.0

    def test_a_view_says_what_the_next_answer_is(self):
        X, y, _ = samples()
        bank = AdaptiveClassifier(3)
        bank.absorb(X[:99], y[:99])
        said = predict_classes(bank.view(), X[99:]).probability
        np.testing.assert_array_equal(bank.absorb(X[99:], y[99:]).probability, said)

    def test_a_restored_bank_goes_on_bit_for_bit(self):
        X, y, _ = samples()
        bank, twin = AdaptiveClassifier(3), AdaptiveClassifier(3)
        bank.absorb(X[:70], y[:70])
        twin.restore(bank.state())
        answers = [one.absorb(X[70:], y[70:]).probability for one in (bank, twin)]
        np.testing.assert_array_equal(*answers)

    def test_banks_merge(self):
        X, y, _ = samples()
        parts = [AdaptiveClassifier(3) for _ in range(2)]
        parts[0].absorb(X[:50], y[:50])
        parts[1].absorb(X[50:], y[50:] if y[50] == 0 else 1 - y[50:])
        places = [np.arange(2), np.arange(2) if y[50] == 0 else np.array([1, 0])]
        merged = merge(parts, places, AdaptiveClassifier(3))
        (experts,) = (one for one in merged.learners.each if isinstance(one, Frequencies))
        assert experts.counts[:2].tolist() == [(y == 0).sum(), (y == 1).sum()]
