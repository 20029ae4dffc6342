"""The spec of a model: what a client may choose, with a default for everything."""

from contextlib import suppress
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from service.errors import Invalid
from service.spec.heads import HEADS, AssetAlgorithm, HeadName, SetAlgorithm, Task
from service.spec.kernel import (
    KernelSpec,
    Part,
    RbfSpec,
    contradiction,
    with_type,
)
from service.spec.refusals import Refusals, parts_of
from service.spec.semiparametric import (
    SemiparametricSpec,
)

FeatureMap = Literal["fourier", "nystrom", "identity"]
DEFAULT_SET, LARGEST_SET = 5000, 50_000
# Nystrom's map is made once, from so many samples, by an eigenvalue problem of this size: 2 s.
MOST_LANDMARKS = 2048
# Learners of one kind that a spec may pin for the bank, and how each is given.
MOST_PINNED = 8
Horizon = Annotated[int, Field(ge=32, le=10**9)]
Step = Annotated[float, Field(ge=1e-6, le=100)]
Count = Annotated[int, Field(ge=1, le=1000)]
MODEL_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"

_DIMENSION = 512
_EPSILON = 0.1
_HORIZON = 1000
# What a spec meant before these fields existed.
_BEFORE: dict[str, Any] = {"prepare": None, "adaptive": None}
_BEFORE_TABLES: dict[str, Any] = {"named": "sparse"}
_DEFAULT_FEATURES: dict[Any, FeatureMap] = {"polynomial": "nystrom", "linear": "identity"}


class ClassWeight(Part):
    """How much samples of one class count: their C is `weight` times the C of the spec."""

    label: str | int | bool
    weight: float = Field(ge=1e-6, le=1e6)


class WorkingSetSpec(Part):
    """The working set: SFW or MSFW; the set holds at most `max_size` samples."""

    algorithm: SetAlgorithm = "msfw"
    C: float = Field(1.0, ge=1e-9, le=1e9)
    corrective_steps: int = Field(10, ge=0, le=100)
    max_size: int = Field(DEFAULT_SET, ge=2, le=LARGEST_SET)
    class_weight: list[ClassWeight] = Field(
        [], max_length=1000, description="Classes that are not named count 1."
    )
    horizon: Literal["auto"] | Annotated[int, Field(ge=1, le=10**9)] | None = Field(
        "auto",
        union_mode="left_to_right",
        description="In how many samples a stored one fades, by exp(-(age / horizon)^2). auto "
        "finds it, and the kernel's width, by how well they would have forecast the last "
        "samples. null: never; the default where prepare is null, or the kernel is not rbf. "
        "Rows of more than 2,048 numbers, and sparse ones, never fade.",
    )


class AssetSpec(Part):
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
        description=f"Number of features, of nystrom at most {MOST_LANDMARKS}; null for "
        "identity, which has those of the rows.",
    )
    lam: float = Field(1e-4, gt=1e-12, le=1e6, alias="lambda")
    epsilon: float | None = Field(
        None,
        ge=0,
        le=1e6,
        description="Of regression, in standard deviations of y over the first 128 samples: "
        f"smaller errors are ignored. {_EPSILON} by default; null for classification.",
    )
    average: bool = Field(
        True,
        description="false: the last iterate answers. It is noisier, but follows a stream whose "
        "labels are mostly those of the samples just before.",
    )
    average_from: int | None = Field(
        None, ge=1, description="First averaged step; null averages a suffix of the stream."
    )
    horizon: int | None = Field(
        None,
        ge=1,
        description="The step length never falls below that of this step, and averages are over "
        "as many: the model goes on following a stream that drifts. null: it falls for ever. "
        f"{_HORIZON} by default where rows are prepared and iterates averaged, else null.",
    )


class PrepareSpec(Part):
    """Rows are standardised before anything learns them, each by the rows up to it.

    Texts become categories. Sparse rows keep their zeros.
    """

    missing: Literal["mean", "indicator"] = Field(
        "mean",
        description="What a missing number becomes: the mean of its feature so far; indicator: "
        "the mean, and one more feature that says so.",
    )
    named: Literal["table", "sparse"] = Field(
        "table",
        description="What objects of named values are. table: each has the same names, and an "
        "absent one is a missing value; unless the first rows show that they are sparse: new names "
        "come at any time, and an absent one is zero.",
    )
    timestamps: list[str] = Field(
        [],
        max_length=16,
        description="Names whose values are dates and times, in the form of ISO 8601 or as seconds "
        "since 1970: the hour of the day, the day of the week and the time that has passed are "
        "learned.",
    )


