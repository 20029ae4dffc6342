"""Class weights, as several parts of a spec have them."""

from typing import Annotated

from pydantic import Field

from wolfstream.service.spec.kernel import SpecPart
from wolfstream.solver.stream.labels import LabelKey, key_of


class ClassWeight(SpecPart):
    """The weight of a class: the losses of its samples count `weight` times."""

    label: str | int | bool
    weight: float = Field(ge=1e-6, le=1e6)


ClassWeights = Annotated[
    list[ClassWeight],
    Field(max_length=1000, description="Classes that are not named have weight 1."),
]


def weights_by_label(weights: list[ClassWeight]) -> dict[LabelKey, float]:
    """Return label -> weight, by a key that all spellings of a label share."""
    return {key_of(entry.label): entry.weight for entry in weights}
