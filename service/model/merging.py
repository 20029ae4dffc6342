"""Merges models that have learned partitions of one stream into one.

No sample is in two partitions. The partitions stay as they are: they learn on, and are merged again
later.
"""

from collections.abc import Sequence

from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.prepare.pooled import pooled


class NotMergeable(ValueError):
    """Partitions that cannot be merged; the message says how they differ."""


def merged(name: str, spec: ModelSpec, parts: Sequence[Learner]) -> Learner:
    """Return a learner of all samples that the learners of one spec's partitions have learned.

    Its sequence is the sum of theirs. For what becomes of the rest see `adaptive.merge`,
    `stream.merged_learner` and `calibration.merge`. Partitions without samples are left out.

    Args:
        name: of the model that the learner is for.
        spec: of that model; with the same heads as the partitions'.
        parts: the learners of the partitions.

    Raises Unlike, also if no partition has learned a sample.
    """
    learned = [part for part in parts if part.sequence]
    if not learned:
        raise NotMergeable("none of them has learned a sample")
    result = Learner(Model(0, name, spec))
    _take_rows(result, learned)
    for head_name, head in result.heads.items():
        merge = KINDS[head_name].merge
        if merge is None:
            raise NotMergeable(f"{head_name}: heads of this kind cannot be merged")
        try:
            merge(head, [part.heads[head_name] for part in learned])
        except ValueError as error:
            raise NotMergeable(f"{head_name}: {error}") from None
    result.sequence = sum(part.sequence for part in learned)
    result.forget_views()
    return result


def _take_rows(result: Learner, parts: Sequence[Learner]) -> None:
    """Make a learner's rows those of the partitions. Raises Unlike."""
    form, rows = parts[0].rows.form, result.rows
    widths = sorted({part.rows.form.width or 0 for part in parts})
    if any(part.rows.form != form for part in parts):
        raise NotMergeable(
            f"their rows differ: arrays of {' and '.join(map(str, widths))} numbers; delete the "
            "model, create it again, and send rows of one length"
        )
    rows.form = form
    prepared = [part.rows.preparation for part in parts if part.rows.preparation is not None]
    if prepared:
        rows.preparation = rows.fresh_preparation()
        assert rows.preparation is not None
        rows.preparation.moments = pooled([preparation.moments for preparation in prepared])
