"""Answers the questions about single rows that come in one turn of the event loop in one call.

A call of the whole model for one row takes several times as long as a row among others does, so
this saves most of the time of many clients that ask for one row each. The answers are the same.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

from wolfstream.service.samples.validation import Question
from wolfstream.solver.rows.recent_rows import KEPT


class QuestionAnswer(NamedTuple):
    """The answer to a question.

    Attributes:
        prediction: labels or numbers of the rows.
        decision: of the rows.
        more: other fields by name.
    """

    prediction: list[Any]
    decision: list[Any]
    more: dict[str, Any]


# More multiplications take longer than a millisecond.
MOST_COST = 20_000_000
# Returns the answer to each of several questions, or its error; raises an error of all.
AnswerEach: TypeAlias = Callable[[Sequence[Question]], Sequence[QuestionAnswer | Exception]]


class SingleRows:
    """The questions to a model that wait for the end of this turn. Used on one event loop.

    At most KEPT are answered in one call, because the order of labels knows only that many rows.
    """

    def __init__(self) -> None:
        self._kind: Hashable = None
        self._cost = 0
        self._answer_each: AnswerEach | None = None
        self._waiting: list[tuple[Question, asyncio.Future[QuestionAnswer]]] = []

    def ask(
        self, kind: Hashable, question: Question, cost: int, answer_each: AnswerEach
    ) -> "asyncio.Future[QuestionAnswer]":
        """Let a question wait; return a future of its answer.

        Args:
            kind: of questions that can be answered together.
            question: about one row.
            cost: of the answer; see `ModelView.cost`.
            answer_each: answers questions of this kind.
        """
        full = len(self._waiting) == KEPT or self._cost + cost > MOST_COST
        if self._waiting and (full or kind != self._kind):
            self._answer()
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._answer)
            self._kind, self._cost, self._answer_each = kind, 0, answer_each
        answer: asyncio.Future[QuestionAnswer] = loop.create_future()
        self._waiting.append((question, answer))
        self._cost += cost
        return answer

    def _answer(self) -> None:
        """Answer the questions that wait."""
        answer_each, waiting = self._answer_each, self._waiting
        self._kind, self._answer_each, self._waiting = None, None, []
        if answer_each is None:  # nothing waits: it was answered when more came than one call takes
            return
        answers: Sequence[QuestionAnswer | Exception]
        try:
            answers = answer_each([question for question, _ in waiting])
        except Exception as error:  # without an answer, all clients would wait for ever
            answers = [error] * len(waiting)
        for (_, future), answer in zip(waiting, answers, strict=True):
            if future.done():  # its client has left
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
