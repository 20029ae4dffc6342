"""What a bank is made of, and the defaults of both tasks.

A geometric grid of steps, horizons and losses covers every choice that a stream may need
made. Linear learners cost next to nothing and are what noisy linear concepts need; short
horizons are for fast drift, an infinite one for streams that stay what they are.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from wolfstream.solver.adaptive.features import Span

Loss = Literal["square", "hinge", "logistic", "huber"]
FOREVER = float("inf")


class RidgeSetting(NamedTuple):
    """span: the columns to learn on. horizon: samples, or infinity. losses: an expert each."""

    span: Span
    horizon: float
    ridge: float
    losses: tuple[Loss, ...]


class GradientSetting(NamedTuple):
    """span: the columns to learn on. step: its length; of regression below 2."""

    span: Span
    step: float


class Settings(NamedTuple):
    """The learners of a bank.

    neighbours: how many of the nearest, ascending. naive_bayes: horizons, of classes and of rows
    that are not wide. diagonal: steps, of wide rows only. texts: steps, of rows with texts only.
    stackers: steps, or of regression horizons.
    """

    ridge: tuple[RidgeSetting, ...]
    gradient: tuple[GradientSetting, ...]
    neighbours: tuple[int, ...]
    naive_bayes: tuple[float, ...]
    diagonal: tuple[float, ...]
    texts: tuple[float, ...]
    stackers: tuple[float, ...]


def plain_horizon(horizon: float) -> float | None:
    """Return a horizon as descriptions have it: None for an infinite one."""
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

# The prior of ridge learners whose horizon is not one of the defaults.
_PRIOR = 0.1


class Pins(NamedTuple):
    """What takes the place of a part of the defaults: None leaves it, and nothing switches it off.

    horizons: of ridge learners, infinity for none. steps: of gradient learners. neighbours: how
    many of the nearest. naive_bayes: horizons, of classes alone.
    """

    horizons: Sequence[float] | None = None
    steps: Sequence[float] | None = None
    neighbours: Sequence[int] | None = None
    naive_bayes: Sequence[float] | None = None


NO_PINS = Pins()


def pinned(settings: Settings, pins: Pins) -> Settings:
    """Return the settings with these parts in place of their own, on every span of features."""
    if pins.horizons is not None:
        by_span_and_horizon = {
            (setting.span, setting.horizon): setting for setting in settings.ridge
        }
        losses = settings.ridge[0].losses
        ridge = [
            by_span_and_horizon.get((span, horizon), RidgeSetting(span, horizon, _PRIOR, losses))
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