class AdaptiveSpec(Part):
    """A bank of learners on shared features, weighted by how well each predicts at present.

    It needs no parameter, and learns every sample that the model is sent. A list takes the place
    of the learners that are there by default; an empty one switches them off.
    """

    horizons: list[Horizon | None] | None = Field(
        None,
        max_length=MOST_PINNED,
        description="Of the ridge learners, in samples; null in the list: without end.",
    )
    steps: list[Step] | None = Field(
        None, max_length=MOST_PINNED, description="Step lengths of the gradient learners."
    )
    neighbours: list[Count] | None = Field(
        None, max_length=MOST_PINNED, description="How many of the nearest of the last 1,000 rows."
    )


class ModelSpec(Part):
    """What a model is. `{}` is a valid spec; a head that is null does not exist."""

    task: Task = "classification"
    classes: list[str | int | bool] | None = Field(
        None,
        min_length=2,
        max_length=1000,
        description="The labels that there are; another one is refused, and nothing of its request "
        "is learned. null: labels are met as they come.",
    )
    prepare: PrepareSpec | None = Field(
        default=PrepareSpec(), description="null: rows are learned as they come."
    )
    temporal: bool = Field(
        False,
        description="true: the labels before a row help to predict it. Wrong where labels come "
        "late, or where many rows are predicted at once.",
    )
    kernel: KernelSpec = Field(default_factory=RbfSpec, discriminator="type")
    working_set: WorkingSetSpec | None = Field(
        default=WorkingSetSpec(), description="null for regression."
    )
    asset: AssetSpec | None = Field(default=AssetSpec())
    semiparametric: SemiparametricSpec | None = Field(
        default=None, description="Of regression, with rows that are arrays."
    )
    adaptive: AdaptiveSpec | None = Field(
        default=AdaptiveSpec(),
        description="null by default where there is a semiparametric head, as is prepare: its "
        "basis is in the rows' own units.",
    )
    serve: HeadName = Field(
        "adaptive",
        description="By default the first of adaptive, working_set, asset that is not null.",
    )
    seed: int = Field(0, ge=0, lt=2**53)

    @model_validator(mode="before")
    @classmethod
    def _fill_what_follows(cls, given: Any) -> Any:
        """Defaults that depend on other fields."""
        if not isinstance(given, dict):
            return given
        regression = given.get("task") == "regression"
        kernel = with_type(given.get("kernel", {}))
        given = given | {"kernel": kernel}
        kind: Any = kernel["type"] if isinstance(kernel, dict) else "rbf"
        if regression:
            given = {"working_set": None} | given
        if given.get("semiparametric") is not None:
            given = {"prepare": None, "adaptive": None} | given
        if isinstance(asset := given.get("asset", {}), dict):
            if given.get("prepare", ()) is not None:
                asset = _of_streams(asset)
            given = given | {"asset": _with_defaults(asset, kind, regression)}
        given = _without_horizon(given, kind)
        if given.get("adaptive", ()) is not None:
            return given
        if given.get("working_set", ()) is not None:
            given = {"serve": "working_set"} | given
        else:
            only_fitted = given["asset"] is None and given.get("semiparametric") is not None
            given = {"serve": "semiparametric" if only_fitted else "asset"} | given
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.task == "regression" and self.working_set is not None:
            raise contradiction(
                "/working_set",
                "the working set learns classes only; regression is learned by asset: leave "
                "working_set out, or set it to null",
            )
        if self.classes is not None:
            if self.task == "regression":
                raise contradiction("/classes", "a regression has none: leave them out")
            if len({(type(label), label) for label in self.classes}) < len(self.classes):
                raise contradiction("/classes", "a class is named twice")
        if self.task == "classification" and self.semiparametric is not None:
            raise contradiction(
                "/semiparametric",
                "the semiparametric head learns numbers only: leave it out, or say "
                '"task": "regression"',
            )
        if self.prepare is not None and self.semiparametric is not None:
            raise contradiction(
                "/prepare",
                "the semiparametric head's basis is in the rows' own units: leave prepare out, "
                "or set it to null",
            )
        if self.prepare is None and self.adaptive is not None:
            raise contradiction(
                "/prepare",
                "the adaptive head learns prepared rows: leave prepare out, or set adaptive to "
                "null, too",
            )
        if self.adaptive is not None and self.adaptive.horizons == self.adaptive.steps == []:
            raise contradiction(
                "/adaptive",
                "ridge or gradient learners are needed: leave horizons or steps out, or list some",
            )
        if self.temporal and self.adaptive is None:
            raise contradiction(
                "/temporal",
                "only the adaptive head uses the labels before a row: leave temporal out, or "
                "adaptive in",
            )
        own = self.working_set
        if own is not None and own.horizon is not None and self.kernel.type != "rbf":
            raise contradiction(
                "/working_set/horizon",
                "only samples under an rbf kernel fade: leave horizon out, or set it to null",
            )
        if self.asset is not None:
            _check_asset(self.asset, self.kernel.type, self.task)
        if getattr(self, self.serve) is None:
            raise contradiction("/serve", f"the head {self.serve!r} is null")
        return self

    @property
    def fades(self) -> bool:
        """Whether stored samples fade with time."""
        return self.working_set is not None and self.working_set.horizon is not None

    @property
    def heads(self) -> tuple[HeadName, ...]:
        """The heads that are not null."""
        return tuple(name for name in HEADS if getattr(self, name) is not None)

    def plain(self) -> dict[str, Any]:
        """As JSON-able data with every default filled in."""
        return self.model_dump(mode="json", by_alias=True)


