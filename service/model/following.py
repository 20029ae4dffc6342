"""A challenger's comparison with its champion, and the samples that it could not learn."""

from typing import Any, NamedTuple

from wolfstream.service.model.comparison import Comparison


class Following(NamedTuple):
    """How a challenger compares with its champion; replaced as a whole.

    Attributes:
        comparison: with the champion.
        passed_over: the number of samples that its spec has refused.
        reason: of the last of these.
    """

    comparison: Comparison = Comparison()
    passed_over: int = 0
    reason: str | None = None

    def passing_over(self, samples: int, reason: str) -> "Following":
        """Return the state after more samples that the challenger's spec refuses."""
        return self._replace(passed_over=self.passed_over + samples, reason=reason)

    def plain(self) -> dict[str, Any]:
        """Return JSON data for a snapshot."""
        return {
            "comparison": self.comparison.plain(),
            "passed_over": self.passed_over,
            "reason": self.reason,
        }


def restored_following(plain: dict[str, Any] | None) -> Following:
    """Invert `Following.plain`; return a new state for None, of a model that did not follow."""
    if plain is None:
        return Following()
    return Following(Comparison(*plain["comparison"]), plain["passed_over"], plain["reason"])
