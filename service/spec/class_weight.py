"""How much the samples of each class count, in the parts of a spec that have such weights."""

from typing import Annotated

from pydantic import Field

from wolfstream.service.spec.kernel import Part


class ClassWeight(Part):
    """How much samples of one class count: their loss costs `weight` times as much."""

    label: str | int | bool
    weight: float = Field(ge=1e-6, le=1e6)


ClassWeights = Annotated[
    list[ClassWeight],
    Field(max_length=1000, description="Classes that are not named count 1."),
]


def weights_by_label(weights: list[ClassWeight]) -> dict[tuple[type, object], float]:
    """Return the weights by label with its type: JSON's true and 1 are different labels."""
    return {(type(one.label), one.label): one.weight for one in weights}
