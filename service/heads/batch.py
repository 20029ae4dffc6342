"""Facts about samples from which a head estimates the memory that they will need."""

from typing import NamedTuple


class Batch(NamedTuple):
    """Facts about samples that a model is going to learn.

    Attributes:
        rows: the number of samples.
        block: the number of samples learned at a time.
        width: the numbers in a prepared row; for sparse rows, the stored numbers on average.
        features: the number of distinct features that the model will know.
        new_features: the number of features that are new to the model.
        sparse: whether rows have names instead of columns.
        texts: the number of texts in a row that a head may learn from.
        new_classes: the number of labels that are new to the model.
        changing: whether columns may still change, in which case heads are built again.
    """

    rows: int
    block: int
    width: int
    features: int
    new_features: int = 0
    sparse: bool = False
    texts: int = 0
    new_classes: int = 0
    changing: bool = False


def new_class_bytes(present: int, classes: int, new: int) -> int:
    """Return the bytes of new classes, assuming that each takes as much as a present one.

    Args:
        present: the bytes of the present classes.
        classes: the number of present classes.
        new: the number of new classes.
    """
    return present * new // max(classes, 1)
