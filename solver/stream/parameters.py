"""The parameters of the papers' learners in a stream's model, and their defaults.

A spec has the same defaults, which a test compares: it loads no numerics.
"""

from typing import Literal, NamedTuple

Task = Literal["classification", "regression"]
# Whether the labels before a row help to predict it; "auto": where they are known.
Temporal = Literal["auto"] | bool


class SetParameters(NamedTuple):
    """See `working_set.learner.WorkingSet`, and of horizon `kernel_learner.KernelLearner`.

    scores: whether those of the set's classes are coupled, or the decisions, which count pairs.
    """

    algorithm: Literal["sfw", "msfw"] = "msfw"
    C: float = 1.0
    corrective_steps: int = 10
    max_size: int = 5000
    gram_bytes_max: int = 1 << 30
    horizon: Literal["auto"] | int | None = "auto"
    scores: Literal["coupled", "counted"] = "coupled"


class AssetParameters(NamedTuple):
    """See `asset.learner.Asset`. epsilon is of regression."""

    algorithm: Literal["asset", "asset*"] = "asset"
    features: Literal["fourier", "nystrom", "identity"] = "fourier"
    dimension: int = 512
    lam: float = 1e-4
    epsilon: float = 0.1
    average: bool = True
    average_from: int | None = None
    horizon: Literal["auto"] | int | None = "auto"
