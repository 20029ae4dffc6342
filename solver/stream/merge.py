"""Merges models that have learned parts of a stream into one.

The first samples decide what all parts must share: columns, a kernel's width, random features. So
one model learns these samples, and `sibling` begins the others. Each sample must go to one model
only. `merge` does not change the parts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.merge import merge as merge_banks
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.merge import merge as merge_asset
from wolfstream.solver.asset.merge import sibling_of
from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.merge import merge as merge_calibrations
from wolfstream.solver.labels import Label, key_of
from wolfstream.solver.prepare.scale import copied, pooled
from wolfstream.solver.stream.calibrated_classifier import CalibratedClassifier
from wolfstream.solver.stream.kernel_learner import KernelLearner
from wolfstream.solver.stream.model import StreamModel
from wolfstream.solver.working_set.merge import renumbered, support_of, unite
from wolfstream.solver.working_set.merged_widths import merge_widths


def sibling(model: StreamModel) -> StreamModel:
    """Return a model with the same columns and random features that has learned nothing.

    The scales of its columns continue from those of the model.

    Raises ValueError for a model that is still deciding these, or that cannot be merged.
    """
    _check(model)
    other = _like(model)
    if model.rows.preparation is not None:
        other.rows.preparation = other.rows.fresh_preparation()
        assert other.rows.preparation is not None
        other.rows.preparation.moments = copied(model.rows.preparation.moments)
    _begin_beside(other.paper, model.paper)
    return other


def merge(
    models: Sequence[StreamModel], labels: Sequence[Sequence[Label]] | None = None
) -> StreamModel:
    """Return the model of all samples that a model and its siblings have learned.

    `adaptive.merge`, `working_set.merge`, `asset.merge` and `calibration.merge` say how each part
    is merged. Models without samples are ignored.

    models: a model and its siblings.
    labels: for each model, the labels of its classes in the result; None if they are its own.

    Raises ValueError, with the reason, for models that cannot be merged.
    """
    each = labels or [model.classes or () for model in models]
    learned = [(model, names) for model, names in zip(models, each, strict=True) if model.learned]
    if not learned:
        raise ValueError("none of the models has learned a sample")
    parts = [model for model, _ in learned]
    for model in parts:
        _check(model)
        _check_same(parts[0], model)
    merged = _like(parts[0])
    moments = [part.rows.preparation.moments for part in parts if part.rows.preparation is not None]
    if moments:
        merged.rows.preparation = merged.rows.fresh_preparation()
        assert merged.rows.preparation is not None
        merged.rows.preparation.moments = pooled(moments)
    classes, class_codes = _union([names for _, names in learned])
    for name, head in merged.heads.items():
        assert isinstance(head, CalibratedClassifier)
        head.meet(classes)
        calibrations = [
            calibration
            for model in parts
            if isinstance(calibration := model.heads[name].calibration, ClassCalibration)
        ]
        merge_calibrations(head.calibration, calibrations, class_codes, len(classes))
    _merge_learners(merged.paper, [model.paper for model in parts], class_codes)
    fresh = merged.bank.begin(parts[0].bank.row_columns, parts[0].bank.texts)
    assert isinstance(fresh, AdaptiveClassifier)
    banks = [bank for model in parts if isinstance(bank := model.bank.current, AdaptiveClassifier)]
    merge_banks(banks, class_codes, fresh)
    if merged.bank.past is not None:
        merged.bank.past.meet(fresh.n_classes)
    merged.bank.merge_class_weights([model.bank for model in parts], class_codes)
    return merged


def _like(model: StreamModel) -> StreamModel:
    """Return a model with the same parameters and form of rows that has learned nothing."""
    other = StreamModel(
        model.task,
        model.head,
        preparing=model.preparing,
        temporal=model.temporal,
        seed=model.seed,
        class_weight=model.class_weight,
    )
    other.set_parameters, other.pins = model.set_parameters, model.pins
    other.begin()
    other.rows.form = model.rows.form
    if model.rows.names is not None:
        other.rows.names = type(model.rows.names)(model.rows.names.names())
    return other


def _union(
    each: Sequence[Sequence[Label]],
) -> tuple[list[Label], list[NDArray[np.int64]]]:
    """Return all labels, and for each sequence of labels their codes in the result."""
    union = {key_of(label): label for labels in each for label in labels}
    codes = {key: i for i, key in enumerate(union)}
    each_codes = [np.array([codes[key_of(label)] for label in labels], np.int64) for labels in each]
    return list(union.values()), each_codes


def _check(model: StreamModel) -> None:
    if model.task != "classification":
        raise ValueError("models of numbers cannot be merged: their targets' scales differ")
    if isinstance(model.class_weight, Mapping):
        raise ValueError(
            "models with weights for some classes cannot be merged; use 'balanced' or none"
        )
    if model.temporal is True:
        raise ValueError("a model that always uses the labels before a row cannot be merged")
    form = model.rows.form
    if not model.learned or (form.begun and not form.settled):
        raise ValueError("the first samples have not settled the columns: learn more before")


def _check_same(first: StreamModel, other: StreamModel) -> None:
    parameters = ("head", "seed", "set_parameters", "pins", "class_weight", "preparing")
    if any(getattr(first, name) != getattr(other, name) for name in parameters):
        raise ValueError("the models' parameters differ: begin all of them as siblings of one")
    names = [model.rows.names and model.rows.names.names() for model in (first, other)]
    if first.rows.form != other.rows.form or names[0] != names[1]:
        raise ValueError(
            "one model has met a column, name or category that another one has not: rows of "
            "models that are to be merged must have those of the first samples"
        )


def _begin_beside(new: KernelLearner[Any], learner: KernelLearner[Any]) -> None:
    """Give a learner without samples what merged learners must share with each other.

    That is gamma and the features of ASSET, and gamma of a working set. A working set with a
    horizon shares nothing: merging builds it again from its samples.

    Raises ValueError while the learner is still choosing its kernel.
    """
    if not learner.frozen and learner.relabelling_set is None:
        raise ValueError("a learner is still choosing its kernel: let it learn more first")
    if isinstance(learner.current, Asset):
        new.go_on_from(sibling_of(learner.current), learner)
    elif learner.relabelling_set is None:
        new.go_on_from(new.build(learner.current.kernel), learner)


def _merge_learners(
    merged: KernelLearner[Any],
    each: Sequence[KernelLearner[Any]],
    class_codes: Sequence[NDArray[np.int64]],
) -> None:
    """Merge several learners into one without samples.

    merged: becomes the result.
    each: the learners.
    class_codes: for each learner, the codes (K_k,) of its classes in the result.

    Raises ValueError for learners that cannot be merged.
    """
    widest = max(each, key=lambda learner: learner.features)
    sets = [learner.relabelling_set for learner in each if learner.relabelling_set is not None]
    if sets:
        result = merged.new_relabelling_set()
        merge_widths(result.set, [one.set for one in sets], class_codes)
        result.watch_from_now()
        merged.go_on_from(result, widest)
    elif isinstance(each[0].current, Asset):
        merged.go_on_from(merge_asset([learner.current for learner in each], class_codes), widest)
    else:
        classes = 1 + max(int(codes.max()) for codes in class_codes)
        united = merged.build(widest.current.kernel)
        supports = [
            renumbered(support_of(learner.current), codes, classes)
            for learner, codes in zip(each, class_codes, strict=True)
        ]
        unite(united, supports, classes)
        united.seen = sum(learner.seen for learner in each)
        merged.go_on_from(united, widest)
