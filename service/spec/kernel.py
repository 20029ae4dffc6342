"""The kernel in a model's spec, and the base class of all parts of a spec."""

import json
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Gamma = Literal["auto"] | Annotated[float, Field(gt=0, le=1e12)]


def _put_defaults_into_words(schema: dict[str, Any]) -> None:
    """Say in descriptions what the defaults are.

    Generators of clients take a field with a `default` for one that must be given, or send it, and
    `{}` is no spec for them then. Defaults of whole parts are in the parts.
    """
    for field in schema.get("properties", {}).values():
        default = field.pop("default", ...)
        said = field.get("description", "")
        if default is not ... and not isinstance(default, dict) and "default" not in said.lower():
            field["description"] = f"{said} By default {json.dumps(default)}.".lstrip()


class SpecPart(BaseModel):
    """A part of a spec: types are not converted, and unknown fields are refused."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        json_schema_extra=_put_defaults_into_words,
    )


class RbfSpec(SpecPart):
    """exp(-gamma ||x - z||^2)."""

    type: Literal["rbf"] = "rbf"
    gamma: Gamma = "auto"


class PolynomialSpec(SpecPart):
    """(gamma x'z + coef0)^degree."""

    type: Literal["polynomial"]
    degree: int = Field(3, ge=1, le=8)
    gamma: Gamma = "auto"
    coef0: float = Field(1.0, ge=-1e6, le=1e6)


class LinearSpec(SpecPart):
    """x'z."""

    type: Literal["linear"]


KernelSpec: TypeAlias = RbfSpec | PolynomialSpec | LinearSpec


def has_auto_gamma(spec: KernelSpec) -> bool:
    """Return whether gamma is to be estimated from samples."""
    return not isinstance(spec, LinearSpec) and spec.gamma == "auto"


def with_type(kernel: Any) -> Any:
    """Return the kernel of a body; one without a type is rbf."""
    return {"type": "rbf"} | kernel if isinstance(kernel, dict) else kernel


def contradiction(pointer: str, detail: str) -> PydanticCustomError:
    """Return an error at this pointer, wherever the validator that raises it is defined."""
    return PydanticCustomError("contradiction", "{detail}", {"detail": detail, "pointer": pointer})
