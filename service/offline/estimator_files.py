"""Saves estimators in model files, which servers and `wolfstream train` use, and loads them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wolfstream.service.errors import Invalid
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.offline.asset_conversion import asset_to_learner, learner_to_asset
from wolfstream.service.offline.conversion import NoCounterpart
from wolfstream.service.offline.semiparametric_conversion import fit_to_learner, learner_to_fit
from wolfstream.service.offline.stream_conversion import learner_to_stream, stream_to_learner
from wolfstream.service.offline.working_set_conversion import (
    learner_to_regression_set,
    learner_to_set,
    regression_set_to_learner,
    set_to_learner,
    solution_to_learner,
)
from wolfstream.service.recovery.model_files import (
    LoadedModel,
    ModelFileError,
    fill_model,
    load_content,
    load_model,
)
from wolfstream.service.storage.snapshot_format import State, encode_state, write_content
from wolfstream.solver.estimators.asset import AssetEstimator
from wolfstream.solver.estimators.frank_wolfe_classifier import FrankWolfeClassifier
from wolfstream.solver.estimators.semiparametric_regressor import SemiparametricSVR
from wolfstream.solver.estimators.sfw_classifier import SFWClassifier
from wolfstream.solver.estimators.sfw_regressor import SFWRegressor
from wolfstream.solver.estimators.stream import StreamEstimator

# class of an estimator -> function that converts it to a model
_LEARNERS: dict[type, Callable[[Any], Learner]] = {
    StreamEstimator: stream_to_learner,
    SFWClassifier: set_to_learner,
    SFWRegressor: regression_set_to_learner,
    AssetEstimator: asset_to_learner,
    FrankWolfeClassifier: solution_to_learner,
    SemiparametricSVR: fit_to_learner,
}
_SET_ESTIMATORS = {"classification": learner_to_set, "regression": learner_to_regression_set}
# heads of a model -> function that converts it to an estimator
_ESTIMATORS: dict[tuple[str, ...], Callable[[Learner], Any]] = {
    ("working_set",): lambda learner: _SET_ESTIMATORS[learner.model.spec.task](learner),
    ("asset",): learner_to_asset,
    ("semiparametric",): learner_to_fit,
    ("asset", "adaptive"): learner_to_stream,
    ("working_set", "asset", "adaptive"): learner_to_stream,
}


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a model file, completely or not at all.

    A server loads the file (`client.upload`, `wolfstream serve --load`), predicts as the estimator
    does, and continues to learn as the estimator would. These can be saved: StreamClassifier,
    StreamRegressor, SFWClassifier, SFWRegressor, AssetClassifier and AssetRegressor;
    FrankWolfeClassifier, whose solution MSFW continues; and SemiparametricSVR, whose samples fill
    the window that the server refits.

    Args:
        estimator: the fitted estimator.
        path: the file to write.

    Raises NotFittedError, TypeError for another class, ValueError for labels or parameters that a
    server's model cannot have, OSError.
    """
    write_content(Path(path), *encode_state(state_of(estimator)))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the estimator in a model file; it can continue to learn.

    A default model becomes a StreamClassifier or StreamRegressor, a working set alone an
    SFWClassifier or SFWRegressor, ASSET alone an AssetClassifier or AssetRegressor, and a fitted
    semiparametric head alone a SemiparametricSVR. Parameters that a model does not have, such as
    `epochs`, get their defaults.

    Args:
        path: the model file.

    Raises ValueError for any other model, ModelFileError for a damaged file or one of another
    version.
    """
    return _estimator_of(load_model(Path(path)), str(path))


def encode(estimator: Any) -> bytes:
    """Return the bytes of the file that `save` would write. Raises like `save`."""
    return b"".join(encode_state(state_of(estimator)))


def decode(content: bytes, source: str) -> Any:
    """Return the estimator in the bytes of a model file. Raises like `load`.

    Args:
        content: the bytes.
        source: what messages call the file.
    """
    return _estimator_of(load_content(content, source), source)


def state_of(estimator: Any) -> State:
    """Return the state of a model that predicts as an estimator does. Raises like `save`."""
    converters = [convert for kind, convert in _LEARNERS.items() if isinstance(estimator, kind)]
    if not converters:
        raise TypeError(
            f"{type(estimator).__name__} cannot be saved: StreamClassifier, StreamRegressor, "
            "SFWClassifier, SFWRegressor, AssetClassifier, AssetRegressor, SemiparametricSVR and "
            "FrankWolfeClassifier can"
        )
    try:
        learner = converters[0](estimator)
        state = State(*learner.state())
        fill_model(Model(0, "", learner.model.spec), state, "it")
    except (NoCounterpart, ModelFileError) as error:
        raise NoCounterpart(f"this {type(estimator).__name__}: {error}") from None
    except Invalid as error:
        faults = "; ".join(f"{e.get('pointer', '')} {e['detail']}" for e in error.errors)
        raise NoCounterpart(
            f"a server's model cannot have the parameters of this {type(estimator).__name__}: "
            f"{faults}"
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
