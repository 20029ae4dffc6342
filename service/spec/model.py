"""The spec of a model as a whole: its fields, and the rules between them."""

from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from wolfstream.service.errors import Invalid
from wolfstream.service.spec.adaptive import AdaptiveSpec
from wolfstream.service.spec.asset import (
    AssetSpec,
    check_asset,
    with_defaults,
    with_stream_defaults,
)
from wolfstream.service.spec.custom import CustomSpec
from wolfstream.service.spec.heads import HEADS, HeadName, TaskName
from wolfstream.service.spec.kernel import KernelSpec, RbfSpec, SpecPart, contradiction, with_type
from wolfstream.service.spec.novelty import NoveltySpec
from wolfstream.service.spec.pending import PendingSpec
from wolfstream.service.spec.prepare import PrepareSpec
from wolfstream.service.spec.refusals import Refusals, parts_of
from wolfstream.service.spec.semiparametric import SemiparametricSpec
from wolfstream.service.spec.task_fields import check_fields, fields_of
from wolfstream.service.spec.working_set import WorkingSetSpec, check_working_set, with_set_defaults
from wolfstream.solver.labels import key_of

MODEL_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"


class ModelSpec(SpecPart):
    """What a model is. `{}` is a valid spec; a head that is null does not exist."""

    task: TaskName = "classification"
    classes: list[str | int | bool] | None = Field(
        None,
        min_length=2,
        max_length=1000,
        description="All labels; a request with any other label is refused as a whole. null: "
        "labels become known as they come.",
    )
    prepare: PrepareSpec | None = Field(
        default=PrepareSpec(), description="null: rows are learned as they are."
    )
    temporal: Literal["auto"] | bool = Field(
        "auto",
        description="auto: earlier labels help to predict a row where they are known: for a row "
        "that is predicted alone, once the row predicted before it has its label. true: always, "
        "which is wrong if labels come late, or if many rows are predicted at once. Only for the "
        "adaptive head; false by default without it.",
    )
    kernel: KernelSpec = Field(default_factory=RbfSpec, discriminator="type")
    working_set: WorkingSetSpec | None = Field(
        default=WorkingSetSpec(), description="null by default for regression."
    )
    asset: AssetSpec | None = Field(default=AssetSpec())
    semiparametric: SemiparametricSpec | None = Field(
        default=None, description="For regression, with rows that are arrays."
    )
    adaptive: AdaptiveSpec | None = Field(
        default=AdaptiveSpec(),
        description="null by default if there is a semiparametric head, and so is prepare: its "
        "basis is in the rows' own units.",
    )
    custom: CustomSpec | None = Field(
        default=None,
        exclude_if=lambda custom: custom is None,
        description="If given, it serves, and the heads that are not named are null.",
    )
    novelty: NoveltySpec | None = Field(
        default=None, description="Scores how novel each row is, beside its prediction."
    )
    pending: PendingSpec | None = Field(
        default=PendingSpec(), description="null: no predicted row waits for its label."
    )
    serve: HeadName = Field(
        "adaptive",
        description="By default the first of custom, adaptive, working_set, asset that is not "
        "null.",
    )
    seed: int = Field(0, ge=0, lt=2**53)

    @model_validator(mode="before")
    @classmethod
    def _fill_dependent_defaults(cls, body: Any) -> Any:
        """Fill in the defaults that depend on other fields."""
        if not isinstance(body, dict):
            return body
        fields = fields_of(body.get("task"))
        kernel = with_type(body.get("kernel", {}))
        body = body | {"kernel": kernel}
        kind: Any = kernel["type"] if isinstance(kernel, dict) else "rbf"
        body = {**fields.spec} | body
        if body.get("semiparametric") is not None:
            body = {"prepare": None, "adaptive": None} | body
        if body.get("custom") is not None:
            alone = {"adaptive": None, "working_set": None, "asset": None, "serve": "custom"}
            body = alone | body
        if isinstance(asset := body.get("asset", {}), dict):
            if body.get("prepare", ()) is not None:
                asset = with_stream_defaults(asset)
            body = body | {"asset": {**fields.asset} | with_defaults(asset, kind)}
        if isinstance(working_set := body.get("working_set", {}), dict):
            working_set = {**fields.working_set} | working_set
            body = with_set_defaults(body, working_set, kind)
        if body.get("adaptive", ()) is not None:
            return body
        body = {"temporal": False} | body
        if body.get("working_set", ()) is not None:
            body = {"serve": "working_set"} | body
        else:
            only_fitted = body["asset"] is None and body.get("semiparametric") is not None
            body = {"serve": "semiparametric" if only_fitted else "asset"} | body
        return body

    @model_validator(mode="after")
    def _check_task(self) -> Self:
        check_fields(self.task, "classes", self.classes)
        if self.classes and len(set(map(key_of, self.classes))) < len(self.classes):
            raise contradiction("/classes", "a class is named twice: 1, '1' and true are one")
        check_fields(self.task, "semiparametric", self.semiparametric)
        return self

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
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
    def _check_heads(self) -> Self:
        bank, working_set = self.adaptive, self.working_set
        if bank is not None and bank.horizons == bank.steps == []:
            raise contradiction(
                "/adaptive",
                "ridge or gradient learners are needed: leave horizons or steps out, or list some",
            )
        check_fields(self.task, "adaptive", bank)
        if working_set is not None:
            check_working_set(working_set, self.kernel, self.task)
        if self.asset is not None:
            check_asset(self.asset, self.kernel.type, self.task)
        if self.serve == "novelty":
            detail = "the novelty head predicts nothing: name another head, or leave serve out"
            raise contradiction("/serve", detail)
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
        """Return the spec as JSON data, with every default filled in."""
        return self.model_dump(mode="json", by_alias=True)


def read_spec(body: Any) -> ModelSpec:
    """Return the spec in a decoded body. Raises Invalid, with a pointer to each wrong field."""
    try:
        return ModelSpec.model_validate(body)
    except ValidationError as error:
        raise Invalid("the spec is not valid", _REFUSALS.problems(error)) from None


# Defined here because it needs the classes above.
_REFUSALS = Refusals(parts_of(ModelSpec))
