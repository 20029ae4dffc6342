"""What the spec of a model with several learners may have: only what can be merged."""

from collections.abc import Collection
from typing import Any

from wolfstream.service.spec.asset import AssetSpec
from wolfstream.service.spec.heads import HeadName, Task
from wolfstream.service.spec.kernel import KernelSpec, contradiction, has_auto_gamma
from wolfstream.service.spec.prepare import PrepareSpec

# ASSET's default kernel is found from samples, waiting rows are with one learner only, and none has
# the label before a row.
OF_SEVERAL: dict[str, Any] = {"asset": None, "pending": None, "temporal": False}
# Each learner would find codes among the rows that it is sent first.
PREPARED_ALIKE: dict[str, Any] = {"codes": "numbers"}
_DRAWN_ALIKE = ("fourier", "identity")
_ALONE: tuple[HeadName, ...] = ("novelty", "semiparametric")


def check_divisible(
    task: Task, heads: Collection[HeadName], *, temporal: bool, remembers: bool
) -> None:
    """Raise a contradiction unless what learners of such a spec have learned can be merged.

    temporal: whether the labels before a row help. remembers: whether predicted rows wait for their
    labels.
    """
    if task != "classification":
        raise _refused("/task", "numbers cannot be merged, whose scales differ: learn classes")
    if temporal:
        raise _refused("/temporal", "no learner has the label before a row: leave temporal out")
    if remembers:
        raise _refused("/pending", "rows cannot wait for their labels: leave pending out")
    for name in _ALONE:
        if name in heads:
            raise _refused(f"/{name}", f"the head {name} cannot be merged: leave it out")


def check_prepares_alike(prepare: PrepareSpec | None) -> None:
    """Raise a contradiction unless all learners take the same columns for codes."""
    if prepare is not None and prepare.codes != "numbers":
        raise _refused(
            "/prepare/codes",
            "each learner would find codes of its own: say numbers, or leave it out",
        )


def check_begins_alike(asset: AssetSpec, kernel: KernelSpec) -> None:
    """Raise a contradiction unless ASSET has the same features wherever it begins."""
    if asset.features not in _DRAWN_ALIKE:
        raise _refused(
            "/asset/features",
            f"each learner would choose its own landmarks: say {' or '.join(_DRAWN_ALIKE)}",
        )
    if asset.features == "fourier" and has_auto_gamma(kernel):
        raise _refused(
            "/kernel/gamma",
            "ASSET's features depend on gamma, which each learner would find for itself: say a "
            "number, or leave asset out",
        )


def _refused(pointer: str, detail: str) -> Exception:
    return contradiction(pointer, f"{detail}, where there are several learners")
