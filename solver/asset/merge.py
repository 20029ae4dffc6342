"""The average of ASSET learners that learned parts of a stream in parallel (P3, conclusion)."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import dimension_of, map_arrays
from wolfstream.solver.asset.iterates import (
    Iterates,
    in_class_order,
    refresh,
    widened_iterates,
    window_sums,
)
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.subgradient import D_G_SAMPLES, Progress


def merge(
    learners: Sequence[Asset], class_codes: Sequence[NDArray[np.int64]] | None = None
) -> Asset:
    """Return sum S_k / sum W_k: the average of learners with the same parameters and features.

    S_k and W_k are the sums of eta gamma and of eta over the two windows of learner k, so the
    averaged model of the result is the average, weighted by eta, over the iterates of all learners.
    The iterate from which it continues, which is also the model of asset*, is
    sum j_k gamma_k / sum j_k with the steps j_k of each; its number of steps is their sum.

    Samples that the learners had in common, before they were copied, count once for each of them.

    learners: at least one.
    class_codes: for each learner, the numbers in the result of the classes that it has met; None if
        all have met the same classes in the same order.

    Raises ValueError, with the reason, for learners that cannot be averaged.
    """
    if not learners:
        raise ValueError("there is no learner to merge")
    first = max(learners, key=_width)
    for other in learners:
        _check_alike(first, other)
    if class_codes is None:
        _check_classes(first, learners)
    merged = Asset(**first.parameters, class_weight=first.class_weight)
    merged.restore(first.state())
    if class_codes is not None:
        merged.meet_classes(1 + max(int(codes.max(initial=-1)) for codes in class_codes))
    steps = np.array([float(other.steps) for other in learners])
    for number, run in enumerate(merged.runs.each):
        others = [other.runs.each[number] for other in learners]
        iterates = [widened_iterates(other.iterates, _width(first)) for other in others]
        if class_codes is not None:
            orders = [_machine_order(codes, merged.n_classes) for codes in class_codes]
            iterates = [in_class_order(m, order) for m, order in zip(iterates, orders, strict=True)]
        run.iterates = _merged_iterates(iterates, steps / steps.sum())
        run.progress = _merged_progress([other.progress for other in others], steps)
    lost = np.stack([other.runs.lost for other in learners])
    merged.runs.lost = steps @ lost / steps.sum()
    return merged


def copy_of(learner: Asset) -> Asset:
    """Return another learner in the same state, to learn other samples or another order of them."""
    other = Asset(**learner.parameters, class_weight=learner.class_weight)
    other.restore({name: array.copy() for name, array in learner.state().items()})
    return other


def sibling_of(learner: Asset) -> Asset:
    """Return a learner with the same features that knows no class and has taken no step.

    The two can be merged later.

    Raises ValueError while the learner is still choosing its features.
    """
    _check_frozen(learner)
    other = copy_of(learner)
    other.n_classes = 0
    other.runs.begin(1, _width(other))
    return other


def relative_variance(learners: Sequence[Asset]) -> float:
    """Return sum_k ||gamma_k - m||^2 / ((K - 1) ||m||^2), the variance of one of K runs.

    gamma_k are the averaged models with their intercepts, and m is their mean. The mean of K
    independent runs has a K-th of this variance (P3: "reduce the variation of the final iterate
    distribution, possibly by running several SA algorithms in parallel"). NaN if m is zero.

    learners: K >= 2, with the same features.
    """
    views = [learner.view() for learner in learners]
    models = np.array([np.column_stack([view.gamma, view.b]).ravel() for view in views])
    mean = models.mean(axis=0)
    square = float(mean @ mean)
    spread = float(((models - mean) ** 2).sum()) / (len(models) - 1)
    return spread / square if square > 0.0 else math.nan


def _width(learner: Asset) -> int:
    return 0 if learner.features is None else dimension_of(learner.features)


def _check_alike(first: Asset, other: Asset) -> None:
    for learner in (first, other):
        _check_frozen(learner)
    for name, value in first.parameters.items():
        if other.parameters[name] != value:
            raise ValueError(
                f"{name} differs: {value!r} and {other.parameters[name]!r}; learners that are to "
                "be merged need the same parameters"
            )
    if not _same_map(first, other):
        raise ValueError(
            "the feature maps differ: begin all learners with the same rows, or from one state"
        )
    if first.scale != other.scale:
        raise ValueError(
            "the targets are scaled differently: begin all learners with the same rows, or from "
            "one state"
        )


def _check_frozen(learner: Asset) -> None:
    if learner.features is None or not learner.frozen:
        raise ValueError("a learner is still choosing its features: let it learn more first")


def _check_classes(first: Asset, learners: Sequence[Asset]) -> None:
    for other in learners:
        if first.n_classes != other.n_classes:
            message = f"one learner knows {first.n_classes} classes, another {other.n_classes}"
            raise ValueError(message)


def _machine_order(class_codes: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return the new number of each iterate: of met classes, of the others, and the last one's."""
    return np.concatenate([class_codes, np.setdiff1d(np.arange(classes + 1), class_codes)])


def _same_map(first: Asset, other: Asset) -> bool:
    """Return whether the maps are equal on the features of sparse rows that both have met."""
    assert first.features is not None
    assert other.features is not None
    ours, theirs = map_arrays(first.features), map_arrays(other.features)
    if ours.keys() != theirs.keys():
        return False
    if first.parameters["features"] == "identity":
        sparse = ours["width"][1]
        return bool(sparse == theirs["width"][1] and (sparse or _width(first) == _width(other)))
    if first.parameters["features"] == "fourier" and len(ours["origin"]):
        # The same seed gives the same phases; the origin changes only their rounding.
        return np.array_equal(ours["frequency"], theirs["frequency"])
    if first.parameters["features"] == "fourier":
        ours["frequency"] = ours["frequency"][: len(theirs["frequency"])]
    return all(np.array_equal(ours[name], theirs[name]) for name in ours)


def _merged_iterates(iterates: list[Iterates], share: Float64Array) -> Iterates:
    """Return iterates with the sums of all, and with the iterates averaged by `share`."""
    sums = [window_sums(m) for m in iterates]
    gamma = [m.scale[:, None] * m.direction for m in iterates]
    count = len(iterates[0].b)
    result = Iterates(
        direction=np.tensordot(share, np.array(gamma), axes=1),
        scale=np.ones(count),
        square_norm=np.zeros(count),
        b=np.tensordot(share, np.array([m.b for m in iterates]), axes=1),
        scale_sum=np.zeros(count),
        rest=np.sum(sums, axis=0),
        before=np.sum([m.before for m in iterates], axis=0),
        b_sum=np.sum([m.b_sum for m in iterates], axis=0),
        b_before=np.sum([m.b_before for m in iterates], axis=0),
        moved=np.zeros(count),
        factor=np.ones(count),
        weight=np.sum([m.weight for m in iterates], axis=0),
    )
    refresh(result)
    return result


def _merged_progress(progress: list[Progress], steps: Float64Array) -> Progress:
    """Return means over all samples, for square norms over those that each learner counted."""
    total = steps.sum()
    counted = np.minimum(steps, D_G_SAMPLES).sum()
    square_norms = sum(p.square_norms for p in progress)

    def mean(name: str, counts: Float64Array) -> Float64Array:
        each = zip(counts, progress, strict=True)
        return np.asarray(sum(n * getattr(p, name) for n, p in each) / counts.sum())

    return Progress(
        steps=np.array([total]),
        square_norms=np.asarray(square_norms * min(total, D_G_SAMPLES) / counted),
        loss=mean("loss", steps),
        target=mean("target", steps),
        weight=mean("weight", steps),
        square_weight=mean("square_weight", np.minimum(steps, D_G_SAMPLES)),
    )
