"""Estimators in model files: the same files that `wolfstream train` and a server write."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wolfstream.service.engine.model_files import (
    LoadedModel,
    ModelFileError,
    fill_model,
    load_content,
    load_model,
)
from wolfstream.service.errors import Invalid
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.notebook.assets import asset_of, learner_of_asset
from wolfstream.service.notebook.regression_sets import learner_of_values, values_of
from wolfstream.service.notebook.rows import NoCounterpart
from wolfstream.service.notebook.semiparametric import fit_in, learner_of_fit
from wolfstream.service.notebook.streams import learner_of_stream, stream_of
from wolfstream.service.notebook.working_sets import learner_of_set, learner_of_solution, set_of
from wolfstream.service.storage.snapshot_format import State, encode_state, write_content
from wolfstream.solver.estimators.asset import AssetEstimator
from wolfstream.solver.estimators.frank_wolfe_classifier import FrankWolfeClassifier
from wolfstream.solver.estimators.semiparametric_regressor import SemiparametricSVR
from wolfstream.solver.estimators.sfw_classifier import SFWClassifier
from wolfstream.solver.estimators.sfw_regressor import SFWRegressor
from wolfstream.solver.estimators.stream import StreamEstimator

# What can be saved, and how it becomes a model.
_LEARNERS: dict[type, Callable[[Any], Learner]] = {
    StreamEstimator: learner_of_stream,
    SFWClassifier: learner_of_set,
    SFWRegressor: learner_of_values,
    AssetEstimator: learner_of_asset,
    FrankWolfeClassifier: learner_of_solution,
    SemiparametricSVR: learner_of_fit,
}
_CLASSES_OR_NUMBERS = {"classification": set_of, "regression": values_of}
# What a model becomes, by its heads.
_ESTIMATORS: dict[tuple[str, ...], Callable[[Learner], Any]] = {
    ("working_set",): lambda learner: _CLASSES_OR_NUMBERS[learner.model.spec.task](learner),
    ("asset",): asset_of,
    ("semiparametric",): fit_in,
    ("asset", "adaptive"): stream_of,
    ("working_set", "asset", "adaptive"): stream_of,
}


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator into a model file, whole or not at all.

    A server takes the file (`client.upload`, `wolfstream serve --load`), answers as the estimator
    does, and goes on learning as the estimator itself would from now on.
    StreamClassifier, StreamRegressor, SFWClassifier, SFWRegressor, AssetClassifier and
    AssetRegressor can be saved; FrankWolfeClassifier, from whose solution MSFW goes on; and
    SemiparametricSVR, whose samples fill the window from which the server refits it.

    Raises NotFittedError, TypeError for anything else, ValueError for labels or parameters that
    no server's model may have, OSError.
    """
    write_content(Path(path), *encode_state(state_of(estimator)))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the estimator in a model file, which goes on learning.

    A default model becomes a StreamClassifier or StreamRegressor, a working set alone an
    SFWClassifier or SFWRegressor, ASSET alone an AssetClassifier or AssetRegressor, a fitted
    semiparametric head alone a SemiparametricSVR. Parameters that are no part of a model, such as
    `epochs`, have their defaults.

    Raises ValueError for a model that is none of these, ModelFileError for a file that is damaged
    or of another version.
    """
    return _estimator_of(load_model(Path(path)), str(path))


def encode(estimator: Any) -> bytes:
    """Return the bytes of the file that `save` writes. Raises what it raises."""
    return b"".join(encode_state(state_of(estimator)))


def decode(content: bytes, source: str) -> Any:
    """Return the estimator in the bytes of a file, which messages call `source`.

    Raises what `load` raises.
    """
    return _estimator_of(load_content(content, source), source)


def state_of(estimator: Any) -> State:
    """Return the state of a model that answers as an estimator does. Raises what `save` raises."""
    makes = [make for kind, make in _LEARNERS.items() if isinstance(estimator, kind)]
    if not makes:
        raise TypeError(
            f"{type(estimator).__name__} cannot be saved: StreamClassifier, StreamRegressor, "
            "SFWClassifier, SFWRegressor, AssetClassifier, AssetRegressor, SemiparametricSVR and "
            "FrankWolfeClassifier can"
        )
    try:
        learner = makes[0](estimator)
        state = State(*learner.state())
        fill_model(Model(0, "", learner.model.spec), state, "it")
    except (NoCounterpart, ModelFileError) as error:
        raise NoCounterpart(f"this {type(estimator).__name__}: {error}") from None
    except Invalid as error:
        wrong = "; ".join(f"{e.get('pointer', '')} {e['detail']}" for e in error.errors)
        raise NoCounterpart(
            f"a server's model may not have the parameters of this {type(estimator).__name__}: "
            f"{wrong}"
        ) from None
    return state


def _estimator_of(loaded: LoadedModel, source: str) -> Any:
    heads = loaded.model.spec.heads
    if heads not in _ESTIMATORS:
        raise NoCounterpart(f"{source}: no estimator has the heads {' and '.join(heads)}")
    try:
        return _ESTIMATORS[heads](loaded.learner)
    except NoCounterpart as error:
        raise NoCounterpart(f"{source}: {error}") from None
