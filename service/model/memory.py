"""The memory of a server's models, counted against one bound before anything is written."""

from wolfstream.service.errors import ModelsFull
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.stream.kernel_learner import past_bytes

# How many copies exist while room is made for new names, or a snapshot is saved.
_COPIES_OF_MAP, _COPIES_OF_NAMED = 2, 3
_FLOAT_BYTES = 8


def learning_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    """Return the bytes of the two parts of a model that its spec does not bound.

    ASSET's random features have `dimension` frequencies for each feature of the rows, and sparse
    rows bring ever more features. The past of a working set has rows as wide as the stream's.
    """
    past = _COPIES_OF_MAP * past_bytes(features) if spec.fades and not named else 0
    return _map_bytes(spec, features, named) + past


def _map_bytes(spec: ModelSpec, features: int, named: bool) -> int:
    asset = spec.asset
    if asset is None or asset.features != "fourier" or asset.dimension is None:
        return 0
    copies = _COPIES_OF_NAMED if named else _COPIES_OF_MAP
    return copies * features * asset.dimension * _FLOAT_BYTES


# While a model is saved or recovered, it takes this many times its size in addition: for its state,
# and for the learner restored from it.
_COPIES = 2
# A new model is refused if there is not even room to learn this much.
_NEW_BYTES = 8 << 20


class ModelMemory:
    """The bytes that each model takes, and their sum. Used by the writer's thread.

    Bytes that are taken before samples are learned are an estimate. Afterwards they are replaced by
    the measured ones, and those that the next small requests may need (`Learner.ahead_bytes`).

    Args:
        max_bytes: the bound, which includes copies of the largest model while that is saved.

    Attributes:
        n_bytes: of all models.
        forgotten: the bytes of models that were forgotten since this was last set to 0.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.n_bytes = self.forgotten = 0
        self._bytes: dict[Model, int] = {}
        self._largest = 0  # at least the bytes of the largest model

    def take(self, model: Model, growth: int) -> None:
        """Count bytes that a model is about to take. Raises ModelsFull; then it counts nothing."""
        if growth <= 0:
            return
        own = self._bytes.get(model, 0) + growth
        self._check(growth, own, f"model {model.name!r} would grow by {_megabytes(growth)}")
        self.note(model, own)

    def check_new(self, name: str, n_bytes: int = 0) -> None:
        """Raise ModelsFull unless there is room for a new model.

        n_bytes: that it takes at first; 0 if it has learned nothing.
        """
        n_bytes = max(n_bytes, _NEW_BYTES)
        self._check(n_bytes, n_bytes, f"a model {name!r} would take {_megabytes(n_bytes)}")

    def note(self, model: Model, n_bytes: int) -> None:
        """Set the bytes that a model takes."""
        self.n_bytes += n_bytes - self._bytes.get(model, 0)
        self._bytes[model] = n_bytes
        self._largest = max(self._largest, n_bytes)

    def forget(self, model: Model) -> None:
        """Stop counting a model."""
        n_bytes = self._bytes.pop(model, 0)
        self.n_bytes -= n_bytes
        self.forgotten += n_bytes
        self._largest = max(self._bytes.values(), default=0)

    def _check(self, growth: int, own: int, what: str) -> None:
        """Raise ModelsFull if a model does not fit.

        Args:
            growth: the bytes that it is about to take.
            own: those that it then has in all.
            what: the beginning of the message.
        """
        copies = _COPIES * max(self._largest, own)
        if self.n_bytes + growth + copies > self._max_bytes:
            bound = _megabytes(self._max_bytes)
            raise ModelsFull(
                f"{what}, and the {len(self._bytes)} models take {_megabytes(self.n_bytes)}; with "
                f"copies of the largest one, while it is saved, at most {bound} "
                "may be taken. DELETE models that are not used, make this one with a smaller "
                "max_size or fewer heads, or give the server more memory "
                "(WOLFSTREAM_MEMORY_BYTES, or the limit of its container)"
            )


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 20):.1f} MB"
