"""One StreamClassifier of several that learned parts of a stream side by side."""

from collections.abc import Sequence

import numpy as np

from wolfstream.solver.estimators.stream_classifier import StreamClassifier
from wolfstream.solver.stream.merge import merge as merge_models


def merge(models: Sequence[StreamClassifier]) -> StreamClassifier:
    """Return the classifier of all samples that a classifier and its `sibling`s have learned.

    They stay as they are, and may learn on and be merged again. Ridge learners are added, which
    is exact for a square loss without a horizon; first-order learners, temperatures and shares
    are averaged; the working set holds the support vectors of all at weights whose duality gap is
    at most a hundredth of the objective, if 30 passes suffice; ASSET is averaged (P3, conclusion).
    Probabilities and sets keep the calibration of the parts.

    Raises ValueError, with the reason, for models that cannot be merged: of other parameters, with
    temporal=True, or with names or categories of which not all know; and NotFittedError.
    """
    if not models:
        raise ValueError("there is no model to merge")
    classes = np.unique(np.concatenate([one.classes_ for one in models]))
    known = [one.classes_[np.array(one.model.classes, np.int64)] for one in models]
    labels = [np.searchsorted(classes, of_one).tolist() for of_one in known]
    merged = merge_models([one.model for one in models], labels)
    first = models[0]
    result = StreamClassifier(**first.get_params())
    return result.resume(merged, classes, declared=first.declared, csr_features=first.csr_features)
