"""Names of the partitions of a model that several learners share.

Each partition is a model with a log of its own: `hot:0` and `hot:1` are partitions of `hot`. No
client can create a model of such a name.
"""

_MARK = ":"


def partition_names(model: str, learners: int) -> list[str]:
    """Return the names of a model's partitions; none if it has one learner."""
    return [f"{model}{_MARK}{number}" for number in range(learners)] if learners > 1 else []


def partitioned_model(name: str) -> str | None:
    """Return the name of the model that a partition belongs to; None for other names."""
    model, _, number = name.rpartition(_MARK)
    return model if model and number.isdecimal() else None


def partition_number(name: str) -> int:
    """Return the number of a partition within its model."""
    return int(name.rpartition(_MARK)[2])
