"""The memory that learning a request will take, computed before the request is written.

Most of a model is bounded by its spec. Random Fourier features are not: they have `dimension`
frequencies for each feature of the rows, and named rows bring ever more of them. Nor is the past
that a working set keeps, whose rows are as wide as the stream's.
"""

from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.stream.kernel_learner import past_bytes

# The copies of the frequencies that exist while room is made for new names, or a snapshot is saved.
_COPIES, _COPIES_OF_NAMED = 2, 3
_FLOAT_BYTES = 8


def learning_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    """Return the bytes that grow with the features: ASSET's map and the working set's past."""
    return _map_bytes(spec, features, named) + _past_bytes(spec, features, named)


def _past_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    return _COPIES * past_bytes(features) if spec.fades and not named else 0


def _map_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    own = spec.asset
    if own is None or own.features != "fourier" or own.dimension is None:
        return 0
    copies = _COPIES_OF_NAMED if named else _COPIES
    return copies * features * own.dimension * _FLOAT_BYTES
