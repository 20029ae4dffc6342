"""River's learners as heads: `{"custom": {"learner": "river", "options": {...}}}`.

    {"model": "river.tree.HoeffdingTreeClassifier", "parameters": {"grace_period": 100}}
    {"model": ["river.preprocessing.StandardScaler", "river.linear_model.PARegressor"]}

A list is a pipeline. Each item is a name, or an object with a name as `model` and `parameters`,
whose values may be models again. Rows are prepared as for every head. Features are named 0, 1, ...,
and classes by their numbers. Models are saved as pickles, so WOLFSTREAM_PICKLE_HEADS must name
`river`.
"""

import importlib
import inspect
import pickle
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wolfstream.service.heads.entry_points import CustomLearner
from wolfstream.solver.arrays import Float64Array

_PICKLE = "pickle"


class RiverLearner(CustomLearner):
    """A classifier or regressor of River."""

    pickles: ClassVar[bool] = True

    def __init__(self, options: Mapping[str, Any], *, regression: bool, seed: int) -> None:
        """Create the model that the options describe; see `CustomLearner`.

        A model with a parameter `seed` gets the spec's seed unless its parameters set another.
        """
        super().__init__(options, regression=regression, seed=seed)
        self._model: Any = _model(options, seed)
        method = "predict_one" if regression else "predict_proba_one"
        for wanted in ("learn_one", method):
            if not callable(getattr(self._model, wanted, None)):
                raise ValueError(f"{type(self._model).__name__} has no {wanted}")
        self._weighs = "w" in inspect.signature(self._model.learn_one).parameters
        self._classes = 0

    def learn(self, X: Float64Array, y: NDArray[Any], weight: Float64Array) -> None:
        """Learn rows in order. A model without sample weights ignores `weight`."""
        for row, target, w in zip(_dicts(X), y.tolist(), weight.tolist(), strict=True):
            if self._weighs and w != 1.0:
                self._model.learn_one(row, target, w=w)
            else:
                self._model.learn_one(row, target)
        if not self.regression:
            self._classes = max(self._classes, int(y.max()) + 1)

    @override
    def predict(self, X: Float64Array) -> Float64Array:
        if self.regression:
            return np.array([float(self._model.predict_one(row)) for row in _dicts(X)])
        probability = np.zeros((len(X), self._classes))
        for i, row in enumerate(_dicts(X)):
            for code, p in self._model.predict_proba_one(row).items():
                probability[i, code] = p
        return probability

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the model as a pickle."""
        pickled = pickle.dumps((self._classes, self._model), protocol=5)
        return {_PICKLE: np.frombuffer(pickled, np.uint8)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a pickled model. The operator trusts whoever wrote the arrays."""
        self._classes, self._model = pickle.loads(arrays[_PICKLE].tobytes())  # noqa: S301


def _dicts(X: Float64Array) -> list[dict[int, float]]:
    """Return rows as River expects them: column -> value."""
    return [dict(enumerate(row)) for row in X.tolist()]


def _model(described: Any, seed: int) -> Any:
    """Return the model that options describe. Raises ValueError."""
    if isinstance(described, list):
        from river.compose import Pipeline

        if not described:
            raise ValueError("a pipeline has at least one model")
        return Pipeline(*(_model(step, seed) for step in described))
    if isinstance(described, str):
        described = {"model": described}
    if not isinstance(described, Mapping) or not described.keys() <= {"model", "parameters"}:
        raise ValueError('a model is a name, a list, or {"model": ..., "parameters": {...}}')
    name, parameters = described.get("model"), described.get("parameters", {})
    if not isinstance(parameters, Mapping):
        raise ValueError("the parameters of a model must be an object")
    if isinstance(name, list):
        return _model(name, seed)
    model_class = _class(name)
    arguments = {key: _argument(value, seed) for key, value in parameters.items()}
    if "seed" in inspect.signature(model_class).parameters:
        arguments = {"seed": seed} | arguments
    return model_class(**arguments)


def _argument(value: Any, seed: int) -> Any:
    """Return a parameter; an object with a `model` becomes that model."""
    return _model(value, seed) if isinstance(value, Mapping) and "model" in value else value


def _class(name: Any) -> type[Any]:
    """Return a class of River by its name. Raises ValueError."""
    from river.base import Base

    module, _, class_name = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if not module.startswith("river."):
        raise ValueError(f"{name!r} is no name such as 'river.tree.HoeffdingTreeClassifier'")
    try:
        model = getattr(importlib.import_module(module), class_name)
    except (ImportError, AttributeError):
        raise ValueError(f"River has no {name!r}") from None
    if not isinstance(model, type) or not issubclass(model, Base):
        raise ValueError(f"{name!r} is not a model of River")
    return model
