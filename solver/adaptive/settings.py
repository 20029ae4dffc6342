"""The learners of a bank, and the defaults for both tasks.

A geometric grid of steps, horizons and losses takes the place of tuning. Linear learners cost next
to nothing and suit noisy linear concepts; short horizons are for fast drift, the infinite one is
for streams that do not change.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from wolfstream.solver.adaptive.features import Span

Loss = Literal["square", "hinge", "logistic", "huber"]
# Whether the labels before a row help to predict it; "auto": if they are known.
Temporal = Literal["auto"] | bool
FOREVER = float("inf")


class RidgeSetting(NamedTuple):
    """Ridge learners that share P (`ridge`)."""

    span: Span
    horizon: float  # in samples
    ridge: float
    losses: tuple[Loss, ...]  # an expert each


class GradientSetting(NamedTuple):
    """A first-order learner (`gradient`)."""

    span: Span
    step: float  # in regression below 2


class Settings(NamedTuple):
    """The learners of a bank."""

    ridge: tuple[RidgeSetting, ...]
    gradient: tuple[GradientSetting, ...]
    neighbours: tuple[int, ...]  # numbers of neighbours, ascending
    naive_bayes: tuple[float, ...]  # horizons; for classes of rows that are not wide
    diagonal: tuple[float, ...]  # steps; for wide rows
    texts: tuple[float, ...]  # steps; for rows with texts
    stackers: tuple[float, ...]  # steps; in regression horizons


def plain_horizon(horizon: float) -> float | None:
    """Return a horizon as JSON has it: None for an infinite one."""
    return None if horizon == FOREVER else horizon


def _ridge(*losses: Loss) -> tuple[RidgeSetting, ...]:
    return (
        RidgeSetting("all", FOREVER, 0.1, losses),
        RidgeSetting("all", 1000.0, 1.0, losses),
        RidgeSetting("all", 300.0, 0.1, losses),
        RidgeSetting("linear", FOREVER, 0.1, losses),
        RidgeSetting("linear", 1000.0, 0.1, losses),
        RidgeSetting("linear", 300.0, 0.1, losses),
    )


CLASSIFICATION = Settings(
    ridge=_ridge("square", "hinge", "logistic"),
    gradient=(
        GradientSetting("all", 0.03),
        GradientSetting("all", 0.3),
        GradientSetting("all", 1.0),
        GradientSetting("all", 10.0),
        GradientSetting("linear", 0.01),
        GradientSetting("linear", 0.1),
        GradientSetting("linear", 1.0),
    ),
    neighbours=(5, 25),
    naive_bayes=(FOREVER,),
    diagonal=(0.3, 1.0),
    texts=(0.3, 1.0, 3.0),
    stackers=(0.03, 0.1, 0.3, 1.0),
)

REGRESSION = Settings(
    ridge=_ridge("square", "huber"),
    gradient=(
        GradientSetting("all", 0.1),
        GradientSetting("all", 0.5),
        GradientSetting("all", 1.0),
        GradientSetting("all", 1.5),
        GradientSetting("linear", 0.1),
        GradientSetting("linear", 1.0),
    ),
    neighbours=(5, 25),
    naive_bayes=(),
    diagonal=(0.3, 1.0),
    texts=(0.1, 0.3, 1.0),
    stackers=(300.0, FOREVER),
)

# The ridge of learners whose horizon is not one of the defaults.
_RIDGE = 0.1


class Pins(NamedTuple):
    """Replacements for parts of the defaults: None keeps a part, an empty sequence removes it."""

    horizons: Sequence[float] | None = None  # of ridge learners
    steps: Sequence[float] | None = None  # of gradient learners
    neighbours: Sequence[int] | None = None  # numbers of neighbours
    naive_bayes: Sequence[float] | None = None  # horizons, in classification


NO_PINS = Pins()


def pinned(settings: Settings, pins: Pins) -> Settings:
    """Return settings with parts replaced, on every span of features."""
    if pins.horizons is not None:
        by_span_and_horizon = {
            (setting.span, setting.horizon): setting for setting in settings.ridge
        }
        losses = settings.ridge[0].losses
        ridge = [
            by_span_and_horizon.get((span, horizon), RidgeSetting(span, horizon, _RIDGE, losses))
            for span in dict.fromkeys(setting.span for setting in settings.ridge)
            for horizon in pins.horizons
        ]
        settings = settings._replace(ridge=tuple(ridge))
    if pins.steps is not None:
        spans = dict.fromkeys(setting.span for setting in settings.gradient)
        gradient = [GradientSetting(span, step) for span in spans for step in pins.steps]
        settings = settings._replace(gradient=tuple(gradient))
    if pins.neighbours is not None:
        settings = settings._replace(neighbours=tuple(sorted(pins.neighbours)))
    if pins.naive_bayes is not None:
        settings = settings._replace(naive_bayes=tuple(pins.naive_bayes))
    return settings
