"""Converts StreamClassifier and StreamRegressor to default models of a server, and back."""

from copy import deepcopy
from math import inf
from typing import Any

import numpy as np

from wolfstream.service.heads.adaptive import AdaptiveLearner, pins_of
from wolfstream.service.heads.asset import AssetLearner
from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.working_set import SetLearner
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.offline.conversion import (
    NoCounterpart,
    are_numbers,
    classes_of,
    labels_of,
    number_columns,
)
from wolfstream.service.samples.labels import Label
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.solver.estimators.stream import temporal_of
from wolfstream.solver.estimators.stream_classifier import StreamClassifier
from wolfstream.solver.estimators.stream_regressor import StreamRegressor
from wolfstream.solver.labels import key_of, text_of
from wolfstream.solver.stream.model import StreamModel

_Head = ClassificationHead[Any] | RegressionHead
_BANK: HeadName = "adaptive"
_PAPER_HEADS: tuple[HeadName, ...] = ("working_set", "asset")


def stream_to_learner(estimator: StreamClassifier | StreamRegressor) -> Learner:
    """Return a default model with the state of an estimator, bit for bit.

    Raises NoCounterpart, Invalid.
    """
    model, labels = estimator.model, None
    if isinstance(estimator, StreamClassifier):
        labels = labels_of(estimator.classes_)
    learner = Learner(Model(0, "", _spec_of(estimator, labels)))
    state = model.__getstate__()
    # Restoring computes the kernel values again. The estimator is restored as well, so that it
    # continues from the same bits as the model.
    model.__setstate__(deepcopy(state))
    states: dict[HeadName, Any] = {model.head: state["paper"], _BANK: state["bank"]}
    for name, (plain, arrays) in states.items():
        head = _head(learner, name)
        if isinstance(head, ClassificationHead):
            assert labels is not None
            head.meet(labels[code] for code in state["classes"][name])
        head.calibration.restore(state["calibration"][name])
        head.learner.restore(plain, arrays)
    learner.sequence = _samples(learner)
    rows, source = learner.rows, model.rows
    if not source.form.begun:  # sparse rows of numbered columns
        number_columns(learner, estimator.n_features_in_)
        return learner
    rows.form, rows.names, rows.preparation = source.form, source.names, source.preparation
    rows.first = [
        part if labels is None else part._replace(y=[labels[code] for code in part.y])
        for part in source.first
    ]
    return learner


def learner_to_stream(learner: Learner) -> StreamClassifier | StreamRegressor:
    """Return an estimator with the state of a default model. Raises NoCounterpart."""
    spec, rows = learner.model.spec, learner.rows
    _check_default(spec)
    head = _learned_head(learner)
    classes = _classes(learner)
    prepare = spec.prepare
    assert prepare is not None
    names = None if rows.names is None else rows.names.names()
    numbered = names is not None and are_numbers(names)
    parameters: Any = {
        "missing": prepare.missing,
        "timestamps": list(prepare.timestamps),
        "temporal": spec.temporal,
        "seed": spec.seed,
    }
    model = StreamModel.__new__(StreamModel)
    model.__setstate__(_state(learner, head, classes, numbered=numbered))
    csr_features = len(names or ()) if numbered else None
    if classes is None:
        return StreamRegressor(**parameters).resume(model, csr_features=csr_features)
    parameters["class_weight"] = _given_weights(spec, classes)
    return StreamClassifier(head=head, **parameters).resume(  # type: ignore[arg-type]
        model, classes_of(classes), declared=spec.classes is not None, csr_features=csr_features
    )


def _state(
    learner: Learner, head: HeadName, classes: list[Label] | None, *, numbered: bool
) -> dict[str, Any]:
    """Return the state of a model for `StreamModel.__setstate__`.

    Args:
        learner: the model.
        head: the head that has learned besides the bank.
        classes: all labels; None for regression.
        numbered: whether the names of the columns are consecutive numbers.
    """
    spec, rows, fresh = learner.model.spec, learner.rows, Learner(learner.model).rows
    code_of = {key_of(label): code for code, label in enumerate(classes or ())}

    def codes(labels: Any) -> Any:
        return labels if classes is None else [code_of[key_of(label)] for label in labels]

    heads = {name: _head(learner, name) for name in (head, _BANK)}
    return {
        "task": spec.task,
        "head": head,
        "preparing": rows.form.prepare,
        "temporal": spec.temporal,
        "seed": spec.seed,
        "naive_bayes": pins_of(spec).naive_bayes,
        "class_weight": _weights_by_code(spec, classes),
        "scores": "coupled" if spec.working_set is None else spec.working_set.scores,
        "form": fresh.form if numbered else rows.form,
        "names": None if numbered or rows.names is None else rows.names.names(),
        "facts": rows.facts.plain(),
        "facts_arrays": rows.facts.arrays(),
        "first": [part._replace(head=head, y=codes(part.y)) for part in rows.first],
        "preparation": {} if rows.preparation is None else rows.preparation.state(),
        "classes": {name: codes(head.classes) for name, head in heads.items()},
        "paper": heads[head].learner.state(),
        "bank": heads[_BANK].learner.state(),
        "calibration": {name: head.calibration.state() for name, head in heads.items()},
    }


