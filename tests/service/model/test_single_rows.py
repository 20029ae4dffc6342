"""Questions about single rows that come together: the answers are those of each by itself."""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np
import pytest

from wolfstream.service.errors import InvalidSamples, Untrained
from wolfstream.service.heads.adaptive import KIND
from wolfstream.service.model import single_rows
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.questions import answer, answer_each, is_simple
from wolfstream.service.model.single_rows import QuestionAnswer, SingleRows
from wolfstream.service.samples.validation import Question, Samples
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.solver.prepare.named_rows import named_values
from wolfstream.solver.rows.recent_rows import KEPT

N, ASKED = 400, 40
X = np.random.default_rng(0).normal(size=(N + ASKED, 6))
NUMBERS = 3.0 * X[:, 0] + np.sin(X[:, 1]) + np.where(X[:, 5] > 0.5, 5.0, 0.0)
LABELS = [f"class {value}" for value in np.digitize(NUMBERS, [-1.0, 2.0])]
SPECS: dict[str, dict[str, Any]] = {
    "classes": {},
    "numbers": {"task": "regression"},
    "weighted": {"adaptive": {"class_weight": "balanced"}},
}


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    KIND.later["chain"](ModelSpec(), False)


def learner_of(spec: dict[str, Any], samples: int = N) -> Learner:
    learner = Learner(Model(1, "m", read_spec(spec)))
    for start in range(0, samples, 50):
        part = slice(start, start + 50)
        y: Any = NUMBERS[part] if spec.get("task") else LABELS[part]
        learner.absorb(learner.model.head_of["samples"], Samples(X[part], y))
    learner.publish()
    return learner


def learned(spec: dict[str, Any], samples: int = N) -> Model:
    return learner_of(spec, samples).model


def singles(**asked: Any) -> list[Question]:
    return [Question(X[i : i + 1], **asked) for i in range(N, N + ASKED)]


def alone(model: Model, questions: Sequence[Question]) -> list[QuestionAnswer]:
    return [answer(model, model.published, model.spec.serve, each) for each in questions]


def together(model: Model, questions: Sequence[Question]) -> Sequence[QuestionAnswer | Exception]:
    return answer_each(model, model.published, model.spec.serve, questions)


def simple(model: Model, question: Question, head: str | None = None) -> bool:
    name: Any = head or model.spec.serve
    return is_simple(model, model.published, name, question)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("confidence", [None, 0.8])
def test_answers_are_those_of_each_alone(spec: dict[str, Any], confidence: float | None) -> None:
    model, twin = learned(spec), learned(spec)
    questions = singles(probability="task" not in spec, confidence=confidence)
    assert all(simple(model, question) for question in questions)
    assert together(model, questions) == alone(twin, questions)
    assert model.order.counts == twin.order.counts


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_rows_of_a_table_are_answered_as_each_alone(spec: dict[str, Any]) -> None:
    """Money, dates, words and categories; some lack values, and one has an unknown name."""
    days = [f"2025-{1 + i % 12:02}-{1 + i % 28:02} 04:{i % 60:02}" for i in range(len(X))]
    rows = [
        {
            "when": days[i],
            "cost": f"${np.exp(2.0 * X[i, 0]):,.2f}",
            "kind": "abc"[int(X[i, 1] > 0.0) + int(X[i, 2] > 1.0)],
            "note": f"a {'red' if X[i, 3] > 0.0 else 'blue'} one, bought by number {i}",
        }
        for i in range(len(X))
    ]
    models = []
    for _ in range(2):
        learner = Learner(Model(1, "m", read_spec(spec)))
        for start in range(0, N, 50):
            part = slice(start, start + 50)
            y: Any = NUMBERS[part] if spec.get("task") else LABELS[part]
            samples = Samples(named_values(rows[part]), y)
            learner.absorb(learner.model.head_of["samples"], samples)
        learner.publish()
        models.append(learner.model)
    model, twin = models
    for row in rows[N::5]:
        del row["cost"]
    questions = [Question(named_values([row])) for row in rows[N:]]
    assert all(simple(model, question) for question in questions)
    assert together(model, questions) == alone(twin, questions)
    odd = [*questions[:3], Question(named_values([rows[N + 3] | {"noted": 1.0}])), questions[4]]
    answers = together(model, odd)
    assert answers == alone(twin, odd)
    slugs = [[warning["slug"] for warning in each.more.get("warnings", ())] for each in answers]
    assert slugs == [["absent-column"], [], [], ["unknown-column"], []]


def test_a_row_whose_label_before_is_known_is_answered_with_it() -> None:
    answers = []
    for ask in (alone, together):
        learner = learner_of({"temporal": "auto"})
        questions = [Question(X[:1]), *singles()]
        first = ask(learner.model, questions[:1])
        learner.absorb("working_set", Samples(X[:1], LABELS[:1]))
        learner.publish()
        answers.append([*first, *ask(learner.model, questions[1:])])
        assert learner.model.order.counts == [ASKED, 1]
    assert answers[0] == answers[1]


