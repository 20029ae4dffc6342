"""The novelty head's part of a model's spec."""

from typing import Annotated, Literal

from pydantic import Field

from wolfstream.service.spec.heads import SetAlgorithm
from wolfstream.service.spec.kernel import SpecPart

_LARGEST_BALL = 20_000


class NoveltySpec(SpecPart):
    """The enclosing ball of a model's rows under an rbf kernel; it holds at most `max_size`.

    It learns every sample that the model is sent, whatever its label is.
    """

    algorithm: SetAlgorithm = "msfw"
    C: float = Field(
        1.0,
        ge=1e-9,
        le=1e9,
        description="The cost of a square beyond the ball: the smaller, the more rows lie outside.",
    )
    gamma: Literal["auto"] | Annotated[float, Field(gt=0, le=1e100)] = Field(
        "auto",
        union_mode="left_to_right",
        description="The kernel's gamma. auto: 16 times the inverse of the mean squared distance "
        "of the first 128 rows, so that rows between others are distinguished from them.",
    )
    corrective_steps: int = Field(10, ge=0, le=100)
    max_size: int = Field(1000, ge=2, le=_LARGEST_BALL)