def _spec_of(
    estimator: StreamClassifier | StreamRegressor, labels: list[Label] | None
) -> ModelSpec:
    spec: dict[str, Any] = {
        "task": "regression" if labels is None else "classification",
        "prepare": {
            "missing": estimator.missing,
            "timestamps": list(estimator.timestamps),
            "texts": estimator.model.preparing.texts,
            "codes": estimator.model.preparing.codes,
            "names": "strict",  # as estimators are
            "columns": dict(estimator.model.preparing.columns),
        },
        "temporal": temporal_of(estimator.temporal),
        "seed": int(estimator.seed),
    }
    if (horizons := estimator.model.pins.naive_bayes) is not None:
        spec["adaptive"] = {"naive_bayes": [None if h == inf else int(h) for h in horizons]}
    if labels is not None and isinstance(estimator, StreamClassifier) and estimator.class_weight:
        spec.setdefault("adaptive", {})["class_weight"] = _class_weight(estimator)
    if labels is not None:
        spec["working_set"] = {"scores": estimator.model.set_parameters.scores}
    if labels is not None and isinstance(estimator, StreamClassifier) and estimator.declared:
        spec["classes"] = labels
    return read_spec(spec)


def _class_weight(estimator: StreamClassifier) -> Any:
    weights = estimator.class_weight
    return (
        weights if isinstance(weights, str) else {text_of(k): float(v) for k, v in weights.items()}
    )


def _weights_by_code(spec: ModelSpec, classes: list[Label] | None) -> Any:
    weights = None if spec.adaptive is None else spec.adaptive.class_weight
    if not isinstance(weights, dict):
        return weights
    codes = {text_of(label): str(code) for code, label in enumerate(classes or ())}
    return {codes[text]: weight for text, weight in weights.items() if text in codes}


def _given_weights(spec: ModelSpec, classes: list[Label]) -> Any:
    """Return the parameter `class_weight`; labels not known yet are texts, as in the spec."""
    weights = None if spec.adaptive is None else spec.adaptive.class_weight
    if not isinstance(weights, dict):
        return weights
    label_of = {text_of(label): label for label in classes}
    return {label_of.get(text, text): weight for text, weight in weights.items()}


def _check_default(spec: ModelSpec) -> None:
    """Raise NoCounterpart unless a spec has the default heads, with the default parameters."""
    names = ("task", "classes", "temporal", "seed")
    fields = {name: getattr(spec, name) for name in names if getattr(spec, name) is not None}
    prepare = spec.prepare
    if prepare is not None:
        fields["prepare"] = prepare.model_dump(exclude={"named"})
    if spec.adaptive is not None:
        bank_names = ("naive_bayes", "class_weight")
        fields["adaptive"] = {name: getattr(spec.adaptive, name) for name in bank_names}
    if spec.task == "classification" and spec.working_set is not None:
        fields["working_set"] = {"scores": spec.working_set.scores}
    # Estimators store no unlabelled rows, so `pending` does not matter.
    no_pending = {"pending": None}
    default = read_spec(fields).model_copy(update=no_pending)
    if spec.model_copy(update=no_pending) != default:
        raise NoCounterpart(
            "no estimator has the heads and parameters of its spec: StreamClassifier and "
            "StreamRegressor have those of the default spec"
        )


def _learned_head(learner: Learner) -> HeadName:
    """Return the working set or ASSET, whichever has learned. Raises NoCounterpart."""
    learned: list[HeadName] = []
    for name in _PAPER_HEADS:
        solver = _head(learner, name).learner if name in learner.heads else None
        if (isinstance(solver, SetLearner) and solver.current.n_classes) or (
            isinstance(solver, AssetLearner) and solver.current.steps
        ):
            learned.append(name)
    if not learned:
        raise NoCounterpart("it has learned nothing")
    if len(learned) > 1:
        raise NoCounterpart(
            "its working set and its ASSET have both learned, and an estimator has one of them"
        )
    return learned[0]


def _classes(learner: Learner) -> list[Label] | None:
    """Return all labels, in the order of the spec or else sorted; None for regression."""
    labels = _head(learner, _BANK).classes
    if labels is None:
        return None
    declared = learner.model.spec.classes
    if declared is not None:
        return list(declared)
    return labels_of(np.sort(classes_of(labels)))


def _head(learner: Learner, name: HeadName) -> _Head:
    head = learner.heads[name]
    assert isinstance(head, ClassificationHead | RegressionHead)
    return head


def _samples(learner: Learner) -> int:
    bank = _head(learner, _BANK).learner
    assert isinstance(bank, AdaptiveLearner)
    return bank.samples
