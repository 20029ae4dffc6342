"""What a head can know of samples before it learns them, to tell how much memory they will take."""

from typing import NamedTuple


class Batch(NamedTuple):
    """Samples that a model is to learn.

    Attributes:
        rows: their number.
        block: how many of them are learned at a time.
        width: the numbers of a prepared row; for sparse rows, of those given, on average.
        features: the number of different features that the model will have met.
        new_features: those of them that are new to it.
        sparse: whether rows have names and no columns.
        texts: the texts of a row that a head may learn from.
        new_classes: the number of labels that are new to the model.
        changing: whether columns may still change, so that heads may be built anew.
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
    """Return the bytes of new classes, if they take as much as the present ones.

    Args:
        present: the bytes of the present classes.
        classes: their number.
        new: the number of new classes.
    """
    return present * new // max(classes, 1)
