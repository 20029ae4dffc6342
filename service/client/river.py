"""A served model with River's interface: `learn_one`, `predict_one`.

    from wolfstream import Client, RemoteClassifier

    with Client() as client:
        client.create("elec")
        model = preprocessing.StandardScaler() | RemoteClassifier(client, "elec")
        print(evaluate.progressive_val_score(datasets.Elec2(), model, metrics.Accuracy()))

River is not imported, so these classes are not subclasses of its classes. But its metrics check
models with `isinstance`: if River has been imported when a remote model is made, the class is
registered as a virtual subclass.

Every sample takes two round trips, and is durable after `learn_one`. `Client.stream` and
`learn_many` are faster.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from wolfstream.service.client.errors import Refused
from wolfstream.service.client.results import Array
from wolfstream.service.client.sync import Client
from wolfstream.service.files.values import plain_value


class _Remote:
    """A served model, for both tasks."""

    _supervised = True  # read by River

    def __init__(self, client: Client, name: str, head: str) -> None:
        """Use a model that exists.

        Args:
            client: of the server.
            name: of the model.
            head: the call that brings samples, "samples" or "asset".
        """
        self.client = client
        self.name = name
        self.head = head

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self.client.url})"

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a sample; return once it is durable.

        Args:
            x: feature -> value.
            y: label or number.
            w: weight of the sample.

        Raises ClientError, and TypeError for a feature that is no value.
        """
        weight = None if w == 1.0 else w
        self.client.learn(self.name, [_named(x)], [y], head=self.head, weight=weight)

    def learn_many(self, X: Any, y: Iterable[Any]) -> None:
        """Learn several samples in order, once each.

        Args:
            X: a data frame, or several x.
            y: a label or number for each row.

        Raises as `learn_one` does.
        """
        self.client.learn(self.name, _rows(X), list(y), head=self.head)

    def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Return the prediction of the head that serves; None before it can predict.

        Raises ClientError.
        """
        predictions = self.predict_many([x])
        return None if predictions is None else predictions.tolist()[0]

    def predict_many(self, X: Any) -> Array | None:
        """Return predictions (n,) for a data frame or several x; None as `predict_one` does."""
        try:
            return self.client.predict(self.name, _rows(X)).predictions
        except Refused as refused:
            if refused.slug == "untrained":
                return None
            raise


class RemoteClassifier(_Remote):
    """A served model as a classifier of River.

    Args:
        client: of the server.
        name: of the model, which exists.
        head: the call that brings samples: "samples", or "asset" for the head of this name.
    """

    _multiclass = True  # read by River

    def __init__(self, client: Client, name: str, head: str = "samples") -> None:
        _register(type(self), "Classifier")
        super().__init__(client, name, head)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return class -> probability; empty before the head can predict. Raises ClientError."""
        try:
            result = self.client.predict_proba(self.name, [_named(x)])
        except Refused as refused:
            if refused.slug == "untrained":
                return {}
            raise
        assert result.classes is not None
        assert result.probabilities is not None
        return dict(zip(result.classes, result.probabilities[0].tolist(), strict=True))


class RemoteRegressor(_Remote):
    """A served regression model as a regressor of River.

    Args:
        client: of the server.
        name: of the model, which exists.
        head: the call that brings samples: "asset", or "samples" for the other heads.
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
    """Return a row with texts as names; River's names may be of any type."""
    return {str(name): _value(name, value) for name, value in x.items()}


def _value(name: Any, value: Any) -> Any:
    try:
        return plain_value(value)
    except TypeError as error:
        raise TypeError(f"feature {name!r}: {error}") from None
