"""Predicts prepared rows with the default model in one compiled call.

    vote of the working set  ->  shared features  ->  scores of the bank's learners
        ->  temperatures, stackers and fixed share

The heads of a view compute the same one after another by the same functions, but calls from Python
take several times as long as the arithmetic. A row gets the same bits alone and among others.

A model has a chain if its rows are dense and narrow, both heads know the same classes, and no
learner of the bank sees more than the shared features and codes of texts, whose scores are computed
before the call; `chain_of` returns None for all others.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.bank import BankLearnerView
from wolfstream.solver.adaptive.combination import Combination, combine_row, new_combination
from wolfstream.solver.adaptive.features import transform_row
from wolfstream.solver.adaptive.learners import RowLearners, row_learners, score_row
from wolfstream.solver.adaptive.naive_bayes import NO_BAYES
from wolfstream.solver.adaptive.neighbours import Search, no_neighbours, search_for
from wolfstream.solver.adaptive.view import ClassAnswers, ClassView
from wolfstream.solver.arrays import Float64Array, plain
from wolfstream.solver.compiled import compiled
from wolfstream.solver.kernels.row_values import StoredRows
from wolfstream.solver.packed_arrays import Words, empty_words, pack, type_key, unpack
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.stream.calibrated_classifier import CalibratedClassifierView
from wolfstream.solver.stream.calibrated_regressor import CalibratedRegressorView
from wolfstream.solver.stream.paper_learners import SetLearnerView
from wolfstream.solver.stream.votes import HeadAnswer
from wolfstream.solver.working_set.auto_widths import WIDEST, TimedView
from wolfstream.solver.working_set.predictions import (
    Expansion,
    VoteWork,
    expansion_of,
    vote_row,
    vote_work,
)


class ChainArrays(NamedTuple):
    """The arrays that a chain reads."""

    expansion: Expansion  # of the working set
    time: float  # the time coordinate of the next sample
    frequencies: Float64Array  # (d, m) of the shared features
    learners: RowLearners
    combination: Combination
    awake: NDArray[np.bool_]  # (E,) which experts have scores
    voter: int  # the number of the working set among the experts


class _Work(NamedTuple):
    """Reused memory for one row."""

    x: Float64Array  # (d + 1,) the row and its time
    vote: VoteWork
    phi: Float64Array  # (D,)
    scores: Float64Array  # (E, K)
    search: Search
    p: Float64Array  # (E + S, K) see `combine_row`
    speaks: NDArray[np.bool_]  # (E + S,) see `combine_row`


class Chain:
    """The chain of one view. Many threads may use it at a time.

    arrays: what it reads.
    words: the same arrays, packed for compiled code.
    view: of the bank.
    """

    def __init__(self, arrays: ChainArrays, words: Words, view: ClassView) -> None:
        self._arrays, self._words = arrays, words
        self._classes, self._beside = view.n_classes, view.learners.beside
        # Reused memory that no thread uses at present.
        self._idle: list[tuple[_Work, Words]] = []

    def predict(self, X: Float64Array, codes: Float64Array | None) -> ClassAnswers:
        """Return the predictions of the bank for prepared rows.

        X: (n, d).
        codes: (n, texts) of the rows; None without texts.
        """
        probability = np.zeros((len(X), self._classes))
        beside, place = np.empty((len(X), 0, self._classes)), 0
        for kind, experts, experts_place in self._beside if codes is not None else ():
            scores, place = kind.scores(experts, codes), experts_place.start
            beside = np.ascontiguousarray(scores[:, :, : self._classes])
        try:
            work = self._idle.pop()
        except IndexError:
            work = self._new_work()
        _predict(self._words, work[1], plain(X), beside, place, probability)
        self._idle.append(work)
        return ClassAnswers(probability.argmax(axis=1), probability)

    def _new_work(self) -> tuple[_Work, Words]:
        chain, words = self._arrays, empty_words()
        work = _work_of(chain, self._classes)
        _hold_work(words, work)
        return work, words


def chain_of(
    name: str, voter: CalibratedClassifierView, bank: CalibratedClassifierView
) -> Chain | None:
    """Return the chain of two heads that can predict; None if they have none.

    name: of the voter.
    voter: a view of a working set, the only head with a vote in the bank.
    bank: a view of the bank.
    """
    set_view, bank_view = voter.learner, bank.learner
    if not isinstance(set_view, SetLearnerView) or not isinstance(bank_view, BankLearnerView):
        return None
    timed, model = set_view.view, bank_view.model
    if not isinstance(timed, TimedView) or not isinstance(model, ClassView):
        return None
    if name not in bank.voters or voter.classes != bank.classes or not _is_plain(model):
        return None
    expansion = expansion_of(timed.set, WIDEST) if timed.set.coupled else None
    if expansion is None:
        return None
    first = len(model.combination.beta) - len(bank.voters)
    awake = np.ones(len(model.combination.beta), np.bool_)
    awake[first:] = [voter_name == name for voter_name in bank.voters]
    arrays = ChainArrays(
        expansion,
        timed.widths.scale * (timed.now - timed.widths.centre),
        model.inputs.features.W,
        row_learners(model.learners),
        model.combination,
        awake,
        first + bank.voters.index(name),
    )
    words = empty_words()
    _hold_chain(words, arrays)
    return Chain(arrays, words, model) if words[0] == _CHAIN_KEY else None


class ChainOnDemand:
    """The chain of two heads, built on first use: most views are replaced before they predict.

    Arguments are those of `chain_of`.
    """

    def __init__(
        self,
        name: str,
        voter: CalibratedClassifierView | CalibratedRegressorView | None,
        bank: CalibratedClassifierView | CalibratedRegressorView,
    ) -> None:
        self._heads = name, voter, bank
        # Empty before the first use.
        self._chains: list[Chain | None] = []

    def get(self) -> Chain | None:
        """Return the chain or None; threads that call this at once may build it several times."""
        if not self._chains:
            name, voter, bank = self._heads
            chain = None
            if isinstance(voter, CalibratedClassifierView) and isinstance(
                bank, CalibratedClassifierView
            ):
                chain = chain_of(name, voter, bank)
            self._chains.append(chain)
        return self._chains[0]


def is_compiled() -> bool:
    """Return whether this process has compiled the code of chains."""
    predict: Any = _predict
    return bool(predict.overloads)


def _is_plain(bank: ClassView) -> bool:
    """Return whether learners of a bank see a row's shared features, and one kind its codes."""
    kinds = [kind for kind, _, _ in bank.learners.beside]
    narrow = bank.inputs.moments is None and len(kinds) <= 1
    return narrow and all(kind.sees == "codes" for kind in kinds)


