"""ASSET's part of a model's spec, and its checks against the other parts."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wolfstream.service.spec.heads import AssetAlgorithm, TaskName
from wolfstream.service.spec.kernel import SpecPart, contradiction
from wolfstream.service.spec.task_fields import check_fields
from wolfstream.service.spec.working_set import ClassWeights

FeatureMap = Literal["fourier", "nystrom", "identity"]
# Nystrom's map is computed once, from an eigenvalue problem of this size, which takes 2 s.
MOST_LANDMARKS = 2048
_DIMENSION = 512
_DEFAULT_FEATURES: dict[Any, FeatureMap] = {"polynomial": "nystrom", "linear": "identity"}


class AssetSpec(SpecPart):
    """ASSET on a feature map of the kernel; classes one-versus-rest, or one real number."""

    algorithm: AssetAlgorithm = Field(
        "asset", description="asset*: strongly convex; no intercept, no averaging."
    )
    features: FeatureMap = Field(
        "fourier",
        description="fourier: random features of rbf, its default. nystrom: landmarks among the "
        "first samples, for every kernel, polynomial's default. identity: the rows themselves, "
        "the linear kernel's default.",
    )
    dimension: int | None = Field(
        _DIMENSION,
        ge=1,
        le=16_384,
        description=f"Number of features, for nystrom at most {MOST_LANDMARKS}; null for "
        "identity, which uses the features of the rows.",
    )
    class_weight: ClassWeights = Field(default=[])
    lam: float = Field(1e-4, gt=1e-12, le=1e6, alias="lambda")
    epsilon: float | None = Field(
        None,
        ge=0,
        le=1e6,
        description="For regression: smaller errors are ignored, in standard deviations of y over "
        "the first 128 samples. 0.1 by default; null for classification.",
    )
    average: bool = Field(
        True,
        description="false: the last iterate predicts. It is noisier, but follows a stream whose "
        "labels are mostly those of the samples just before.",
    )
    average_from: int | None = Field(
        None, ge=1, description="First averaged step; null averages a suffix of the stream."
    )
    horizon: Literal["auto"] | Annotated[int, Field(ge=1)] | None = Field(
        None,
        union_mode="left_to_right",
        description="The step length never falls below that of this step, and averages are over "
        "as many steps, so the model keeps following a stream that drifts. null: the step length "
        "falls for ever. auto runs four horizons in parallel, weighted by their recent errors; it "
        "is the default where rows are prepared and iterates averaged.",
    )


def with_stream_defaults(asset: dict[str, Any]) -> dict[str, Any]:
    """Return ASSET's part with the defaults for prepared rows, whose averages follow a drift."""
    return {"horizon": "auto"} | asset if _averages(asset) else asset


def _averages(asset: dict[str, Any]) -> bool:
    """Return whether averages over windows are possible: no field asks for another average."""
    defaults = {"algorithm": "asset", "average": True, "average_from": None}
    return all(asset.get(name, value) == value for name, value in defaults.items())


def with_defaults(asset: dict[str, Any], kernel: Any) -> dict[str, Any]:
    """Return ASSET's part with the defaults that depend on kernel and features."""
    features = "fourier"
    if isinstance(kernel, str):
        features = _DEFAULT_FEATURES.get(kernel, features)
    asset = {"features": features} | asset
    return {"dimension": None} | asset if asset["features"] == "identity" else asset


def check_asset(asset: AssetSpec, kernel: str, task: TaskName) -> None:
    """Raise an error if ASSET's part contradicts the kernel, the task or itself."""
    if asset.features == "fourier" and kernel != "rbf":
        detail = f"Fourier features are of the rbf kernel; {kernel} has {_DEFAULT_FEATURES[kernel]}"
        raise contradiction("/asset/features", detail)
    if asset.features == "identity" and kernel != "linear":
        detail = f"the rows themselves are features of the linear kernel; {kernel} has nystrom"
        raise contradiction("/asset/features", detail)
    if (asset.dimension is None) != (asset.features == "identity"):
        detail = "identity has the features of the rows: leave dimension out, or set it to null"
        if asset.dimension is None:
            detail = f"{asset.features} needs a number of features"
        raise contradiction("/asset/dimension", detail)
    if asset.features == "nystrom" and (asset.dimension or 0) > MOST_LANDMARKS:
        detail = f"nystrom takes at most {MOST_LANDMARKS} landmarks"
        raise contradiction("/asset/dimension", detail)
    check_fields(task, "asset", asset)
    if asset.horizon == "auto" and not _averages(asset.model_dump()):
        detail = "auto chooses between averages over windows: it needs asset, which averages"
        raise contradiction("/asset/horizon", detail)
    if asset.average_from is not None and (asset.algorithm == "asset*" or not asset.average):
        detail = "nothing is averaged: leave it out, or set it to null"
        raise contradiction("/asset/average_from", detail)
