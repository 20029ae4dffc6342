"""The kernel in a model's spec, and the base class of all parts of a spec."""

import json
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Gamma = Literal["auto"] | Annotated[float, Field(gt=0, le=1e12)]


def _put_defaults_into_words(schema: dict[str, Any]) -> None:
    """Move defaults from fields to their descriptions.

    Generated clients treat a field with a `default` as required, or always send it, so with them
    `{}` would not be a spec. Defaults of whole parts are in the parts.
    """
    for field in schema.get("properties", {}).values():
        default = field.pop("default", ...)
        text = field.get("description", "")
        if default is not ... and not isinstance(default, dict) and "default" not in text.lower():
            field["description"] = f"{text} By default {json.dumps(default)}.".lstrip()


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
    """Return whether gamma is estimated from samples."""
    return not isinstance(spec, LinearSpec) and spec.gamma == "auto"


def with_type(kernel: Any) -> Any:
    """Return the kernel of a body, with the type rbf if it has none."""
    return {"type": "rbf"} | kernel if isinstance(kernel, dict) else kernel


def contradiction(pointer: str, detail: str) -> PydanticCustomError:
    """Return an error at a pointer, whichever validator raises it."""
    return PydanticCustomError("contradiction", "{detail}", {"detail": detail, "pointer": pointer})
