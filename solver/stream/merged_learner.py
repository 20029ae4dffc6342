"""The learner of the papers in a model that was merged, and in one that is to be merged later."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.merge import merge as merge_asset
from wolfstream.solver.asset.merge import sibling_of
from wolfstream.solver.stream.kernel_learner import KernelLearner
from wolfstream.solver.working_set.merged_widths import merge_widths
from wolfstream.solver.working_set.union import renumbered, support_of, unite


def begin_beside(sibling: KernelLearner[Any], learner: KernelLearner[Any]) -> None:
    """Have a learner without samples share what learners to be merged must share.

    Of ASSET that is gamma and the features; a working set is built again from its samples, with
    the widths that one of the sets has found.

    Raises ValueError while the learner is still choosing them.
    """
    if not learner.frozen and learner.following is None:
        raise ValueError("a learner is still choosing its kernel: let it learn more first")
    if isinstance(learner.current, Asset):
        sibling.go_on_from(sibling_of(learner.current), learner)
    elif learner.following is None:
        sibling.go_on_from(sibling.built(learner.current.kernel), learner)


def merge_learners(
    merged: KernelLearner[Any],
    each: Sequence[KernelLearner[Any]],
    places: Sequence[NDArray[np.int64]],
) -> None:
    """Have a learner without samples be the merged one of several that have learned some.

    places: for each, the numbers in the merged one of the classes that it has met. Raises
    ValueError for learners that cannot be merged.
    """
    widest = max(each, key=lambda one: one.features)
    following = [one.following for one in each if one.following is not None]
    if following:
        result = merged.new_following()
        merge_widths(result.set, [one.set for one in following], places)
        result.watch_from_now()
        merged.go_on_from(result, widest)
    elif isinstance(each[0].current, Asset):
        merged.go_on_from(merge_asset([one.current for one in each], places), widest)
    else:
        classes = 1 + max(int(of_one.max()) for of_one in places)
        of_each = zip(each, places, strict=True)
        united = merged.built(widest.current.kernel)
        supports = [renumbered(support_of(one.current), of, classes) for one, of in of_each]
        unite(united, supports, classes)
        united.seen = sum(one.seen for one in each)
        merged.go_on_from(united, widest)
