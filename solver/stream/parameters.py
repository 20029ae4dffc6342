"""The parameters of the papers' learners in a stream's model, and their defaults.

A spec repeats the defaults, as it must load without numerics; a test compares them.
"""

from typing import Literal, NamedTuple


class SetParameters(NamedTuple):
    """Parameters of `working_set.learner.WorkingSet`; horizon: of `kernel_learner.KernelLearner`.

    scores: whether scores of classes are coupled from those of pairs, or count the pairs won.
    """

    algorithm: Literal["sfw", "msfw"] = "msfw"
    C: float = 1.0
    corrective_steps: int = 10
    max_size: int = 5000
    gram_bytes_max: int = 1 << 30
    horizon: Literal["auto"] | int | None = "auto"
    scores: Literal["coupled", "counted"] = "coupled"


class AssetParameters(NamedTuple):
    """Parameters of `asset.learner.Asset`; epsilon is for regression."""

    algorithm: Literal["asset", "asset*"] = "asset"
    features: Literal["fourier", "nystrom", "identity"] = "fourier"
    dimension: int = 512
    lam: float = 1e-4
    epsilon: float = 0.1
    average: bool = True
    average_from: int | None = None
    horizon: Literal["auto"] | int | None = "auto"
