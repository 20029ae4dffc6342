"""scikit-learn's checks that no estimator here can pass, and why; own tests take their place."""

from typing import Any

_REASON = (
    "the check compares to 1e-7: batch solvers end at a gap, online ones take one step for a "
    "sample of weight 2 and two for its copies; test_sample_weight has what holds instead"
)


def not_equivalent(_: Any) -> dict[str, str]:
    """The checks that compare weights with copies of samples, for `expected_failed_checks`."""
    name = "check_sample_weight_equivalence_on"
    return {f"{name}_dense_data": _REASON, f"{name}_sparse_data": _REASON}
