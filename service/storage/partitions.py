"""The names of the partitions of a model that several learners share.

Each partition is a model with a log of its own: `hot:0`, `hot:1` are those of `hot`. No client can
make a model of such a name.
"""

_MARK = ":"


def partitions_of(model: str, learners: int) -> list[str]:
    """Return the names of a model's partitions; none where it learns by itself."""
    return [f"{model}{_MARK}{number}" for number in range(learners)] if learners > 1 else []


def whole_of(name: str) -> str | None:
    """Return the name of the model that a partition belongs to; None for other names."""
    whole, _, number = name.rpartition(_MARK)
    return whole if whole and number.isdecimal() else None


def number_of(name: str) -> int:
    """Return which of its model's partitions one is."""
    return int(name.rpartition(_MARK)[2])
