"""Parsers for options that are more than a word or a number."""

import json
import math
from pathlib import Path
from typing import Any

import click


def read_json(_: click.Context, __: click.Parameter, value: str | None) -> Any:
    """Parse JSON, or the JSON in the file of @FILE; return None without a value."""
    if value is None:
        return None
    try:
        return json.loads(Path(value[1:]).read_text("utf-8") if value[:1] == "@" else value)
    except OSError as error:
        raise click.BadParameter(f"{value[1:]} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"this is not JSON: {error}") from None


def read_gamma(_: click.Context, __: click.Parameter, value: str) -> float | None:
    """Parse --gamma; return None for auto."""
    if value == "auto":
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0.0 < number <= 1e12:
        raise click.BadParameter(f"{value!r} must be auto, or a number above 0 and up to 1e12")
    return number


def read_weights(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Any:
    """Parse --class-weight; return text of a label -> weight, "balanced", or None."""
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
            detail = f"{value!r} must be balanced alone, or LABEL=NUMBER from 1e-6 to 1e6"
            raise click.BadParameter(detail)
        weights[label] = weight
    return weights or None


def read_bases(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Any:
    """Parse --basis into fields of a spec, which checks the numbers; return None without any."""
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
            raise click.BadParameter(
                f"{value!r} must be TYPE:NAME=NUMBER,...; {parameter!r} is not NAME=NUMBER"
            )
        basis[name] = number
    return basis