def test_each_gets_its_own_refusal() -> None:
    model = learned({})
    questions = [*singles()[:3], Question(np.full((1, 6), np.inf)), *singles()[3:5]]
    ragged = [Question(each.rows[:, :4]) for each in questions]
    for asked in (questions, ragged):
        for got, question in zip(together(model, asked), asked, strict=True):
            (expected,) = answer_each(model, model.published, "adaptive", [question])
            assert got == expected or repr(got) == repr(expected)


def test_a_head_that_learned_nothing_refuses_each() -> None:
    model = learned({}, 0)
    answers = together(model, singles())
    assert len(answers) == ASKED
    assert all(isinstance(each, Untrained) for each in answers)


@pytest.mark.parametrize(
    ("spec", "head"),
    [
        ({"adaptive": None}, "working_set"),  # products of matrices
        ({"kernel": {"type": "linear"}}, "adaptive"),
        ({}, "working_set"),
        ({"novelty": {}}, "adaptive"),
    ],
)
def test_other_heads_answer_each_by_itself(spec: dict[str, Any], head: str) -> None:
    assert not simple(learned(spec), singles()[0], head)


def test_a_vote_by_products_of_matrices_is_asked_for_by_itself() -> None:
    learner = learner_of({"task": "regression"})
    assert simple(learner.model, singles()[0])
    learner.absorb("asset", Samples(X[:50], NUMBERS[:50]))
    learner.publish()
    assert not simple(learner.model, singles()[0])


@pytest.mark.parametrize(
    "question",
    [
        Question(X[:2]),
        Question(X[:1], explain=1),
        Question(X[:1], costs={"class 0": {"class 1": 2.0}}),
    ],
)
def test_larger_questions_are_asked_by_themselves(question: Question) -> None:
    assert not simple(learned({}), question)


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Return a test that runs on an event loop of its own."""

    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Asked:
    """Answers with numbers, and notes which questions came together."""

    def __init__(self) -> None:
        self.groups: list[list[float]] = []

    def __call__(self, questions: Sequence[Question]) -> Sequence[QuestionAnswer | Exception]:
        self.groups.append([float(question.rows[0, 0]) for question in questions])
        return [
            InvalidSamples("negative") if value < 0.0 else QuestionAnswer([value], [], {})
            for value in self.groups[-1]
        ]


def question(value: float) -> Question:
    return Question(np.array([[value]]))


@on_a_loop
async def test_what_comes_in_one_turn_is_answered_together() -> None:
    rows, asked = SingleRows(), Asked()

    async def ask(value: float, kind: str = "a", cost: int = 1) -> Any:
        return (await rows.ask(kind, question(value), cost, asked)).prediction

    assert await asyncio.gather(*map(ask, (1.0, 2.0, 3.0))) == [[1.0], [2.0], [3.0]]
    assert await ask(4.0) == [4.0]
    assert asked.groups == [[1.0, 2.0, 3.0], [4.0]]


@on_a_loop
async def test_other_kinds_and_costs_are_answered_apart() -> None:
    rows, asked = SingleRows(), Asked()
    half = 1 + single_rows.MOST_COST // 2
    waits = [
        rows.ask("a", question(1.0), 1, asked),
        rows.ask("b", question(2.0), half, asked),
        rows.ask("b", question(3.0), half, asked),
        rows.ask("b", question(4.0), 1, asked),
    ]
    assert [each.prediction for each in await asyncio.gather(*waits)] == [
        [1.0],
        [2.0],
        [3.0],
        [4.0],
    ]
    assert asked.groups == [[1.0], [2.0], [3.0, 4.0]]


@on_a_loop
async def test_no_more_are_answered_together_than_an_order_remembers() -> None:
    rows, asked = SingleRows(), Asked()
    waits = [rows.ask("a", question(float(i)), 1, asked) for i in range(2 * KEPT + 5)]
    answers = [each.prediction for each in await asyncio.gather(*waits)]
    assert answers == [[float(i)] for i in range(2 * KEPT + 5)]
    assert list(map(len, asked.groups)) == [KEPT, KEPT, 5]


@on_a_loop
async def test_one_refusal_or_lost_client_is_nothing_to_the_others() -> None:
    rows, asked = SingleRows(), Asked()
    refused, gone, answered = (
        rows.ask("a", question(value), 1, asked) for value in (-1.0, 5.0, 6.0)
    )
    gone.cancel()
    with pytest.raises(InvalidSamples):
        await refused
    assert (await answered).prediction == [6.0]
    assert gone.cancelled()


@on_a_loop
async def test_an_error_that_nobody_expects_is_told_to_all() -> None:
    def fails(_: Sequence[Question]) -> Sequence[QuestionAnswer | Exception]:
        raise MemoryError

    rows = SingleRows()
    waits = [rows.ask("a", question(value), 1, fails) for value in (1.0, 2.0)]
    async with asyncio.timeout(5):
        answers = await asyncio.gather(*waits, return_exceptions=True)
    assert list(map(type, answers)) == [MemoryError, MemoryError]
