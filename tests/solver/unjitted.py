"""Small runs of every compiled solver as one JSON object; `python -m tests.solver.unjitted`.

frank_wolfe/test_driver compares what this prints under NUMBA_DISABLE_JIT=1 with the compiled run.
"""

import json

import numba

from tests.solver.problems import KERNELS, TASKS, full, sampled
from tests.solver.streams import FLOAT64, clusters, members
from wolfstream.solver.frank_wolfe.driver import solve
from wolfstream.solver.frank_wolfe.methods import METHODS
from wolfstream.solver.working_set.learner import WorkingSet


def results():
    """Objective, weights and number of steps of each run; "jit": whether code was compiled."""
    found = {"jit": not numba.config.DISABLE_JIT}
    for task in ("class weights", "regression"):
        instance = TASKS[task](KERNELS["polynomial"], 24, 1.0)
        for method in METHODS:
            for search in (full, sampled):
                solution = solve(search(instance), method, 1e-2, 40)
                found[f"{task}, {method}, {search.__name__}"] = {
                    "objective": solution.objective,
                    "alpha": solution.alpha.tolist(),
                    "steps": solution.n_iter,
                }
    X, codes = clusters(seed=5, n=60, n_classes=3)
    for algorithm in ("sfw", "msfw"):
        learner = WorkingSet(KERNELS["rbf"], 2.0, algorithm, 1, dtype=FLOAT64)
        answer = learner.absorb(X, codes)
        held = [members(problem) for problem in learner.problems]
        found[algorithm] = {
            "objective": [-problem.q for problem in held],
            "alpha": [weight for problem in held for weight in problem.alpha.tolist()],
            "steps": answer.step.tolist(),
        }
    return found


if __name__ == "__main__":
    print(json.dumps(results()))
