"""SFW and MSFW: one pass over samples, one simplex step for each (P1 Algorithms 1 and 3).

The kernel values of a block of samples, against all stored ones and among themselves, are computed
as one matrix product; `walk` then takes the samples strictly one by one. The gradient of a sample
is computed at its turn, from the weights of that moment, so a block of any length leads to the same
admissions, steps and weights as single samples.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import inner
from wolfstream.solver.frank_wolfe.problem import Problem, tie_width
from wolfstream.solver.frank_wolfe.steps import INITIAL, TOWARD, away_is_steeper
from wolfstream.solver.working_set.decisions import Trace, note_decision, predict_run
from wolfstream.solver.working_set.hessian import (
    KernelValues,
    Layout,
    Ridge,
    at_hand,
    decision_value,
    hessian_row,
    layout_of,
)
from wolfstream.solver.working_set.partner import best_partner
from wolfstream.solver.working_set.sweep import ExtremeMembers, Members, away, ends_of, swap, toward

# How many corrective steps follow a sample in the set whatever the gap, if the rule allows them.
ALWAYS = 2

# The entries of `walk`'s progress. PAIR: the present problem (`all_pairs.walk_all`). SAMPLE: its
# number in the block. STAGE: see below. SWAPS: how many were taken for the sample. OLD:
# `Layout.old`. BEST, WORST: the ends. PARTNER: of the swap, plus one; 0 before it is chosen.
PAIR, SAMPLE, STAGE, SWAPS, OLD, BEST, WORST, PARTNER, PROGRESS_SIZE = range(9)
# What comes next for a sample: its prediction, the first step of the problem, P1's step, the
# decision whether to swap, or a swap.
ARRIVAL, START, STEP, CORRECTION, SWAP = range(5)


class Rule(NamedTuple):
    """The constants of a problem."""

    ridge: Ridge
    # Whether MSFW's away steps are taken.
    away_steps: bool
    # The most swaps after each of P1's own steps.
    corrective_steps: int


class Arrivals(NamedTuple):
    """The B samples of a block for one problem."""

    # (B,) y; zero for a sample of a class outside the problem, which is only predicted.
    sign: Float64Array
    # (B,) the column of the sample's kernel values once it is admitted.
    column: NDArray[np.int64]
    # (B,) the position of a sample that is a member already, otherwise -1. A member takes its step,
    # but is not admitted again: a copy would double its weight.
    member: NDArray[np.int64]
    # (B,) 1 / weight (`frank_wolfe.problem.Problem`).
    inverse_weight: Float64Array
    # (stored + B, B) `KernelValues.block` transposed, for the predictions of runs of samples of
    # other classes; (0, 0) where these are few.
    by_column: FloatArray


class Scratch(NamedTuple):
    """Reused memory."""

    # (B,) each.
    sign: Float64Array
    total: Float64Array
    # As long as a problem can become.
    row: Float64Array
    # See `sweep.Members`.
    buffer: FloatArray


@inner
def walk(
    problem: Problem,
    values: KernelValues,
    arrivals: Arrivals,
    rule: Rule,
    trace: Trace,
    scratch: Scratch,
    progress: NDArray[np.int64],
) -> int:
    """Take P1 Algorithm 1's step for each sample (SFW), or with away steps Algorithm 3's (MSFW).

    Samples of other classes are only predicted. No weight changes between two samples of the
    problem's own classes, so a run of others is predicted at once.

    Corrective steps follow each step: two for a sample in the set, and up to
    `rule.corrective_steps` while the duality gap over the set exceeds q / 2. The gap alone would
    admit too few samples of a stream that is sorted by class (`benchmarks/README.md`).

    progress: (PROGRESS_SIZE,) zeros at first.

    Returns the column whose row of kernel values is not at hand but needed for the next step, -1
    once all samples are learned. With that row and the same arguments the next call continues.
    """
    waiting = progress[STAGE] != ARRIVAL
    old = progress[OLD] if waiting else problem.size[0]
    if not waiting:
        while old > 0 and problem.column[old - 1] >= values.stored:
            old -= 1
    layout = layout_of(problem, old)
    ends = ExtremeMembers(progress[BEST], progress[WORST]) if waiting else ends_of(problem)
    members = Members(problem, values, layout, rule.ridge, scratch.buffer)
    predicted = 0
    for k in range(progress[SAMPLE], len(arrivals.sign)):
        if arrivals.sign[k] == 0.0:
            if k >= predicted:
                predicted = k + 1
                while predicted < len(arrivals.sign) and arrivals.sign[predicted] == 0.0:
                    predicted += 1
                total = scratch.total
                predict_run(problem, values, arrivals.by_column, k, predicted, trace, total)
            continue
        if progress[STAGE] == ARRIVAL:
            ends = _arrive(members, ends, arrivals, trace, k, progress)
        missing = -1
        if progress[STAGE] < CORRECTION:
            missing, ends = _step(members, ends, rule, trace, k, scratch.row, progress)
        if progress[STAGE] >= CORRECTION:
            always = ALWAYS if arrivals.member[k] >= 0 or trace.admitted[k] else 0
            missing, ends = _correct(members, ends, always, rule.corrective_steps, progress)
        if missing >= 0:
            progress[SAMPLE], progress[OLD] = k, layout.old
            progress[BEST], progress[WORST] = ends.best, ends.worst
            return missing
    progress[SAMPLE] = 0
    return -1


@inner
def _arrive(
    members: Members,
    ends: ExtremeMembers,
    arrivals: Arrivals,
    trace: Trace,
    k: int,
    progress: NDArray[np.int64],
) -> ExtremeMembers:
    """Predict sample k, admit it if its gradient is the largest; returns the ends."""
    problem, values = members.problem, members.values
    decision = decision_value(problem, values, members.layout, k)
    note_decision(problem, decision, trace, k)
    y, member = arrivals.sign[k], arrivals.member[k]
    first = problem.q[0] == 0.0
    progress[STAGE] = START if first else STEP
    g_k = 0.0 if first else -2.0 * y * decision
    best = member if first else ends.best
    if member < 0 and (first or g_k >= problem.gradient[best] - tie_width(problem)):
        best = _admit(problem, values, arrivals, k, g_k)
        trace.admitted[k] = True
    return ExtremeMembers(best, ends.worst)


@inner
def _step(
    members: Members,
    ends: ExtremeMembers,
    rule: Rule,
    trace: Trace,
    k: int,
    row: Float64Array,
    progress: NDArray[np.int64],
) -> tuple[int, ExtremeMembers]:
    """Take P1's step for sample k; returns the column of a missing row or -1, and the ends."""
    problem, values = members.problem, members.values
    start = progress[STAGE] == START
    steeper = rule.away_steps and not start and away_is_steeper(problem, ends.best, ends.worst)
    column = problem.column[ends.worst if steeper else ends.best]
    if not at_hand(values, column):
        return column, ends
    if start:
        _start(problem, values, members.layout, ends.best, rule.ridge, row)
        trace.step[k], ends = INITIAL, ends_of(problem)
    elif steeper:
        trace.step[k], ends = away(members, ends.worst)
    else:
        trace.step[k], ends = TOWARD, toward(members, ends.best)
    progress[STAGE], progress[SWAPS] = ARRIVAL if start else CORRECTION, 0
    return -1, ends


