"""Prequential scores: how well a head predicted samples just before it learned them.

Each score comes with the scores of baselines, which use no features, on the same samples: the label
or value before, the most frequent label so far, and the mean so far.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from wolfstream.service.heads.hits import Hits
from wolfstream.service.heads.value_errors import Errors

Score: TypeAlias = Hits | Errors


def score_in(plain: Mapping[str, Any]) -> Score:
    """Return the score in a head's saved state; an empty score if the head has none."""
    score = Errors() if "sums" in plain else Hits()
    if "rules" in plain:
        score.restore(plain)
    return score
