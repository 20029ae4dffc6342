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
    """Return the score in a head's saved state."""
    score = Errors() if "sums" in plain else Hits()
    score.restore(plain)
    return score
