"""What a bank is made of, and the defaults of both tasks.

A geometric grid of steps, horizons and losses covers every choice that a stream may need
made. Linear learners cost next to nothing and are what noisy linear concepts need; short
horizons are for fast drift, an infinite one for streams that stay what they are.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from solver.adaptive.gradient import GradientSetting
from solver.adaptive.ridge import Loss, RidgeSetting

FOREVER = float("inf")


class Settings(NamedTuple):
    """The learners of a bank.

    neighbours: how many of the nearest, ascending. diagonal: steps, of wide rows only. texts:
    steps, of rows with texts only. stackers: steps, or of regression horizons.
    """

    ridge: tuple[RidgeSetting, ...]
    gradient: tuple[GradientSetting, ...]
    neighbours: tuple[int, ...]
    diagonal: tuple[float, ...]
    texts: tuple[float, ...]
    stackers: tuple[float, ...]

    def learners(self, *, wide: bool, texts: bool) -> Iterator[dict[str, Any]]:
        """The parameters of each learner, in the order of scores; an infinite horizon is None."""
        for ridge in self.ridge:
            horizon = None if ridge.horizon == FOREVER else ridge.horizon
            for loss in ridge.losses:
                yield {
                    "learner": "ridge",
                    "features": ridge.span,
                    "loss": loss,
                    "horizon": horizon,
                    "ridge": ridge.ridge,
                }
        for gradient in self.gradient:
            yield {"learner": "gradient", "features": gradient.span, "step": gradient.step}
        for weights in ("equal", "relevance"):
            for count in self.neighbours:
                yield {"learner": "neighbours", "weights": weights, "count": count}
        for step in self.diagonal if wide else ():
            yield {"learner": "diagonal", "step": step}
        for step in self.texts if texts else ():
            yield {"learner": "diagonal", "features": "texts", "step": step}


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
    diagonal=(0.3, 1.0),
    texts=(0.1, 0.3, 1.0),
    stackers=(300.0, FOREVER),
)

# The prior of ridge learners whose horizon is not one of the defaults.
_PRIOR = 0.1


class Pins(NamedTuple):
    """What takes the place of a part of the defaults: None leaves it, and nothing switches it off.

    horizons: of ridge learners, infinity for none. steps: of gradient learners. neighbours: how
    many of the nearest.
    """

    horizons: Sequence[float] | None = None
    steps: Sequence[float] | None = None
    neighbours: Sequence[int] | None = None


NO_PINS = Pins()


def pinned(settings: Settings, pins: Pins) -> Settings:
    """Return the settings with these parts in place of their own, on every span of features."""
    if pins.horizons is not None:
        known = {(one.span, one.horizon): one for one in settings.ridge}
        losses = settings.ridge[0].losses
        ridge = [
            known.get((span, horizon), RidgeSetting(span, horizon, _PRIOR, losses))
            for span in dict.fromkeys(one.span for one in settings.ridge)
            for horizon in pins.horizons
        ]
        settings = settings._replace(ridge=tuple(ridge))
    if pins.steps is not None:
        spans = dict.fromkeys(one.span for one in settings.gradient)
        gradient = [GradientSetting(span, step) for span in spans for step in pins.steps]
        settings = settings._replace(gradient=tuple(gradient))
    if pins.neighbours is not None:
        settings = settings._replace(neighbours=tuple(sorted(pins.neighbours)))
    return settings