def _of_streams(asset: dict[str, Any]) -> dict[str, Any]:
    """ASSET's part where rows are prepared as they come: its average follows a drift."""
    averages = asset.get("algorithm", "asset") == "asset" and asset.get("average", True) is True
    return {"horizon": _HORIZON} | asset if averages else asset


def _without_horizon(given: dict[str, Any], kind: Any) -> dict[str, Any]:
    """The working set's samples do not fade by default where it is as the papers have it."""
    own = given.get("working_set", {})
    if isinstance(own, dict) and (kind != "rbf" or given.get("prepare", ()) is None):
        return given | {"working_set": {"horizon": None} | own}
    return given


def _with_defaults(asset: dict[str, Any], kernel: Any, regression: bool) -> dict[str, Any]:
    """ASSET's part with the defaults that depend on the kernel, the features and the task."""
    features = "fourier"
    if isinstance(kernel, str):
        features = _DEFAULT_FEATURES.get(kernel, features)
    asset = {"features": features} | asset
    if asset["features"] == "identity":
        asset = {"dimension": None} | asset
    return {"epsilon": _EPSILON if regression else None} | asset


def _check_asset(asset: AssetSpec, kernel: str, task: Task) -> None:
    """Refuse what contradicts the kernel, the features, the task or the algorithm."""
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
    if (asset.epsilon is None) != (task == "classification"):
        detail = "is of regression; classification has the hinge loss: leave it out, or null"
        if asset.epsilon is None:
            detail = "regression needs a number, zero or more"
        raise contradiction("/asset/epsilon", detail)
    if asset.average_from is not None and (asset.algorithm == "asset*" or not asset.average):
        detail = "nothing is averaged: leave it out, or set it to null"
        raise contradiction("/asset/average_from", detail)


def read_spec(given: Any) -> ModelSpec:
    """Check a decoded body; raises Invalid with a pointer to each wrong field."""
    try:
        return ModelSpec.model_validate(given)
    except ValidationError as error:
        raise Invalid("the spec is not valid", _REFUSALS.problems(error)) from None


def readings(given: Any) -> tuple[ModelSpec, ...]:
    """What a decoded body means, and what it meant before. Raises Invalid.

    A model that was made with the same body then still has the spec that is asked for.
    """
    spec = read_spec(given)
    meanings = [spec]
    if spec.prepare is not None and "named" not in (given.get("prepare") or {}):
        changed: dict[str, Any] = {"prepare": spec.prepare.model_copy(update=_BEFORE_TABLES)}
        for name in ("working_set", "asset"):
            own = getattr(spec, name)
            if own is not None and "horizon" not in (given.get(name) or {}):
                changed[name] = own.model_copy(update={"horizon": None})
        meanings.append(spec.model_copy(update=changed))
    if not _BEFORE.keys() & given.keys():
        # It may serve a head that did not exist.
        with suppress(Invalid):
            meanings.append(read_spec(_BEFORE | given))
    return tuple(meanings)


def read_stored_spec(given: Any) -> ModelSpec:
    """Check a spec that was stored with every default filled in, by this version or an older one.

    Models that were made before rows were prepared, or were tables, go on without. Raises Invalid.
    """
    if isinstance(given, dict):
        given = _BEFORE | given
        if isinstance(given["prepare"], dict):
            given["prepare"] = _BEFORE_TABLES | given["prepare"]
        if isinstance(own := given.get("working_set"), dict):
            given["working_set"] = {"horizon": None} | own
    return read_spec(given)


# After the models that it describes.
_REFUSALS = Refusals(parts_of(ModelSpec))