@inner
def _correct(
    members: Members, ends: ExtremeMembers, always: int, most: int, progress: NDArray[np.int64]
) -> tuple[int, ExtremeMembers]:
    """Take `always` swaps (P4) toward the best member, and up to `most` while the gap > q / 2.

    The partner is the member whose swap lowers q most (`partner.best_partner`), as in LIBSVM. P4's
    partner, the member of the smallest gradient, has little weight or lies close by if C is large,
    and the swap then gains next to nothing. `benchmarks/README.md` compares them.

    Returns the column of a missing row or -1, and the ends.
    """
    problem, values = members.problem, members.values
    for count in range(progress[SWAPS], most):
        if progress[STAGE] == CORRECTION:
            gap = problem.gradient[ends.best] + 2.0 * problem.q[0]
            if count >= always and gap <= 0.5 * problem.q[0]:
                break
            if problem.gradient[ends.best] <= problem.gradient[ends.worst] + tie_width(problem):
                break
            progress[STAGE], progress[SWAPS], progress[PARTNER] = SWAP, count, 0
        best = problem.column[ends.best]
        if not at_hand(values, best):
            return best, ends
        if progress[PARTNER] == 0:
            progress[PARTNER] = 1 + best_partner(members, ends)
        partner = progress[PARTNER] - 1
        if not at_hand(values, problem.column[partner]):
            return problem.column[partner], ends
        ends = swap(members, ends.best, partner)
        progress[STAGE] = CORRECTION
    progress[STAGE] = ARRIVAL
    return -1, ends


@inner
def _start(
    problem: Problem,
    values: KernelValues,
    layout: Layout,
    first: int,
    ridge: Ridge,
    row: Float64Array,
) -> None:
    """alpha <- e_first (P1 Algorithm 1, lines 1-2), with the gradients of all members.

    The problem of a class that appears late already has the stored samples of the other class as
    members without weight.
    """
    hessian_row(problem, values, layout, first, ridge, row)
    for m in range(problem.size[0]):
        problem.gradient[m] = -2.0 * row[m]
    problem.alpha[first] = 1.0
    problem.q[0] = row[first]


@inner
def _admit(
    problem: Problem, values: KernelValues, arrivals: Arrivals, k: int, gradient: float
) -> int:
    """Add sample k as a member with alpha 0 (P1 Algorithm 1 line 6); returns its position."""
    new: int = problem.size[0]
    column = arrivals.column[k]
    problem.alpha[new] = 0.0
    problem.gradient[new] = gradient
    problem.sign[new] = arrivals.sign[k]
    problem.column[new] = column
    problem.inverse_weight[new] = arrivals.inverse_weight[k]
    stored = values.stored
    value = values.diagonal[column] if column < stored else values.block[column - stored, column]
    problem.diagonal[new] = np.float64(value) + 1.0
    problem.size[0] = new + 1
    return new
