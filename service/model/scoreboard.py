"""A model and its challengers side by side, as plain data."""

from typing import Literal

from wolfstream.service.calls.models import Challenger, Challengers
from wolfstream.service.model.comparison import LEVEL, Comparison
from wolfstream.service.model.live import Model


def scoreboard(champion: Model, challengers: list[Model]) -> Challengers:
    """Compare each challenger with its champion on the samples that both have learned."""
    return {
        "model": champion.name,
        "sequence": champion.published.sequence,
        "epoch": champion.published.epoch,
        "task": champion.spec.task,
        "level": LEVEL,
        "cost_microseconds": champion.learning_time.microseconds,
        "challengers": [_row(model) for model in challengers],
    }


def _row(model: Model) -> Challenger:
    published, following = model.published, model.following
    comparison = following.comparison
    losses, interval = comparison.mean_losses, comparison.interval
    return {
        "model": model.name,
        "sequence": published.sequence,
        "epoch": published.epoch,
        "status": model.status,
        "notice": model.broken or None,
        "lag": model.lag,
        "passed_over": following.passed_over,
        "samples": comparison.samples,
        "loss": None if losses is None else losses[1],
        "champion_loss": None if losses is None else losses[0],
        "difference": comparison.difference,
        "interval": None if interval is None else list(interval),
        "better": _better(comparison),
        "cost_microseconds": model.learning_time.microseconds,
    }


def _better(comparison: Comparison) -> Literal["champion", "challenger"] | None:
    """Return which of the two is better; None while that is not certain."""
    interval = comparison.interval
    if interval is None or interval.low <= 0.0 <= interval.high:
        return None
    return "challenger" if interval.low > 0.0 else "champion"
