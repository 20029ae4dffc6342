"""Examples of bodies in the OpenAPI description: by media type, and by what they show."""

from typing import Any

SPEC_EXAMPLES: dict[str, Any] = {
    "classes": {"summary": "Classes, both heads", "value": {}},
    "linear": {
        "summary": "Sparse or wide rows: linear, asset alone, following drift",
        "value": {
            "kernel": {"type": "linear"},
            "working_set": None,
            "asset": {"lambda": 1e-4, "horizon": 10_000},
        },
    },
    "numbers": {
        "summary": "Regression",
        "value": {
            "task": "regression",
            "asset": {"features": "nystrom", "dimension": 256, "epsilon": 0.05},
        },
    },
    "semiparametric": {
        "summary": "Numbers with a daily rhythm, fitted anew with each refit",
        "value": {
            "task": "regression",
            "asset": None,
            "semiparametric": {
                "basis": [
                    {"type": "constant"},
                    {"type": "sin", "feature": 0, "period": 24.0},
                    {"type": "cos", "feature": 0, "period": 24.0},
                ],
                "window": 2000,
            },
        },
    },
}


def _samples(classes: Any, numbers: Any) -> dict[str, Any]:
    """The same samples for both tasks."""
    return {
        "classes": {"summary": "Labels", "value": classes},
        "numbers": {"summary": "For a model whose task is regression", "value": numbers},
    }


SAMPLES_EXAMPLES: dict[str, Any] = {
    "application/json": _samples(
        {"x": [[0.1, 0.2], [0.8, 0.9]], "y": ["low", "high"]},
        {"x": [[0.1, 0.2], [0.8, 0.9]], "y": [1350.0, 980]},
    ),
    "application/x-ndjson": _samples(
        '{"x": [0.1, 0.2], "y": "low"}\n{"x": [0.8, 0.9], "y": "high"}\n',
        '{"x": [0.1, 0.2], "y": 1350.0}\n{"x": [0.8, 0.9], "y": 980}\n',
    ),
    "text/csv": _samples("0.1,0.2,low\n0.8,0.9,high\n", "0.1,0.2,1350.5\n0.8,0.9,980\n"),
    "text/x-libsvm": _samples(
        "low 1:0.1 2:0.2\nhigh 1:0.8 2:0.9\n", "1350.5 1:0.1 2:0.2\n980 1:0.8 2:0.9\n"
    ),
}
ROWS_EXAMPLES: dict[str, Any] = {
    "application/json": {"rows": {"value": {"x": [[0.1, 0.2]]}}},
    "application/x-ndjson": {"rows": {"value": '{"x": [0.1, 0.2]}\n'}},
    "text/csv": {"rows": {"value": "0.1,0.2\n"}},
    "text/x-libsvm": {"rows": {"value": "1:0.1 2:0.2\n"}},
}
