"""The semiparametric head's part of a model's spec: a kernel, and basis functions."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from wolfstream.service.spec.kernel import KernelSpec, SpecPart, with_type

# In samples; the time of a refit grows with the square of the window at least.
LARGEST_WINDOW = 20_000
DEFAULT_WINDOW = 2000
_Feature = Annotated[
    int, Field(ge=0, lt=2**31, description="The index of a number in a row, from 0.")
]
_Length = Annotated[float, Field(ge=1e-12, le=1e12)]


class ConstantBasis(SpecPart):
    """1, the intercept."""

    type: Literal["constant"]


class TrendBasis(SpecPart):
    """x_f."""

    type: Literal["trend"]
    feature: _Feature = 0


class PeriodicBasis(SpecPart):
    """sin(2 pi x_f / period) or cos(2 pi x_f / period)."""

    type: Literal["sin", "cos"]
    feature: _Feature = 0
    period: _Length


class SincBasis(SpecPart):
    """sin(u) / u with u = scale (x_f - centre)."""

    type: Literal["sinc"]
    feature: _Feature = 0
    centre: float = Field(0.0, ge=-1e12, le=1e12)
    scale: _Length = 1.0


BasisSpec = Annotated[
    ConstantBasis | TrendBasis | PeriodicBasis | SincBasis, Field(discriminator="type")
]


class SemiparametricSpec(SpecPart):
    """h(x) = kernel part + sum_j beta_j psi_j(x), fitted to a window of recent samples on request.

    Rows are arrays: a basis function refers to its feature by its index.
    """

    basis: list[BasisSpec] = Field(
        [ConstantBasis(type="constant")],
        max_length=100,
        description="The psi_j. None may be a linear combination of the others.",
    )
    kernel: Annotated[KernelSpec, Field(discriminator="type")] | None = Field(
        None, description='null: the model\'s kernel. A gamma of "auto" is estimated at each refit.'
    )
    C: float = Field(1.0, ge=1e-9, le=1e9, description="Weight of the mean loss.")
    epsilon: float = Field(
        0.1, ge=0, le=1e100, description="Smaller errors are ignored, in units of y."
    )
    window: int = Field(
        DEFAULT_WINDOW,
        ge=1,
        le=LARGEST_WINDOW,
        description="The number of most recent samples to fit.",
    )
    solver: Literal["pdsg", "mpd"] = "pdsg"
    tol: float = Field(
        1e-3, ge=1e-9, le=1e9, description="KKT violation, in units of y, at which a refit ends."
    )

    @field_validator("kernel", mode="before")
    @classmethod
    def _fill_type(cls, kernel: Any) -> Any:
        return with_type(kernel)
