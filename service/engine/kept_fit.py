"""A finished refit becomes part of its model."""

from wolfstream.service.engine.broken import mark_broken
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.writer_role import Products
from wolfstream.service.errors import RefitFailed
from wolfstream.service.heads.fit import Fit, Window, fit_from_record, fit_to_record
from wolfstream.service.model.learner import Learner
from wolfstream.service.storage.entries import Entry


def keep_fit(
    learner: Learner,
    commits: Commits,
    aside: Products,
    threads: int,
    window: Window,
    fit: Fit,
) -> None:
    """Persist, apply and publish the fit of a window; on the writer's thread.

    Args:
        learner: of the model.
        commits: that write its log.
        aside: see `Writer`.
        threads: on how many the products are computed, live and in a replay.
        window: that the refit took.
        fit: its result.

    Raises ModelBroken, RefitFailed, StorageFailed.
    """
    model = learner.model
    if window.epoch != learner.epoch:
        raise RefitFailed(
            f"model {model.name!r} was rolled back while the refit ran, on samples "
            "that it no longer knows; ask for another refit"
        )
    with aside(threads):
        record = fit_to_record(fit)
    entry = Entry(
        model=model.id,
        sequence=learner.sequence,
        samples=0,
        block=learner.sequence,
        head=window.head,
        threads=threads,
        record=record,
        kind="fit",
    )
    commits.append_alone(entry)
    try:
        with aside(threads):
            learner.adopt(entry.head, fit_from_record(entry.record))
            learner.publish()
    except Exception as error:  # the log has the fit: a state without it must not go on
        raise mark_broken(learner, error) from None
