"""What clients of a simulation have asked and were answered."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """The last answer to a call.

    status: 0 where the connection broke or no answer came in time, so that anything may have
    happened; -1 where nothing was sent.
    """

    status: int
    told: dict[str, Any]

    @property
    def is_success(self) -> bool:
        """Return whether the call was done."""
        return 200 <= self.status < 300

    @property
    def outcome(self) -> str:
        """Return what is known of a call's samples: learned, not-learned, durable or unknown."""
        if self.is_success:
            return "learned"
        # 404 may tell of a model that has learned the samples and was deleted since.
        if self.status in (-1, 409, 412, 413, 422, 429):
            return "not-learned"
        return str(self.told.get("outcome", "unknown"))


@dataclass
class Learned:
    """A request of samples, and what became of it.

    samples: the first numbers of its rows, which no other row has.
    outcomes: of all attempts; without a key there is one, except for those that were not learned.
    """

    client: str
    model: str
    key: str | None
    samples: list[float]
    began: float
    ended: float = 0.0
    outcomes: list[str] = field(default_factory=list)
    # Of the answer of 200.
    sequence: int | None = None
    epoch: str = ""


class Deleted(NamedTuple):
    """A 204 to a delete that required a state. began, ended: of the call."""

    model: str
    epoch: str
    sequence: int
    began: float
    ended: float


class Predicted(NamedTuple):
    """A prediction, by its state, and when it was asked for."""

    client: str
    model: str
    epoch: str
    sequence: int
    asked: float


class Record:
    """Everything that the clients of a simulation know.

    contradictions: answers that contradict other answers, found by the clients themselves.
    """

    def __init__(self) -> None:
        self.learned = list[Learned]()
        self.deleted = list[Deleted]()
        self.predicted = list[Predicted]()
        self.contradictions = list[str]()
        self.calls: dict[str, int] = {}
        self.slowest = 0.0

    def count(self, what: str) -> None:
        """Count a call by its kind and status."""
        self.calls[what] = self.calls.get(what, 0) + 1
