"""The working set's part of a model's spec, and its checks against the other parts."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wolfstream.service.spec.heads import DEFAULT_SET, LARGEST_SET, SetAlgorithm, TaskName
from wolfstream.service.spec.kernel import KernelSpec, PolynomialSpec, SpecPart, contradiction
from wolfstream.service.spec.task_fields import check_fields
from wolfstream.solver.labels import LabelKey, key_of


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


_GRAM_BYTES = 1 << 30


class WorkingSetSpec(SpecPart):
    """The working set: SFW or MSFW; the set holds at most `max_size` samples."""

    algorithm: SetAlgorithm = "msfw"
    C: float = Field(1.0, ge=1e-9, le=1e9)
    corrective_steps: int = Field(10, ge=0, le=100)
    max_size: int = Field(DEFAULT_SET, ge=2, le=LARGEST_SET)
    gram_bytes_max: int = Field(
        _GRAM_BYTES,
        ge=1 << 20,
        le=1 << 40,
        description="The bytes of kernel values that are stored. A set whose square matrix takes "
        "more stores some of its rows, and computes the others when a step needs them.",
    )
    epsilon: float | None = Field(
        None,
        ge=0,
        le=1e9,
        description="For regression: half the width of the tube in which deviations cost nothing, "
        "in units of the targets' standard deviation; 0.1 by default. null for classification.",
    )
    class_weight: ClassWeights = Field(default=[])
    horizon: Literal["auto"] | Annotated[int, Field(ge=1, le=10**9)] | None = Field(
        "auto",
        union_mode="left_to_right",
        description="The number of samples in which a stored sample fades, by "
        "exp(-(age / horizon)^2). auto chooses it, and the kernel's width, by how well they would "
        "have predicted the last samples. null: never; the default if prepare is null or the "
        "kernel is not rbf. Rows of more than 2,048 numbers, and sparse rows, never fade.",
    )
    scores: Literal["coupled", "counted"] = Field(
        "coupled",
        description="The scores from which probabilities are computed, and which the adaptive head "
        "gets. coupled: how clearly each class loses its worst pairs, compared with the support "
        "vectors. counted: the decision; for three or more classes, the pairs that a class wins.",
    )


def with_set_defaults(
    body: dict[str, Any], working_set: dict[str, Any], kind: Any
) -> dict[str, Any]:
    """Return a body with its working set, and with the default `horizon` for its other fields.

    By default, samples fade only under an rbf kernel on prepared rows; otherwise the set is that of
    the papers.
    """
    if kind != "rbf" or body.get("prepare", ()) is None:
        working_set = {"horizon": None} | working_set
    return body | {"working_set": working_set} if working_set else body


def check_working_set(working_set: WorkingSetSpec, kernel: KernelSpec, task: TaskName) -> None:
    """Raise an error if the working set's part contradicts the kernel or the task."""
    if working_set.horizon is not None and kernel.type != "rbf":
        detail = "only samples under an rbf kernel fade: leave horizon out, or set it to null"
        raise contradiction("/working_set/horizon", detail)
    check_fields(task, "working_set", working_set)
    has_tube = working_set.epsilon is not None
    if has_tube and isinstance(kernel, PolynomialSpec) and kernel.coef0 < 0.0:
        detail = "regression in the working set needs coef0 >= 0: below, nothing bounds its gap"
        raise contradiction("/kernel/coef0", detail)
