"""The memory of all models of a server, counted against one bound before anything is written."""

from wolfstream.service.errors import ModelsFull
from wolfstream.service.model.live import Model

# While a model is saved or recovered, it takes its own size so many times more: its state, and the
# learner that is restored from it.
_COPIES = 2
# Nobody makes a model that has no room to learn a little.
_NEW_BYTES = 8 << 20


class ModelMemory:
    """How many bytes each model takes, and all of them together.

    Used by the writer's thread. What is taken before samples are learned is an estimate, which is
    replaced by what was measured afterwards.

    most: the bound, with what is needed to save and to recover the largest model.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._of: dict[Model, int] = {}
        # At least that of the largest model.
        self._largest = 0

    def take(self, model: Model, growth: int) -> None:
        """Count bytes that a model is going to take. Raises ModelsFull, and counts nothing then."""
        if growth <= 0:
            return
        own = self._of.get(model, 0) + growth
        self._check(growth, own, f"model {model.name!r} would grow by {_in_words(growth)}")
        self.note(model, own)

    def check_new(self, name: str, n_bytes: int = 0) -> None:
        """Raise ModelsFull unless there is room for a new model.

        n_bytes: what it takes at first; 0 where it has learned nothing.
        """
        n_bytes = max(n_bytes, _NEW_BYTES)
        self._check(n_bytes, n_bytes, f"a model {name!r} would take {_in_words(n_bytes)}")

    def note(self, model: Model, n_bytes: int) -> None:
        """Set the bytes that a model takes."""
        self.held += n_bytes - self._of.get(model, 0)
        self._of[model] = n_bytes
        self._largest = max(self._largest, n_bytes)

    def forget(self, model: Model) -> None:
        """Count a model no longer."""
        self.held -= self._of.pop(model, 0)
        self._largest = max(self._of.values(), default=0)

    def _check(self, growth: int, own: int, what: str) -> None:
        copies = _COPIES * max(self._largest, own)
        if self.held + growth + copies > self.most:
            raise ModelsFull(
                f"{what}, and the {len(self._of)} models take {_in_words(self.held)}; with copies "
                f"of the largest one, while it is saved, at most {_in_words(self.most)} may be "
                "taken. DELETE models that are not used, make this one with a smaller max_size or "
                "fewer heads, or give the server more memory (WOLFSTREAM_MEMORY_BYTES, or the "
                "limit of its container)"
            )


def _in_words(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 20):.1f} MB"
