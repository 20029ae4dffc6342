"""One compiled loop over the problems of all pairs of classes, for a block of samples (P2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import compiled, inner, smaller
from wolfstream.solver.working_set.decisions import Trace, predict_run
from wolfstream.solver.working_set.hessian import KernelValues, Ridge
from wolfstream.solver.working_set.pair_problems import PairArrays, problem_at
from wolfstream.solver.working_set.sfw import PAIR, Arrivals, Rule, Scratch, walk


class Block(NamedTuple):
    """`sfw.Arrivals` of a block of B samples for all P problems."""

    # (B,) class numbers.
    codes: NDArray[np.int64]
    column: NDArray[np.int64]
    # (P, B), or (1, B) where no sample is a member yet.
    member: NDArray[np.int64]
    inverse_weight: Float64Array
    by_column: FloatArray


class Rules(NamedTuple):
    """`sfw.Rule` for all P problems."""

    # (P, 2) the class numbers of each problem.
    classes: NDArray[np.int64]
    # (classes,) the ridge of each class.
    ridges: Float64Array
    away_steps: bool
    corrective_steps: int


class Traces(NamedTuple):
    """`decisions.Trace` of all problems, (P, B) each."""

    decision: Float64Array
    margin: Float64Array
    admitted: NDArray[np.bool_]
    step: NDArray[np.int8]


@compiled
def walk_all(
    pairs: PairArrays,
    values: KernelValues,
    block: Block,
    rules: Rules,
    traces: Traces,
    scratch: Scratch,
    progress: NDArray[np.int64],
) -> int:
    """Take the samples of a block in order (`sfw.walk`), for one problem after another.

    progress: (sfw.PROGRESS_SIZE,) zeros at first.

    Returns the column whose row of kernel values is needed to go on, -1 once all is done.
    """
    n, sign = len(block.codes), scratch.sign
    for i in range(progress[PAIR], len(pairs.size)):
        problem = problem_at(pairs, i)
        a, b = rules.classes[i, 0], rules.classes[i, 1]
        trace = Trace(traces.decision[i], traces.margin[i], traces.admitted[i], traces.step[i])
        in_pair = signs_of(block.codes, a, b, sign)
        if in_pair == 0:
            # A variable: with the literal 0 numba compiles `predict_run` twice.
            predict_run(problem, values, block.by_column, in_pair, n, trace, scratch.total)
            continue
        ridge = Ridge(rules.ridges[a], rules.ridges[b])
        rule = Rule(ridge, rules.away_steps, rules.corrective_steps)
        member = block.member[smaller(i, len(block.member) - 1)]
        arrivals = Arrivals(sign, block.column, member, block.inverse_weight, block.by_column)
        missing = walk(problem, values, arrivals, rule, trace, scratch, progress)
        if missing >= 0:
            progress[PAIR] = i
            return missing
    return -1


@inner
def signs_of(codes: NDArray[np.int64], a: int, b: int, sign: Float64Array) -> int:
    """Write y of a block's samples in the pair a, b, 0 for other classes; count the pair's."""
    in_pair = 0
    for k in range(len(codes)):
        sign[k] = 1.0 if codes[k] == b else (-1.0 if codes[k] == a else 0.0)
        in_pair += 1 if sign[k] != 0.0 else 0
    return in_pair
