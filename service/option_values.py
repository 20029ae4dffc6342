"""Values of `wolfstream train`'s options that are more than a word or a number."""

import math
from typing import Any

import click


def read_gamma(_: click.Context, __: click.Parameter, value: str) -> float | None:
    """--gamma: None for auto."""
    if value == "auto":
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0.0 < number <= 1e12:
        raise click.BadParameter(f"{value!r} is neither auto nor a number in (0, 1e12]")
    return number


def read_weights(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Any:
    """--class-weight: weights by a label's text, "balanced", or None."""
    if values == ("balanced",):
        return "balanced"
    weights: dict[str, float] = {}
    for value in values:
        label, equals, text = value.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = math.nan
        if not equals or not 1e-6 <= weight <= 1e6:
            detail = f"{value!r} is neither balanced alone nor LABEL=NUMBER, up to a million"
            raise click.BadParameter(detail)
        weights[label] = weight
    return weights or None


def read_bases(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Any:
    """--basis, as the spec has it: what its numbers must be, the spec knows. None if not given."""
    return [_read_basis(value) for value in values] or None


def _read_basis(value: str) -> dict[str, Any]:
    kind, colon, rest = value.partition(":")
    basis: dict[str, Any] = {"type": kind}
    for parameter in rest.split(",") if colon else ():
        name, equals, text = parameter.partition("=")
        try:
            number = int(text) if name == "feature" else float(text)
        except ValueError:
            number = math.nan
        if not equals or not math.isfinite(number) or name in basis:
            raise click.BadParameter(f"{value!r} is not TYPE:NAME=NUMBER,... (at {parameter!r})")
        basis[name] = number
    return basis
