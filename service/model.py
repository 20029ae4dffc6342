"""A live model: its heads, its place in the log, and the view that it has published."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from service.errors import InvalidSamples, NoSuchHead
from service.head import Answers, Head, HeadView
from service.samples import Label, Samples
from service.spec import HeadName, ModelSpec
from solver.kernels import Float64Array

HEADS: tuple[HeadName, ...] = ("working_set", "asset")


class Published(NamedTuple):
    """What readers see: replaced as a whole after each block, never changed."""

    sequence: int
    dimension: int | None
    heads: dict[HeadName, HeadView]


class Draft:
    """What requests of one group, checked but not yet logged, will have made of a model."""

    def __init__(self, model: "Model") -> None:
        self.sequence = model.sequence
        self.dimension = model.dimension
        self.labels: dict[HeadName, set[tuple[type, Label]]] = {name: set() for name in HEADS}


class Model:
    """One model. Only the engine's writer changes it; everyone may read `published`."""

    def __init__(self, model_id: int, name: str, spec: ModelSpec) -> None:
        self.id = model_id
        self.name = name
        self.spec = spec
        self.sequence = 0
        self.dimension: int | None = None
        self.snapshot_sequence = 0
        self.snapshot_attempt = 0
        self.broken = ""
        self.heads = {head: Head(head, spec) for head in HEADS if getattr(spec, head) is not None}
        self.published = Published(0, None, {})
        self.publish()

    def check(self, head: HeadName, samples: Samples, draft: Draft, most_classes: int) -> None:
        """Refuse what could not be learned after `draft`, before it is logged.

        Raises NoSuchHead or InvalidSamples; otherwise the draft includes the samples.
        """
        if head not in self.heads:
            raise NoSuchHead(f"the spec of model {self.name!r} has null for {head}")
        check_dimension(samples.X, draft.dimension)
        self.heads[head].check(samples.X)
        new = self.heads[head].unknown(samples.labels) | draft.labels[head]
        if len(new) + len(self.heads[head].classes) > most_classes:
            raise InvalidSamples(
                f"the model would meet more than {most_classes} different labels; "
                "is y a number to be regressed, not a class?"
            )
        draft.labels[head] = new
        draft.dimension = samples.X.shape[1]
        draft.sequence += len(samples.X)

    def absorb(self, head: HeadName, samples: Samples) -> Answers:
        """Learn one block of the log. Live requests and replay both come through here."""
        answers = self.heads[head].absorb(samples)
        self.dimension = samples.X.shape[1]
        self.sequence += len(samples.X)
        return answers

    def publish(self, changed: Iterable[HeadName] = HEADS) -> None:
        """Let readers see the present state; heads that did not change keep their view."""
        views = {
            name: head.view() if name in changed else self.published.heads[name]
            for name, head in self.heads.items()
        }
        self.published = Published(self.sequence, self.dimension, views)

    def describe(self) -> dict[str, Any]:
        """The answer to GET, from the published view."""
        sequence, dimension, heads = self.published
        return {
            "model": self.name,
            "spec": self.spec.plain(),
            "sequence": sequence,
            "features": dimension,
            "heads": {name: {"classes": list(h.classes), **h.stats} for name, h in heads.items()},
            "snapshot_sequence": self.snapshot_sequence,
            "status": "broken" if self.broken else "ok",
        }

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays, copied, for a snapshot."""
        plain: dict[str, Any] = {
            "spec": self.spec.plain(),
            "sequence": self.sequence,
            "dimension": self.dimension,
            "heads": {},
        }
        arrays: dict[str, NDArray[Any]] = {}
        for name, head in self.heads.items():
            plain["heads"][name], of_head = head.state()
            arrays |= {f"{name}.{key}": array for key, array in of_head.items()}
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a snapshot's state."""
        self.sequence, self.dimension = plain["sequence"], plain["dimension"]
        self.snapshot_sequence = self.sequence
        for name, head in self.heads.items():
            prefix = f"{name}."
            own = {
                key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)
            }
            head.restore(plain["heads"][name], own)


def check_dimension(X: Float64Array, dimension: int | None) -> None:
    """Raise InvalidSamples where rows do not have the model's number of features."""
    if dimension is not None and X.shape[1] != dimension:
        detail = f"has {X.shape[1]} numbers, the model's rows have {dimension}"
        raise InvalidSamples(
            f"each row must have {dimension} numbers",
            [{"row": 0, "pointer": "/x/0", "detail": detail}],
        )