def chained(
    chain: Chain, bank: CalibratedClassifierView | CalibratedRegressorView, rows: HeadRows
) -> HeadAnswer:
    """Return the answer of the bank's head to dense rows, computed by a chain.

    chain: of the bank.
    bank: a view of its head.
    rows: n dense rows.
    """
    assert isinstance(rows.X, np.ndarray)
    assert isinstance(bank, CalibratedClassifierView)
    assert isinstance(bank.learner, BankLearnerView)
    answers = chain.predict(rows.X, rows.codes)
    finished = bank.learner.finished(answers, rows.raw, in_turn=rows.in_turn)
    return HeadAnswer(bank.classes, [finished])


def _work_of(chain: ChainArrays, classes: int) -> _Work:
    c, learners = chain.combination, chain.learners
    d, m = chain.frequencies.shape
    stackers, experts = c.a.shape
    return _Work(
        x=np.empty(d + 1),
        vote=vote_work(chain.expansion),
        phi=np.empty(1 + d + 2 * m),
        scores=np.zeros((experts, classes)),
        search=search_for(learners.memory, learners.counts),
        p=np.empty((experts + stackers, classes)),
        speaks=np.ones(experts + stackers, np.bool_),  # stackers always do
    )


def _example() -> ChainArrays:
    """Return arrays with the types that all chains have."""
    none, whole = np.zeros(1), np.zeros((1, 1))
    codes, flags = np.zeros(1, np.int64), np.zeros(1, np.bool_)
    rows = StoredRows(whole.astype(np.float32), whole, flags, none, 1.0, 1.0)
    learners = RowLearners(none, np.zeros((1, 4), np.int64), *no_neighbours(1)[:4], NO_BAYES.W)
    return ChainArrays(
        Expansion(rows, codes, none, codes, none, none),
        0.0,
        whole,
        learners,
        new_combination(np.ones(2), [1.0]),
        flags,
        0,
    )


# Most of numba carries no types.
_typeof: Any = numba.typeof
_CHAIN = _typeof(_example())
_WORK = _typeof(_work_of(_example(), 1))
_CHAIN_KEY = type_key(_CHAIN)


@compiled
def _hold_chain(words: Words, chain: ChainArrays) -> None:
    pack(words, chain)


@compiled
def _hold_work(words: Words, work: _Work) -> None:
    pack(words, work)


@compiled
def _predict(
    chain_words: Words,
    work_words: Words,
    X: Float64Array,
    beside: Float64Array,
    place: int,
    out: Float64Array,
) -> None:
    """Add the probabilities of prepared rows X (n, d) to zeros (n, K).

    beside: (n, experts, K) scores of other experts, from `place` on.
    """
    chain, work = unpack(chain_words, _CHAIN), unpack(work_words, _WORK)
    x, phi, scores, d = work.x, work.phi, work.scores, X.shape[1]
    for i in range(len(X)):
        for k in range(d):
            x[k] = X[i, k]
        x[d] = chain.time
        vote_row(chain.expansion, x, work.vote, scores[chain.voter])
        transform_row(chain.frequencies, X[i], phi)
        score_row(chain.learners, phi, work.search, scores)
        for e in range(beside.shape[1]):
            for k in range(beside.shape[2]):
                scores[place + e, k] = beside[i, e, k]
        p, speaks = work.p, work.speaks
        combine_row(chain.combination, scores, chain.awake, len(out[i]), p, speaks, out[i])
