"""The spec of a model: what a client may choose, with a default for everything."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.errors import Invalid, SampleError, pointer_to
from solver.kernels import Kernel

HeadName = Literal["working_set", "asset"]
LARGEST_SET = 50_000
MODEL_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"

Gamma = Literal["auto"] | Annotated[float, Field(gt=0, le=1e12)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class RbfSpec(_Part):
    """exp(-gamma ||x - z||^2)."""

    type: Literal["rbf"] = "rbf"
    gamma: Gamma = "auto"


class PolynomialSpec(_Part):
    """(gamma x'z + coef0)^degree."""

    type: Literal["polynomial"]
    degree: int = Field(3, ge=1, le=8)
    gamma: Gamma = "auto"
    coef0: float = Field(1.0, ge=-1e6, le=1e6)


class LinearSpec(_Part):
    """x'z."""

    type: Literal["linear"]


class ClassWeight(_Part):
    """How much samples of one class count: their C is `weight` times the C of the spec."""

    label: str | int | bool
    weight: float = Field(ge=1e-6, le=1e6)


class WorkingSetSpec(_Part):
    """The working set: SFW or MSFW; the set holds at most `max_size` samples."""

    algorithm: Literal["sfw", "msfw"] = "msfw"
    C: float = Field(1.0, ge=1e-9, le=1e9)
    corrective_steps: int = Field(10, ge=0, le=100)
    max_size: int = Field(5000, ge=2, le=LARGEST_SET)
    class_weight: list[ClassWeight] = Field(
        [], max_length=1000, description="Classes that are not named count 1."
    )


class AssetSpec(_Part):
    """ASSET on `dimension` random Fourier features; classes one-versus-rest."""

    algorithm: Literal["asset"] = "asset"
    features: Literal["fourier"] = "fourier"
    dimension: int = Field(512, ge=1, le=16_384)
    lam: float = Field(1e-4, gt=1e-12, le=1e6, alias="lambda")
    average_from: int | None = Field(
        None, ge=1, description="First averaged step; null averages a suffix of the stream."
    )


class ModelSpec(_Part):
    """What a model is. `{}` is a valid spec; a head that is null does not exist."""

    task: Literal["classification"] = "classification"
    kernel: RbfSpec | PolynomialSpec | LinearSpec = Field(
        default_factory=RbfSpec, discriminator="type"
    )
    working_set: WorkingSetSpec | None = Field(default=WorkingSetSpec())
    asset: AssetSpec | None = Field(default=AssetSpec())
    serve: HeadName = "working_set"
    seed: int = Field(0, ge=0, lt=2**53)

    @model_validator(mode="before")
    @classmethod
    def _fill_what_follows(cls, given: Any) -> Any:
        """Defaults that depend on other fields: Fourier features need rbf; serve what exists."""
        if not isinstance(given, dict):
            return given
        kernel = given.get("kernel")
        if isinstance(kernel, dict):
            given = given | {"kernel": {"type": "rbf"} | kernel}
            if given["kernel"]["type"] in ("polynomial", "linear"):
                given = {"asset": None} | given
        if given.get("working_set", ()) is None:
            given = {"serve": "asset"} | given
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.asset is not None and self.kernel.type != "rbf":
            raise ValueError("asset: Fourier features need the rbf kernel; set asset to null")
        if getattr(self, self.serve) is None:
            raise ValueError(f"serve: the head {self.serve!r} is null")
        return self

    def kernel_with(self, gamma: float) -> Kernel:
        """The solver's kernel, gamma given where the spec says "auto"."""
        kernel = self.kernel
        if isinstance(kernel, LinearSpec):
            return Kernel("linear")
        if kernel.gamma != "auto":
            gamma = kernel.gamma
        if isinstance(kernel, PolynomialSpec):
            return Kernel("polynomial", gamma, kernel.degree, kernel.coef0)
        return Kernel("rbf", gamma)

    @property
    def auto_gamma(self) -> bool:
        """Whether gamma is to be estimated from the stream."""
        return not isinstance(self.kernel, LinearSpec) and self.kernel.gamma == "auto"

    def plain(self) -> dict[str, Any]:
        """As JSON-able data with every default filled in."""
        return self.model_dump(mode="json", by_alias=True)


def read_spec(given: Any) -> ModelSpec:
    """Check a decoded body; raises Invalid with a pointer to each wrong field."""
    try:
        return ModelSpec.model_validate(given)
    except ValidationError as error:
        raise Invalid("the spec is not valid", problems_of(error)) from None


def problems_of(error: ValidationError) -> list[SampleError]:
    """pydantic's findings as pointers and details; names of union members are not places."""
    problems: list[SampleError] = []
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        *place, last = item["loc"] or ("",)
        path: list[int | str] = [
            part for part in place if part in _FIELD_NAMES or isinstance(part, int)
        ]
        if last in _FIELD_NAMES or item["type"] in _BY_NAME:
            path.append(last)
        pointer = pointer_to(*path)
        problems.append({"pointer": pointer, "detail": item["msg"].removeprefix("Value error, ")})
    return problems


_BY_NAME = {"extra_forbidden", "missing"}
_FIELD_NAMES = {
    field.alias or name
    for part in (
        ModelSpec,
        RbfSpec,
        PolynomialSpec,
        LinearSpec,
        WorkingSetSpec,
        ClassWeight,
        AssetSpec,
    )
    for name, field in part.model_fields.items()
}
