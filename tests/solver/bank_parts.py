"""Parts of a bank by themselves: its learners of one kind."""

import numpy as np

from wolfstream.solver.adaptive.features import FeatureMap
from wolfstream.solver.adaptive.learners import Learners
from wolfstream.solver.adaptive.settings import Settings

NOTHING = Settings((), (), (), (), (), (), ())


def learners_of(columns, *, regression=False, **settings):
    """The learners of these settings alone, on so many shared columns without waves."""
    features = FeatureMap(np.ones((columns - 1, 0)))
    made = NOTHING._replace(**settings)
    return Learners(made, features, wide=False, texts=0, regression=regression)


def scores_before(learners, Phi, Y, weight=None):
    """The scores (n, learners, K) of rows, which are then learned; of a chunk at most."""
    scores = np.full((len(Y), learners.count, Y.shape[1]), np.nan)
    weight = np.ones(len(Y)) if weight is None else weight
    Phi, Y, weight = (np.ascontiguousarray(array) for array in (Phi, Y, weight))
    learners.absorb(Phi, None, None, Y, weight, scores)
    return scores
