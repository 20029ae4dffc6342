"""The working set's part of a model's spec."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.spec.class_weight import ClassWeights
from service.spec.heads import SetAlgorithm
from service.spec.kernel import Part

DEFAULT_SET, LARGEST_SET = 5000, 500_000
_GRAM_BYTES = 1 << 30


class WorkingSetSpec(Part):
    """The working set: SFW or MSFW; the set holds at most `max_size` samples."""

    algorithm: SetAlgorithm = "msfw"
    C: float = Field(1.0, ge=1e-9, le=1e9)
    corrective_steps: int = Field(10, ge=0, le=100)
    max_size: int = Field(DEFAULT_SET, ge=2, le=LARGEST_SET)
    gram_bytes_max: int = Field(
        _GRAM_BYTES,
        ge=1 << 20,
        le=1 << 40,
        description="The bytes of kernel values that are kept. A set whose square matrix takes "
        "more keeps some of its rows, and computes others anew when a step asks for them.",
    )
    class_weight: ClassWeights = Field(default=[])
    horizon: Literal["auto"] | Annotated[int, Field(ge=1, le=10**9)] | None = Field(
        "auto",
        union_mode="left_to_right",
        description="In how many samples a stored one fades, by exp(-(age / horizon)^2). auto "
        "finds it, and the kernel's width, by how well they would have forecast the last "
        "samples. null: never; the default where prepare is null, or the kernel is not rbf. "
        "Rows of more than 2,048 numbers, and sparse ones, never fade.",
    )


def without_horizon(given: dict[str, Any], kind: Any) -> dict[str, Any]:
    """The working set's samples do not fade by default where it is as the papers have it."""
    own = given.get("working_set", {})
    if isinstance(own, dict) and (kind != "rbf" or given.get("prepare", ()) is None):
        return given | {"working_set": {"horizon": None} | own}
    return given
