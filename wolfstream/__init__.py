"""The names that a program imports: clients of a server, scikit-learn estimators, and their files.

    from wolfstream import Client, SFWClassifier, load, save

Each name is imported from its home when it is first asked for, so that the client starts without
the compiled numerics and the estimators start without the client. The estimators need
scikit-learn, which the extra `sklearn` installs.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wolfstream.service.client.aio import AsyncClient
    from wolfstream.service.client.aio_stream import AsyncStream
    from wolfstream.service.client.errors import (
        AnswerLost,
        ClientError,
        NotDone,
        Refused,
        Unreachable,
    )
    from wolfstream.service.client.results import Labelled, Learned, Predictions
    from wolfstream.service.client.river import RemoteClassifier, RemoteRegressor
    from wolfstream.service.client.stream import Stream
    from wolfstream.service.client.sync import Client
    from wolfstream.service.heads.entry_points import CustomLearner
    from wolfstream.service.offline.estimator_files import load, save
    from wolfstream.solver.estimators.asset_classifier import AssetClassifier
    from wolfstream.solver.estimators.asset_regressor import AssetRegressor
    from wolfstream.solver.estimators.enclosing_ball import EnclosingBall
    from wolfstream.solver.estimators.feature_transformers import FourierFeatures, NystromFeatures
    from wolfstream.solver.estimators.frank_wolfe_classifier import FrankWolfeClassifier
    from wolfstream.solver.estimators.frank_wolfe_regressor import FrankWolfeRegressor
    from wolfstream.solver.estimators.novelty_detector import NoveltyDetector
    from wolfstream.solver.estimators.semiparametric_regressor import SemiparametricSVR
    from wolfstream.solver.estimators.sfw_classifier import SFWClassifier
    from wolfstream.solver.estimators.sfw_regressor import SFWRegressor
    from wolfstream.solver.estimators.stream_classifier import StreamClassifier, merge
    from wolfstream.solver.estimators.stream_regressor import StreamRegressor

# In a clone, `service` and `solver` are links to the folders beside this one. A source
# distribution has no links: there the folders are found through this path.
if not (Path(__file__).parent / "solver").is_dir():
    __path__.append(str(Path(__file__).parents[1]))

__all__ = [
    "AnswerLost",
    "AssetClassifier",
    "AssetRegressor",
    "AsyncClient",
    "AsyncStream",
    "Client",
    "ClientError",
    "CustomLearner",
    "EnclosingBall",
    "FourierFeatures",
    "FrankWolfeClassifier",
    "FrankWolfeRegressor",
    "Labelled",
    "Learned",
    "NotDone",
    "NoveltyDetector",
    "NystromFeatures",
    "Predictions",
    "Refused",
    "RemoteClassifier",
    "RemoteRegressor",
    "SFWClassifier",
    "SFWRegressor",
    "SemiparametricSVR",
    "Stream",
    "StreamClassifier",
    "StreamRegressor",
    "Unreachable",
    "load",
    "merge",
    "save",
]

_HOMES = {
    "AnswerLost": "wolfstream.service.client.errors",
    "AssetClassifier": "wolfstream.solver.estimators.asset_classifier",
    "AssetRegressor": "wolfstream.solver.estimators.asset_regressor",
    "AsyncClient": "wolfstream.service.client.aio",
    "AsyncStream": "wolfstream.service.client.aio_stream",
    "Client": "wolfstream.service.client.sync",
    "ClientError": "wolfstream.service.client.errors",
    "CustomLearner": "wolfstream.service.heads.entry_points",
    "EnclosingBall": "wolfstream.solver.estimators.enclosing_ball",
    "FourierFeatures": "wolfstream.solver.estimators.feature_transformers",
    "FrankWolfeClassifier": "wolfstream.solver.estimators.frank_wolfe_classifier",
    "FrankWolfeRegressor": "wolfstream.solver.estimators.frank_wolfe_regressor",
    "Labelled": "wolfstream.service.client.results",
    "Learned": "wolfstream.service.client.results",
    "NotDone": "wolfstream.service.client.errors",
    "NoveltyDetector": "wolfstream.solver.estimators.novelty_detector",
    "NystromFeatures": "wolfstream.solver.estimators.feature_transformers",
    "Predictions": "wolfstream.service.client.results",
    "Refused": "wolfstream.service.client.errors",
    "RemoteClassifier": "wolfstream.service.client.river",
    "RemoteRegressor": "wolfstream.service.client.river",
    "SFWClassifier": "wolfstream.solver.estimators.sfw_classifier",
    "SFWRegressor": "wolfstream.solver.estimators.sfw_regressor",
    "SemiparametricSVR": "wolfstream.solver.estimators.semiparametric_regressor",
    "Stream": "wolfstream.service.client.stream",
    "StreamClassifier": "wolfstream.solver.estimators.stream_classifier",
    "StreamRegressor": "wolfstream.solver.estimators.stream_regressor",
    "Unreachable": "wolfstream.service.client.errors",
    "load": "wolfstream.service.offline.estimator_files",
    "merge": "wolfstream.solver.estimators.stream_classifier",
    "save": "wolfstream.service.offline.estimator_files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "sklearn":
            raise
        text = f"{name} needs scikit-learn: pip install '.[sklearn]' in a clone of wolfstream"
        raise ImportError(text) from error
    globals()[name] = found  # The next use does not come here.
    return found


def __dir__() -> list[str]:
    return [*__all__]
