"""The learner of a model: its heads, its place in the journal, and its state."""

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from service.heads import kinds
from service.heads.fit import Fit, Window
from service.heads.protocol import Answers, Refitting
from service.model.live import Model
from service.model.published import Published
from service.samples.named_rows import NamedRows, NameTable, Rows
from service.samples.validation import Samples
from service.spec.heads import HEADS, HeadName
from solver.rows.matrix import Matrix


class Learner:
    """Learns for one model, and publishes what it has learned. Used by one thread.

    sequence: of the last sample absorbed. dimension, names: as of `Published`, for this sequence.
    snapshot_attempt: sequence at which a snapshot was last begun.
    fitted: samples in the windows of the fits since then.
    line: how often the model was rolled back in this process.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sequence = 0
        self.dimension: int | None = None
        self.names: NameTable | None = None
        self.heads = {head: kinds.build(head, model.spec) for head in model.spec.heads}
        self.snapshot_attempt = 0
        self.fitted = 0
        self.line = 0
        self.publish()

    def absorb(self, head: HeadName, samples: Samples) -> Answers:
        """Learn one block of the journal, live or in replay."""
        X = self._matrix(samples.X)
        answers = [self.heads[name].absorb(X, samples.y) for name in self.learning(head)]
        self.sequence += len(samples.y)
        return answers[0]

    def learning(self, head: HeadName) -> tuple[HeadName, ...]:
        """The heads that learn samples which are posted for one of them."""
        return kinds.learners(self.model.spec, head)

    def publish(self, changed: Iterable[HeadName] = HEADS) -> None:
        """Let readers see the present state; heads that did not change keep their view."""
        views = {
            name: head.view() if name in changed else self.model.published.heads[name]
            for name, head in self.heads.items()
        }
        self.model.published = Published(self.sequence, self.dimension, self.names, views)

    def window(self) -> Window:
        """The samples that a refit is over, copied. Raises NoSuchHead."""
        name = self.model.refitted_head()
        samples = _refitting(name).window(self.heads[name])
        return Window(name, self.sequence, *samples, self.model.spec, self.line)

    def adopt(self, head: HeadName, fit: Fit) -> None:
        """Serve the result of a refit, live or in replay."""
        _refitting(head).adopt(self.heads[head], fit)
        self.fitted += fit.plain["samples"]

    def roll_back(self, source: "Learner", rolled_back: dict[str, Any]) -> None:
        """Take the state of `source`, except for the sequence, which goes on.

        rolled_back: see `Model`.
        """
        self.heads, self.names, self.dimension = source.heads, source.names, source.dimension
        self.sequence, self.model.rolled_back = rolled_back["at"], rolled_back
        self.line += 1
        self.model.broken = ""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays, copied, for a snapshot."""
        plain: dict[str, Any] = {
            "spec": self.model.spec.plain(),
            "sequence": self.sequence,
            "dimension": self.dimension,
            "heads": {},
        }
        if self.names is not None:
            plain["names"] = self.names.names()
        if self.model.rolled_back is not None:
            plain["rolled_back"] = self.model.rolled_back
        arrays: dict[str, NDArray[Any]] = {}
        for name, head in self.heads.items():
            plain["heads"][name], of_head = head.state()
            arrays |= {f"{name}.{key}": array for key, array in of_head.items()}
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the state of a snapshot."""
        self.sequence, self.dimension = plain["sequence"], plain["dimension"]
        self.names = NameTable(plain["names"]) if "names" in plain else None
        self.model.snapshot_sequence = self.sequence
        self.model.rolled_back = plain.get("rolled_back")
        for name, head in self.heads.items():
            prefix = f"{name}."
            own = {
                key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)
            }
            head.restore(plain["heads"][name], own)

    def _matrix(self, rows: Rows) -> Matrix:
        """Rows to learn; their names, if they have any, become known."""
        if not isinstance(rows, NamedRows):
            self.dimension = rows.shape[1]
            return rows
        if self.names is None:
            self.names = NameTable()
        self.names.add(rows.names)
        self.dimension = len(self.names)
        return self.names.matrix(rows, self.dimension)


def _refitting(head: HeadName) -> Refitting[Any]:
    refitting = kinds.KINDS[head].refitting
    assert refitting is not None
    return refitting
