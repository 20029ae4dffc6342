"""Support vector regression on the simplex, sample by sample: the working set for targets.

    minimise (||w||^2 + b^2) / 2 + C sum w_i (xi_i^2 + xi*_i^2),  h = w'phi + b,
    y_i - h(x_i) <= epsilon + xi_i,  h(x_i) - y_i <= epsilon + xi*_i

is the epsilon-insensitive squared loss. Each sample has two vertices v, of sign s = +1 and -1, and
the dual over their weights lambda >= 0 is

    maximise p'lambda - lambda'M lambda / 2,  p_v = s y - epsilon,
    M_uv = s_u s_v (k(x_u, x_v) + 1) + delta_uv / (2 C w).

With a given epsilon the weights need not sum to a constant, as they do where epsilon is a variable
(`frank_wolfe.duals`). One more vertex makes them: the rest, whose p and M are zero. For any T above
the sum of the weights, lambda = T alpha with alpha on the simplex, and divided by -T^2 / 2 the dual
is a quadratic on it, in the form of `frank_wolfe.duals` with c = 2 p / T (P2 has the enclosing ball
and the SVM in this form, and names regression as future work).

All steps here are swaps (P4 section 2.2), most of them with the vertex of the rest, and their exact
line searches do not contain T, which may be arbitrarily large. At most one of a sample's two
vertices has weight, so that beta = lambda+ - lambda- is enough, and h = sum_i beta_i (k(x_i, .) +
1). The certificate does not contain T either. It is the difference of the primal and the dual over
the members, in which (|y_i - h(x_i)| - epsilon)+ is the slack:

    gap = beta'K beta + sum_i C w_i slack_i^2 + ridge_i beta_i^2 / 2 + epsilon |beta_i| - y_i beta_i
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import SHARE_OF_OBJECTIVE, sum_rounding
from wolfstream.solver.rows.matrix import Matrix, n_nonzeros, take_rows
from wolfstream.solver.working_set.class_pairs import Ridges
from wolfstream.solver.working_set.eviction import eviction_period, slots_to_evict
from wolfstream.solver.working_set.hessian import KernelValues, at_hand, kernel_row
from wolfstream.solver.working_set.intake import Intake
from wolfstream.solver.working_set.store import FREE, Bounds, SampleStore
from wolfstream.solver.working_set.tube_members import TubeMembers
from wolfstream.solver.working_set.tube_steps import PROGRESS_SIZE, TubeRule, TubeTrace, walk_tube


@compiled
def add_values(members: TubeMembers, values: KernelValues) -> None:
    """h(x_m) <- h(x_m) + beta_p (k(x_p, x_m) + 1) for all slots p whose rows are at hand."""
    for p in range(values.stored):
        if members.beta[p] != 0.0 and at_hand(values, p):
            row = kernel_row(values, p).values
            for m in range(np.uint64(values.stored)):
                members.value[m] += members.beta[p] * (np.float64(row[m]) + 1.0)


@compiled
def take_values(
    members: TubeMembers,
    values: KernelValues,
    evicted: NDArray[np.bool_],
    heir: NDArray[np.int64],
) -> None:
    """h(x_m) <- h(x_m) - beta_p (k(x_p, x_m) + 1) for the evicted slots p whose rows are at hand.

    evicted: (slots,).
    heir: (slots,) is written for each p: the nearest slot that stays.
    """
    for p in range(values.stored):
        if members.beta[p] != 0.0 and evicted[p] and at_hand(values, p):
            row, least = kernel_row(values, p).values, np.inf
            for m in range(values.stored):
                near = np.float64(row[m])
                members.value[m] -= members.beta[p] * (near + 1.0)
                apart = members.curvature[m] - members.ridge[m] - 2.0 * near
                if members.is_member[m] > 0.0 and not evicted[m] and apart < least:
                    least, heir[p] = apart, m


@compiled
def give_values(members: TubeMembers, values: KernelValues, heir: NDArray[np.int64]) -> None:
    """Add the weight of evicted slots to that of their heirs whose rows are at hand.

    heir: (slots,) as `take_values` wrote it.
    """
    for p in range(values.stored):
        h = heir[p]
        if h >= 0 and at_hand(values, h):
            row = kernel_row(values, h).values
            for m in range(values.stored):
                members.value[m] += members.beta[p] * (np.float64(row[m]) + 1.0)
            members.beta[h] += members.beta[p]


# The least number of steps between two computations of h, and how many more for each member.
_REFRESH_STEPS, _REFRESH_STEPS_PER_MEMBER = 8192, 8
# A quadratic term this far below zero, as a share of the rest, is no rounding.
_ROUNDING = 1e-9


class TubeBlock(NamedTuple):
    """The results for n samples, (n,) each."""

    # See `tube_steps.TubeTrace`.
    value: Float64Array
    admitted: NDArray[np.bool_]
    step: NDArray[np.int8]
    # The numbers under which the samples were stored, -1 where one was not.
    entered: NDArray[np.int64]


class Certificate(NamedTuple):
    """The dual's value, which is maximised, and a bound of its distance from the optimum."""

    objective: float
    # Over the members of the set; NaN where rounding has made the quadratic term negative, or may
    # be more than a hundredth of the objective.
    gap: float


