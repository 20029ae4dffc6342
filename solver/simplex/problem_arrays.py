"""Binary problems as plain arrays, from which a learner continues bit for bit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.simplex.problem import Problem, empty_problem

# The fields with an entry for each member that are saved; the others are those of stored samples.
_SAVED_FIELDS = ("alpha", "gradient", "sign", "column")


def problems_to_arrays(problems: Sequence[Problem]) -> dict[str, NDArray[Any]]:
    """Return copies of the problems' fields, those of members one problem after the other."""
    sizes = [int(problem.size[0]) for problem in problems]
    members = {
        field: np.concatenate([getattr(p, field)[:n] for p, n in zip(problems, sizes, strict=True)])
        for field in _SAVED_FIELDS
    }
    return {
        "sizes": np.array(sizes, np.int64),
        **members,
        "q": np.array([problem.q[0] for problem in problems]),
        "steps": np.array([problem.steps[0] for problem in problems], np.int64),
        "indefinite": np.array([problem.indefinite[0] for problem in problems], np.bool_),
    }


def problems_from_arrays(
    arrays: Mapping[str, NDArray[Any]], kernel_diagonal: Float64Array, inverse_weight: Float64Array
) -> list[Problem]:
    """Return the problems of saved arrays.

    arrays: of `problems_to_arrays`.
    kernel_diagonal: (slots,) k(x, x) of each stored sample.
    inverse_weight: (slots,) 1 / weight of each stored sample.
    """
    problems = []
    ends = np.cumsum(arrays["sizes"])
    for i, (size, end) in enumerate(zip(arrays["sizes"].tolist(), ends.tolist(), strict=True)):
        problem = empty_problem(max(1, size))
        for field in _SAVED_FIELDS:
            getattr(problem, field)[:size] = arrays[field][end - size : end]
        problem.diagonal[:size] = kernel_diagonal[problem.column[:size]] + 1.0
        problem.inverse_weight[:size] = inverse_weight[problem.column[:size]]
        problem.q[0], problem.steps[0] = arrays["q"][i], arrays["steps"][i]
        problem.size[0], problem.indefinite[0] = size, arrays["indefinite"][i]
        problems.append(problem)
    return problems
