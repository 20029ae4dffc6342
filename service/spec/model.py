"""The spec of a model: what a client may choose, with a default for everything."""

from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from wolfstream.service.errors import Invalid
from wolfstream.service.spec.adaptive import AdaptiveSpec
from wolfstream.service.spec.asset import AssetSpec, check_asset, of_streams, with_defaults
from wolfstream.service.spec.divided import (
    OF_SEVERAL,
    PREPARED_ALIKE,
    check_begins_alike,
    check_divisible,
    check_prepares_alike,
)
from wolfstream.service.spec.heads import HEADS, HeadName, Task
from wolfstream.service.spec.kernel import KernelSpec, Part, RbfSpec, contradiction, with_type
from wolfstream.service.spec.novelty import NoveltySpec
from wolfstream.service.spec.pending import PendingSpec
from wolfstream.service.spec.prepare import PrepareSpec
from wolfstream.service.spec.refusals import Refusals, parts_of
from wolfstream.service.spec.semiparametric import SemiparametricSpec
from wolfstream.service.spec.working_set import WorkingSetSpec, check_working_set, with_set_defaults
from wolfstream.solver.stream.labels import key_of

MODEL_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"


MOST_LEARNERS = 8


def _is_one(learners: int) -> bool:
    """Leave the field out for one learner, so that earlier versions read all other specs."""
    return learners == 1


class ModelSpec(Part):
    """What a model is. `{}` is a valid spec; a head that is null does not exist."""

    task: Task = "classification"
    classes: list[str | int | bool] | None = Field(
        None,
        min_length=2,
        max_length=1000,
        description="All labels; any other one is refused, and nothing of its request "
        "is learned. null: labels are met as they come.",
    )
    prepare: PrepareSpec | None = Field(
        default=PrepareSpec(), description="null: rows are learned as they come."
    )
    temporal: Literal["auto"] | bool = Field(
        "auto",
        description="auto: the labels before a row help to predict it where they are known: in a "
        "row that is predicted alone, once the row predicted before it has its label. true: "
        "always, which is wrong where labels come late, or where many rows are predicted at once. "
        "Of the adaptive head alone; false by default without it, and of several learners.",
    )
    kernel: KernelSpec = Field(default_factory=RbfSpec, discriminator="type")
    working_set: WorkingSetSpec | None = Field(
        default=WorkingSetSpec(), description="null by default for regression."
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
    novelty: NoveltySpec | None = Field(
        default=None, description="Scores how new each row is, next to its prediction."
    )
    pending: PendingSpec | None = Field(
        default=PendingSpec(), description="null: no predicted row waits for its label."
    )
    serve: HeadName = Field(
        "adaptive",
        description="By default the first of adaptive, working_set, asset that is not null.",
    )
    seed: int = Field(0, ge=0, lt=2**53)
    learners: int = Field(
        1,
        ge=1,
        le=MOST_LEARNERS,
        exclude_if=_is_one,
        description="More than 1, in a fleet: samples are divided among so many logs, each with a "
        "leader that learns them, and what these have learned is merged every few seconds. Rows "
        "are arrays then.",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_what_follows(cls, given: Any) -> Any:
        """Defaults that depend on other fields."""
        if not isinstance(given, dict):
            return given
        regression = given.get("task") == "regression"
        kernel = with_type(given.get("kernel", {}))
        given = given | {"kernel": kernel}
        if given.get("learners", 1) != 1:
            given = OF_SEVERAL | given
            if isinstance(prepare := given.get("prepare", {}), dict):
                given = given | {"prepare": PREPARED_ALIKE | prepare}
        kind: Any = kernel["type"] if isinstance(kernel, dict) else "rbf"
        if regression:
            given = {"working_set": None} | given
        if given.get("semiparametric") is not None:
            given = {"prepare": None, "adaptive": None} | given
        if isinstance(asset := given.get("asset", {}), dict):
            if given.get("prepare", ()) is not None:
                asset = of_streams(asset)
            given = given | {"asset": with_defaults(asset, kind, regression)}
        given = with_set_defaults(given, kind)
        if given.get("adaptive", ()) is not None:
            return given
        given = {"temporal": False} | given
        if given.get("working_set", ()) is not None:
            given = {"serve": "working_set"} | given
        else:
            only_fitted = given["asset"] is None and given.get("semiparametric") is not None
            given = {"serve": "semiparametric" if only_fitted else "asset"} | given
        return given

    @model_validator(mode="after")
    def _of_its_task(self) -> Self:
        if self.classes is not None:
            if self.task == "regression":
                raise contradiction("/classes", "a regression has none: leave them out")
            if len(set(map(key_of, self.classes))) < len(self.classes):
                raise contradiction("/classes", "a class is named twice: 1, '1' and true are one")
        if self.task == "classification" and self.semiparametric is not None:
            raise contradiction(
                "/semiparametric",
                "the semiparametric head learns numbers only: leave it out, or say "
                '"task": "regression"',
            )
        return self

    @model_validator(mode="after")
    def _of_its_rows(self) -> Self:
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
        if self.temporal is not False and self.adaptive is None:
            raise contradiction(
                "/temporal",
                "only the adaptive head uses the labels before a row: leave temporal out, or "
                "adaptive in",
            )
        return self

    @model_validator(mode="after")
    def _of_its_heads(self) -> Self:
        bank, own = self.adaptive, self.working_set
        if bank is not None and bank.horizons == bank.steps == []:
            raise contradiction(
                "/adaptive",
                "ridge or gradient learners are needed: leave horizons or steps out, or list some",
            )
        if bank is not None and bank.naive_bayes and self.task == "regression":
            detail = "naive Bayes learns classes only: leave naive_bayes out"
            raise contradiction("/adaptive/naive_bayes", detail)
        if bank is not None and bank.class_weight is not None and self.task == "regression":
            detail = "a regression has no classes: leave it out, and give samples weights"
            raise contradiction("/adaptive/class_weight", detail)
        if own is not None:
            check_working_set(own, self.kernel, self.task)
        if self.asset is not None:
            check_asset(self.asset, self.kernel.type, self.task)
        if self.serve == "novelty":
            detail = "the novelty head predicts nothing: name another head, or leave serve out"
            raise contradiction("/serve", detail)
        if getattr(self, self.serve) is None:
            raise contradiction("/serve", f"the head {self.serve!r} is null")
        return self

    @model_validator(mode="after")
    def _of_its_learners(self) -> Self:
        if self.learners > 1:
            remembers = self.pending is not None
            check_prepares_alike(self.prepare)
            check_divisible(
                self.task, self.heads, temporal=self.temporal is not False, remembers=remembers
            )
            if self.asset is not None:
                check_begins_alike(self.asset, self.kernel)
        return self

    @property
    def of_one_learner(self) -> Self:
        """The spec of each of its learners."""
        return self.model_copy(update={"learners": 1})

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


def read_spec(given: Any) -> ModelSpec:
    """Check a decoded body; raises Invalid with a pointer to each wrong field."""
    try:
        return ModelSpec.model_validate(given)
    except ValidationError as error:
        raise Invalid("the spec is not valid", _REFUSALS.problems(error)) from None


# After the models that it describes.
_REFUSALS = Refusals(parts_of(ModelSpec))
