"""What learning a request will take in memory, known before it is written.

Most of a model is bounded by its spec. Random Fourier features are not: they have `dimension`
frequencies for each feature of the rows, and named rows bring ever more of them.
"""

from service.spec.model import ModelSpec

# Of the frequencies: copies come while room for new names is made, or a snapshot is saved.
_COPIES, _COPIES_OF_NAMED = 2, 3
_FLOAT_BYTES = 8


def learning_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    """Bytes that the model's feature map takes at most while it learns rows of so many features."""
    own = spec.asset
    if own is None or own.features != "fourier" or own.dimension is None:
        return 0
    copies = _COPIES_OF_NAMED if named else _COPIES
    return copies * features * own.dimension * _FLOAT_BYTES
