"""The memory that grows with the features of a model's rows, computed before they are written.

Most of a model is bounded by its spec. Two parts are not. Random Fourier features have `dimension`
frequencies for each feature of the rows, and sparse rows bring ever more features. The past that a
working set keeps has rows as wide as the stream's.
"""

from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.stream.kernel_learner import past_bytes

# How many copies exist while room is made for new names, or a snapshot is saved.
_COPIES, _COPIES_OF_NAMED = 2, 3
_FLOAT_BYTES = 8


def learning_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    """Return the bytes of ASSET's feature map and of the working set's past."""
    return _map_bytes(spec, features, named) + _past_bytes(spec, features, named)


def _past_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    return _COPIES * past_bytes(features) if spec.fades and not named else 0


def _map_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    asset = spec.asset
    if asset is None or asset.features != "fourier" or asset.dimension is None:
        return 0
    copies = _COPIES_OF_NAMED if named else _COPIES
    return copies * features * asset.dimension * _FLOAT_BYTES
