"""The distance of a working set from its optimum, for descriptions and reports."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from wolfstream.solver.arrays import Float64Array

# Before the first sample, and for heads without an objective.
NO_CERTIFICATE: dict[str, Any] = dict.fromkeys(("objective", "gap", "relative_gap"))


def certificate(objective: Float64Array, gap: Float64Array) -> dict[str, Any]:
    """Return the sums of the pairs' objectives and gaps, and the worst pair's relative gap.

    The sum of the gaps bounds how far the sum of the objectives is from its optimum.

    Args:
        objective: the objective of each pair, (pairs,).
        gap: the gap of each pair, (pairs,); NaN where unknown, which makes the result None.
    """
    if len(gap) == 1:  # two classes, the usual case after each block: fast, without arrays
        value, only_gap = float(objective[0]), _known(float(gap[0]))
        relative = None if only_gap is None or value == 0.0 else only_gap / abs(value)
        return {"objective": value, "gap": only_gap, "relative_gap": relative}
    share = gap / np.where(objective != 0.0, np.abs(objective), math.nan)
    return {
        "objective": float(objective.sum()),
        "gap": _known(float(gap.sum())),
        "relative_gap": _known(float(share.max())),
    }


def gap_text(report: Mapping[str, Any]) -> str:
    """Return the gap of a report and the samples that it covers, as text."""
    if report["gap"] is None:
        return "no gap, because the kernel is not positive semidefinite on these samples"
    relative = "" if report["relative_gap"] is None else f", {report['relative_gap']:.2g} relative"
    return f"gap {report['gap']:.3g}{relative} over {report['gap_over']}"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
