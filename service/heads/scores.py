"""Prequential scores: how well a head predicted samples just before it learned them.

Beside each score is that of rules without features on the same samples: the label or value before,
the most frequent label so far, the mean so far.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from wolfstream.service.heads.hits import Hits
from wolfstream.service.heads.value_errors import Errors

Score: TypeAlias = Hits | Errors


def score_in(plain: Mapping[str, Any]) -> Score:
    """Return the score in a head's saved state; one of no samples for a head that has none."""
    score = Errors() if "sums" in plain else Hits()
    if "rules" in plain:
        score.restore(plain)
    return score
