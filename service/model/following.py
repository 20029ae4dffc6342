"""What a challenger has in addition to its heads: its comparison with its champion, and counts."""

from typing import Any, NamedTuple

from wolfstream.service.model.comparison import Comparison


class Following(NamedTuple):
    """A challenger's performance compared with its champion's; replaced as a whole.

    comparison: with the champion. passed_over: samples that its spec cannot take. reason: of the
    last of these.
    """

    comparison: Comparison = Comparison()
    passed_over: int = 0
    reason: str | None = None

    def passing_over(self, samples: int, reason: str) -> "Following":
        """Return the state after more samples that the challenger's spec refuses."""
        return self._replace(passed_over=self.passed_over + samples, reason=reason)

    def plain(self) -> dict[str, Any]:
        """Return JSON-able data for a snapshot."""
        return {
            "comparison": self.comparison.plain(),
            "passed_over": self.passed_over,
            "reason": self.reason,
        }


def restored_following(plain: dict[str, Any] | None) -> Following:
    """Invert `Following.plain`; a snapshot from before the model followed gives a fresh state."""
    if plain is None:
        return Following()
    return Following(Comparison(*plain["comparison"]), plain["passed_over"], plain["reason"])