class TubeSet:
    """SFW or MSFW (P1) for targets of deviation 1, over stored samples.

    kernel: positive semidefinite, with a number as gamma.
    C: the cost of the squared slacks, > 0.
    rule: the width of the tube, and the steps for each sample.
    bounds: of the stored samples and of the memory of kernel values.
    largest_weight: the largest weight that a sample may have.

    Raises ValueError for a bound below two samples, and for a kernel that may be indefinite.
    """

    def __init__(
        self,
        kernel: Kernel,
        C: float,
        rule: TubeRule,
        bounds: Bounds,
        largest_weight: float = 1.0,
    ) -> None:
        if kernel.may_be_indefinite:
            raise ValueError(
                "regression in the working set needs a kernel that is positive semidefinite: "
                "choose coef0 >= 0"
            )
        self.kernel, self.ridges, self.rule = kernel, Ridges(C), rule
        self.precision = self.ridges.precision(kernel, largest_weight)
        self._intake = Intake(kernel, self.precision, bounds)
        self.seen = 0
        # The most steps since h was last computed from the weights.
        self.steps = 0
        self.members = _no_members(0)

    @property
    def store(self) -> SampleStore:
        """The stored samples; raises RuntimeError before the first sample."""
        return self._intake.store

    @property
    def origin(self) -> Float64Array | None:
        """What is subtracted from all rows; None before the first sample."""
        return self._intake.origin

    @property
    def nbytes(self) -> int:
        """The bytes of samples, kernel values, weights and reused memory."""
        return self._intake.nbytes + sum(array.nbytes for array in self.members)

    def growth(self, samples: int, block: int, width: int) -> int:
        """Return the most bytes that further samples can add.

        samples: their number.
        block: how many of them come at a time.
        width: the features of a row.
        """
        return self._intake.growth(samples, block, width)

    @property
    def work_per_sample(self) -> int:
        """The most multiplications for one more sample, without exponentials and refreshes.

        They are those of a kernel row, of the sample's value, and three for each member and step.
        """
        if not self._intake.begun:
            return 0
        used = self.store.used
        return n_nonzeros(self.store.used_rows().exact) + used * (
            1 + 3 * (1 + self.rule.corrective_steps)
        )

    def absorb(
        self,
        X: Matrix,
        y: Float64Array,
        entered: NDArray[np.int64] | None = None,
        weight: Float64Array | None = None,
    ) -> TubeBlock:
        """Learn n > 0 samples, strictly in order.

        The result does not depend on the division of a stream into calls, up to the rounding of
        matrix products.

        X: (n, d) finite rows.
        y: (n,) float64 targets.
        entered: (n,) int64, in a further pass over the same rows what the last pass returned;
            None in the first.
        weight: (n,) float64 sample weights > 0; None if all are 1.

        Raises TypeError for sparse rows after dense ones, or dense after sparse.
        """
        if entered is None:
            entered = np.full(len(y), FREE, np.int64)
        self._intake.open_for(X)
        pieces, start = [], 0
        while start < len(y):
            self._evict_if_due()
            part = slice(start, min(start + self._intake.longest_block(self.seen), len(y)))
            block_weight = None if weight is None else weight[part]
            rows = take_rows(X, part)
            pieces.append(self._absorb_block(rows, y[part], entered[part], block_weight))
            start = part.stop
        return TubeBlock(*(np.concatenate(column) for column in zip(*pieces, strict=True)))

    def certificate(self) -> Certificate:
        """Return the dual's value and the gap, by the formula in the module's docstring."""
        columns = np.flatnonzero(self.members.is_member)
        beta, value, y, ridge = (field[columns] for field in self.members[:4])
        quadratic = float(beta @ value)
        slack = np.maximum(np.abs(y - value) - self.rule.epsilon, 0.0)
        linear = float(y @ beta) - self.rule.epsilon * float(np.abs(beta).sum())
        penalty = 0.5 * float((ridge * beta * beta).sum())
        objective = linear - penalty - 0.5 * quadratic
        gap = quadratic + 0.5 * float((slack * slack / ridge).sum()) + penalty - linear
        exact = quadratic >= -_ROUNDING * (abs(linear) + penalty)
        # A bound of the gap's rounding: that of each h(x), times the factors of h(x) in the terms.
        size = float(np.abs(beta).sum())
        rounding = sum_rounding(self.kernel, self.precision.dtype) * size
        rounding *= float(np.abs(self.store.diagonal[columns]).max(initial=0.0)) + 1.0
        rounding *= size + float((slack / ridge).sum())
        exact = exact and rounding <= SHARE_OF_OBJECTIVE * abs(objective)
        return Certificate(objective, max(gap, 0.0) if exact else np.nan)

    def _absorb_block(
        self,
        X: Matrix,
        y: Float64Array,
        entered: NDArray[np.int64],
        weight: Float64Array | None,
    ) -> TubeBlock:
        codes = np.zeros(len(y), np.int64)
        inverse_weight = self.ridges.inverse_weights(codes, weight, self.precision)
        block = self._intake.arriving(X, codes, inverse_weight, entered)
        values = block.values
        self._write_block(values, y, self.ridges.class_ridge(0) * inverse_weight)
        trace = TubeTrace(np.empty(len(y)), np.zeros(len(y), np.bool_), np.zeros(len(y), np.int8))
        self._walk(values, block.column, trace)
        chosen, slots = self._intake.keep(block, trace.admitted, self.seen + np.arange(len(y)))
        self._settle(values.stored, len(y), chosen, slots[chosen])
        self.seen += len(y)
        self.steps += len(y) * (1 + self.rule.corrective_steps)
        self._refresh_if_due()
        return TubeBlock(*trace, self.store.entered_of(slots))

    def _write_block(self, values: KernelValues, y: Float64Array, ridge: Float64Array) -> None:
        """Write targets, ridges and curvatures of a block into the columns after all slots."""
        stored, n = values.stored, len(y)
        if stored + n > len(self.members.beta):
            longer = _no_members(max(stored + n, 2 * len(self.members.beta)))
            for old, new in zip(self.members, longer, strict=True):
                new[:stored] = old[:stored]
            self.members = longer
        columns = slice(stored, stored + n)
        self.members.target[columns], self.members.ridge[columns] = y, ridge
        diagonal = values.block[np.arange(n), stored + np.arange(n)].astype(np.float64)
        self.members.curvature[columns] = diagonal + 1.0 + ridge

    def _walk(self, values: KernelValues, column: NDArray[np.int64], trace: TubeTrace) -> None:
        """Take the samples of a block in order, and compute the kernel rows that steps need."""
        progress = np.zeros(PROGRESS_SIZE, np.int64)
        arguments = self.members, values, column, self.rule, trace, progress
        while (missing := walk_tube(*arguments)) >= 0:
            self.store.fetch(np.array([missing]))

    def _settle(
        self, stored: int, n: int, chosen: NDArray[np.int64], slots: NDArray[np.int64]
    ) -> None:
        """Move the admitted samples to their slots, and clear the columns after all slots."""
        for field, empty in zip(self.members, _EMPTY, strict=True):
            admitted = field[stored + chosen]
            field[stored : stored + n] = empty
            field[slots] = admitted

    def _refresh_if_due(self) -> None:
        if self.steps >= _REFRESH_STEPS + _REFRESH_STEPS_PER_MEMBER * self.store.used:
            self.refresh()

    def refresh(self) -> None:
        """Compute h from the weights, without the rounding of thousands of updates."""
        self.members.value[:] = 0.0
        for values in self.store.parts(np.flatnonzero(self.members.beta)):
            add_values(self.members, values)
        self.steps = 0

    def _evict_if_due(self) -> None:
        """Evict samples at an eviction point, where the set is too close to its bound.

        Samples without weight leave first, then the oldest, whose weight goes to the nearest
        member, because this changes h least (`working_set.eviction`).
        """
        max_size, store = self._intake.bounds.max_size, self.store
        if max_size is None or not self._intake.at_eviction_point(self.seen):
            return
        excess = store.size - (max_size - eviction_period(max_size))
        if excess <= 0:
            return
        weighted = self.members.beta[: store.used] != 0.0
        slots = slots_to_evict(store.occupied_slots(), store.code, store.entered, weighted, excess)
        evicted = np.zeros(store.used, np.bool_)
        evicted[slots] = True
        heir = np.full(store.used, FREE)
        for values in store.parts(np.flatnonzero(evicted & weighted)):
            take_values(self.members, values, evicted, heir)
        for values in store.parts(np.unique(heir[heir != FREE])):
            give_values(self.members, values, heir)
        for field, empty in zip(self.members, _EMPTY, strict=True):
            field[slots] = empty
        store.evict(slots)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays from which `restore` continues bit for bit."""
        added = self.store.added if self._intake.begun else 0
        counts = np.array([self.seen, added, self.steps], np.int64)
        if not self._intake.begun:
            return {"counts": counts}
        used = self.store.used
        arrays = {name: getattr(self.members, name)[:used].copy() for name in _SAVED}
        return {"counts": counts, **self._intake.state(), **arrays}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a set with the same parameters."""
        self.seen, added, self.steps = (int(count) for count in state["counts"])
        if not self._intake.restore(state, added):
            return
        store = self.store
        store.compute_values()
        occupied = store.code[: store.used] != FREE
        ridge = self.ridges.class_ridge(0) * store.inverse_weight[: store.used]
        ridge = np.where(occupied, ridge, 0.0)
        beta, value, target = (np.array(state[name]) for name in _SAVED)
        curvature = np.where(occupied, store.diagonal[: store.used] + 1.0 + ridge, 1.0)
        is_member = occupied.astype(np.float64)
        self.members = TubeMembers(beta, value, target, ridge, curvature, is_member)


_SAVED = ("beta", "value", "target")
# The values of `TubeMembers` of a column without a member.
_EMPTY = TubeMembers(*np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]))


def _no_members(n: int) -> TubeMembers:
    return TubeMembers(*(np.full(n, empty) for empty in _EMPTY))
