"""A served model with River's interface: `learn_one`, `predict_one`.

    from wolfstream import Client, RemoteClassifier

    with Client() as client:
        client.create("elec")
        model = preprocessing.StandardScaler() | RemoteClassifier(client, "elec")
        print(evaluate.progressive_val_score(datasets.Elec2(), model, metrics.Accuracy()))

River is not imported, so these classes are not subclasses of its own. Its metrics check models by
`isinstance`: if River has been imported when a remote model is made, the class is registered as a
virtual subclass. Every sample takes two round trips, and is durable after `learn_one`;
`Client.stream` and `learn_many` are faster.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from wolfstream.service.client.batches import plain_value
from wolfstream.service.client.errors import Refused
from wolfstream.service.client.results import Array
from wolfstream.service.client.sync import Client


class _Remote:
    _supervised = True

    def __init__(self, client: Client, name: str, head: str) -> None:
        self.client = client
        self.name = name
        self.head = head

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self.client.url})"

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a sample that counts w.

        Raises ClientError, and TypeError for a feature that is no value.
        """
        weight = None if w == 1.0 else w
        self.client.learn(self.name, [_named(x)], [y], head=self.head, weight=weight)

    def learn_many(self, X: Any, y: Iterable[Any]) -> None:
        """Learn the rows of a data frame, or of several x, in order. Raises as `learn_one`."""
        self.client.learn(self.name, _rows(X), list(y), head=self.head)

    def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Predict with the head that serves; None while it cannot. Raises ClientError."""
        predictions = self.predict_many([x])
        return None if predictions is None else predictions.tolist()[0]

    def predict_many(self, X: Any) -> Array | None:
        """Return the predictions (n,) for a data frame's rows, or for several x."""
        try:
            return self.client.predict(self.name, _rows(X)).predictions
        except Refused as refused:
            if refused.slug == "untrained":
                return None
            raise


class RemoteClassifier(_Remote):
    """A served model as a classifier of River.

    head: the head that learns, "samples" (the working set) or "asset".
    """

    _multiclass = True

    def __init__(self, client: Client, name: str, head: str = "samples") -> None:
        _register(type(self), "Classifier")
        super().__init__(client, name, head)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """The probability of each class; empty while it cannot predict. Raises ClientError."""
        try:
            predicted = self.client.predict_proba(self.name, [_named(x)])
        except Refused as refused:
            if refused.slug == "untrained":
                return {}
            raise
        assert predicted.classes is not None
        assert predicted.probabilities is not None
        return dict(zip(predicted.classes, predicted.probabilities[0].tolist(), strict=True))


class RemoteRegressor(_Remote):
    """A served model whose task is regression as a regressor of River.

    head: the call that brings its samples, "asset", or "samples" where there are only refits.
    """

    def __init__(self, client: Client, name: str, head: str = "asset") -> None:
        _register(type(self), "Regressor")
        super().__init__(client, name, head)


def _register(remote: type, kind: str) -> None:
    """Register a class with River, if River has been imported, so that `isinstance` holds."""
    river = sys.modules.get("river.base")
    if river is not None:
        getattr(river, kind).register(remote)


def _rows(X: Any) -> list[dict[str, Any]]:
    if hasattr(X, "to_dict"):
        X = X.to_dict(orient="records")
    return [_named(x) for x in X]


def _named(x: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row of values by name; River's names may be of any type."""
    return {str(name): _value(name, value) for name, value in x.items()}


def _value(name: Any, value: Any) -> Any:
    try:
        return plain_value(value)
    except TypeError as error:
        raise TypeError(f"feature {name!r}: {error}") from None
