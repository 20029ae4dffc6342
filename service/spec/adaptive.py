"""The bank's part of a model's spec: which of its default learners are replaced."""

from typing import Annotated, Literal

from pydantic import Field

from wolfstream.service.spec.kernel import SpecPart

# The most learners of one kind that a spec may list.
MOST_PINNED = 8
Horizon = Annotated[int, Field(ge=32, le=10**9)]
Step = Annotated[float, Field(ge=1e-6, le=100)]
Count = Annotated[int, Field(ge=1, le=1000)]
ClassWeight = Annotated[float, Field(ge=1e-6, le=1e6)]
ClassWeights = Annotated[dict[str, ClassWeight], Field(min_length=1, max_length=1000)]


class AdaptiveSpec(SpecPart):
    """A bank of learners on shared features, weighted by how well each predicts at present.

    It needs no parameters, and learns every sample that the model is sent. A list replaces the
    default learners of its kind; an empty list switches them off.
    """

    horizons: list[Horizon | None] | None = Field(
        None,
        max_length=MOST_PINNED,
        description="Horizons of ridge learners, in samples; null in the list: infinite.",
    )
    steps: list[Step] | None = Field(
        None, max_length=MOST_PINNED, description="Step lengths of gradient learners."
    )
    neighbours: list[Count] | None = Field(
        None,
        max_length=MOST_PINNED,
        description="Numbers of nearest neighbours among the last 1,000 rows.",
    )
    naive_bayes: list[Horizon | None] | None = Field(
        None,
        max_length=MOST_PINNED,
        description="Horizons of Gaussian naive Bayes, in samples; null in the list: infinite. "
        "Only for classification, and for rows of at most 256 numbers.",
    )
    class_weight: Literal["balanced"] | ClassWeights | None = Field(
        None,
        exclude_if=lambda weight: weight is None,
        description="What a mistake about a label costs; 1 for labels that are not named. The "
        "label with the largest weight times probability is predicted; probabilities do not "
        "change. balanced: n / (K n_k), for n samples so far of K classes, n_k of them with this "
        "label, so rare labels are predicted more often.",
    )
