"""The names that a program imports: clients of a server, scikit-learn estimators, and their files.

    from wolfstream import Client, SFWClassifier, load, save

Each name is imported from its home when it is first asked for, so that the client starts without
the compiled numerics and the estimators start without the client. The estimators need
scikit-learn, which the extra `sklearn` installs.

It may import `service.cli`, `service.client`, `service.notebook`, `solver.estimators`.
It is imported by nothing inside the project.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.client.aio import AsyncClient
    from service.client.aio_stream import AsyncStream
    from service.client.errors import AnswerLost, ClientError, NotDone, Refused, Unreachable
    from service.client.results import Labelled, Learned, Predictions
    from service.client.river import RemoteClassifier, RemoteRegressor
    from service.client.stream import Stream
    from service.client.sync import Client
    from service.notebook.files import load, save
    from solver.estimators.asset_classifier import AssetClassifier
    from solver.estimators.asset_regressor import AssetRegressor
    from solver.estimators.enclosing_ball import EnclosingBall
    from solver.estimators.feature_transformers import FourierFeatures, NystromFeatures
    from solver.estimators.frank_wolfe_classifier import FrankWolfeClassifier
    from solver.estimators.frank_wolfe_regressor import FrankWolfeRegressor
    from solver.estimators.novelty_detector import NoveltyDetector
    from solver.estimators.semiparametric_regressor import SemiparametricSVR
    from solver.estimators.sfw_classifier import SFWClassifier
    from solver.estimators.sfw_regressor import SFWRegressor
    from solver.estimators.stream_classifier import StreamClassifier
    from solver.estimators.stream_merge import merge
    from solver.estimators.stream_regressor import StreamRegressor

__all__ = [
    "AnswerLost",
    "AssetClassifier",
    "AssetRegressor",
    "AsyncClient",
    "AsyncStream",
    "Client",
    "ClientError",
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
    "AnswerLost": "service.client.errors",
    "AssetClassifier": "solver.estimators.asset_classifier",
    "AssetRegressor": "solver.estimators.asset_regressor",
    "AsyncClient": "service.client.aio",
    "AsyncStream": "service.client.aio_stream",
    "Client": "service.client.sync",
    "ClientError": "service.client.errors",
    "EnclosingBall": "solver.estimators.enclosing_ball",
    "FourierFeatures": "solver.estimators.feature_transformers",
    "FrankWolfeClassifier": "solver.estimators.frank_wolfe_classifier",
    "FrankWolfeRegressor": "solver.estimators.frank_wolfe_regressor",
    "Labelled": "service.client.results",
    "Learned": "service.client.results",
    "NotDone": "service.client.errors",
    "NoveltyDetector": "solver.estimators.novelty_detector",
    "NystromFeatures": "solver.estimators.feature_transformers",
    "Predictions": "service.client.results",
    "Refused": "service.client.errors",
    "RemoteClassifier": "service.client.river",
    "RemoteRegressor": "service.client.river",
    "SFWClassifier": "solver.estimators.sfw_classifier",
    "SFWRegressor": "solver.estimators.sfw_regressor",
    "SemiparametricSVR": "solver.estimators.semiparametric_regressor",
    "Stream": "service.client.stream",
    "StreamClassifier": "solver.estimators.stream_classifier",
    "StreamRegressor": "solver.estimators.stream_regressor",
    "Unreachable": "service.client.errors",
    "load": "service.notebook.files",
    "merge": "solver.estimators.stream_merge",
    "save": "service.notebook.files",
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
