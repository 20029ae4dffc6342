"""What is known of samples before they are learned, by which a head tells what they will take."""

from typing import NamedTuple


class Batch(NamedTuple):
    """Samples that a model is to learn.

    Attributes:
        rows: how many. block: how many of them come at a time.
        width: the numbers of a prepared row; of sparse rows those that are given, on average.
        features: how many different ones the model will have met.
        new_features: those of them that it meets here.
        sparse: whether rows have names and no columns.
        texts: the texts of a row that a head may learn from.
        new_classes: labels that the model meets here.
        changing: whether columns are not settled yet, so that heads may be built anew for others.
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


def of_new_classes(held: int, known: int, new: int) -> int:
    """Return the bytes of classes that are new, as many for each as what is held of those known."""
    return held * new // max(known, 1)
