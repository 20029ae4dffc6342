"""Which partition answers a call for a model with several learners, and what is refused.

A learning call goes to one partition. With an `Idempotency-Key` the key decides which, so that a
request which is sent again always meets the partition that may have learned it; other requests go
to the partitions in turn. The model itself answers all other calls, or they are refused.
"""

import hashlib
from collections import Counter

from starlette.types import Scope

from wolfstream.service.calls.lookup import target_of
from wolfstream.service.errors import Divided
from wolfstream.service.replicas.director import Director

_READING = ("GET", "HEAD")


class DividedModels:
    """The calls of models with several learners, at one replica. Used on the event loop."""

    def __init__(self, director: Director) -> None:
        self._director = director
        # How many requests without a key each model has had here.
        self._turns = Counter[str]()

    def check_sent(self, name: str, scope: Scope) -> None:
        """Raise Divided for a client's call to a partition, which it may only look at."""
        whole = self._director.partitioned_model(name)
        if whole is not None and scope.get("method", "GET") not in _READING:
            raise Divided(f"{name!r} is a partition of model {whole!r}: send calls to {whole!r}")

    def check(self, name: str, scope: Scope) -> None:
        """Raise Divided for what a model with several learners does not do."""
        if not self._director.partitions(name):
            return
        if any(call.divided == "refused" for call in target_of(scope).at_path.values()):
            raise Divided(
                f"model {name!r} has several learners: it takes no streams, and no labels of "
                "predicted rows; POST samples with their labels"
            )
        if any(key == b"if-match" for key, _ in scope["headers"]):
            raise Divided(
                f"model {name!r} has several learners, and each has a sequence of its own: leave "
                "If-Match out"
            )

    def learning(self, name: str, scope: Scope) -> list[str]:
        """Return the partitions of which one learns by a call; none for other calls and models."""
        call = target_of(scope).call
        return self._director.partitions(name) if call and call.divided == "one" else []

    def routed(self, name: str, scope: Scope) -> tuple[str, Scope]:
        """Return the model whose leader answers a call, and the call as it is sent there."""
        partitions = self.learning(name, scope)
        if not partitions:
            return name, scope
        partition = partitions[self._number(name, scope) % len(partitions)]
        return partition, of_partition(scope, partition)

    def _number(self, name: str, scope: Scope) -> int:
        for key, value in scope["headers"]:
            if key == b"idempotency-key":
                # One key may come as it is, or in quotes with backslashes.
                key_alone = value.translate(None, b'"\\ ')
                return int.from_bytes(hashlib.blake2b(key_alone, digest_size=8).digest())
        self._turns[name] += 1
        return self._turns[name]


def of_partition(scope: Scope, partition: str) -> Scope:
    """Return a model's call as one of its partition."""
    path, raw = scope["path"].split("/"), scope["raw_path"].split(b"/")
    path[3], raw[3] = partition, partition.encode()
    return {**scope, "path": "/".join(path), "raw_path": b"/".join(raw)}
