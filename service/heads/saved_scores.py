"""Checks of the plain data of saved heads: scores, changes, and counts of learners.

Descriptions, metrics and the console compute with scores without checking their types.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wolfstream.service.heads.recent import LENGTH
from wolfstream.service.heads.saved_arrays import WrongArrays

_MOST = 2**53  # not every larger integer is a 64-bit float
_TOO_MANY = "counts more samples than the model has learned"
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Code = Annotated[int, Field(ge=-1, le=_MOST)]  # of a class; -1 for none
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Sum = Annotated[float, Field(allow_inf_nan=False, ge=0.0)]
_Mean = Annotated[float, Field(ge=0.0, le=1.0)]
# Losses that wait for a complete block; up to 256 wait until they set the scale.
_Waiting = Annotated[list[_Sum], Field(max_length=256)]
_Column = Annotated[list[_Number | None], Field(max_length=LENGTH)]


class _PlainData(BaseModel):
    """Data from JSON: a list may stand for a tuple; no other types are converted."""

    model_config = ConfigDict(strict=True)


class _Changes(_PlainData):
    """The plain data of `calibration.changes.Changes`."""

    found: list[tuple[_Code, _Mean, _Mean, _Count]]
    total: _Count
    scale: _Sum | None
    blocks: _Count
    waiting: _Waiting
    buckets: tuple[list[Annotated[int, Field(ge=1, le=_MOST)]], list[_Sum]]


class _Classes(_PlainData):
    """The plain data of `heads.class_scores.Hits`."""

    classes: list[Any]
    confusion: list[list[_Count]]
    met: list[_Count]
    rules: tuple[_Count, _Count, _Code, _Code]
    log_loss: tuple[_Sum, _Count]
    recent: Annotated[list[_Column], Field(min_length=5, max_length=5)]
    changes: _Changes


class _Values(_PlainData):
    """The plain data of `heads.value_scores.Errors`."""

    judged: _Count
    sums: Annotated[list[_Sum], Field(min_length=6, max_length=6)]
    spread: tuple[_Number, _Sum]
    rules: tuple[_Count, _Number, _Number]
    recent: Annotated[list[_Column], Field(min_length=4, max_length=4)]
    changes: _Changes


class _Learner(_PlainData):
    """Counts that learners save beside their arrays; each learner saves some of them."""

    features: _Count = 0
    class_counts: list[_Sum] = []


def check_scores(heads: Mapping[str, Mapping[str, Any]], sequence: int) -> None:
    """Raise WrongArrays for plain data that no head saves.

    Args:
        heads: head -> its plain data.
        sequence: of the model. No head has judged or counted more samples.
    """
    for name, plain in heads.items():
        content = json.dumps(plain)
        try:
            _Learner.model_validate_json(content)
            if "confusion" in plain:
                _check_classes(name, _Classes.model_validate_json(content), sequence)
            if "sums" in plain:
                _check_values(name, _Values.model_validate_json(content), sequence)
        except ValidationError as error:
            place = ".".join(map(str, (name, *error.errors()[0]["loc"])))
            raise WrongArrays(f"its {place} is not what a head saves") from None


def _check_classes(head: str, plain: _Classes, sequence: int) -> None:
    """Check that class codes are in range, and that counts are consistent."""
    n_classes, confusion, recent = len(plain.met), plain.confusion, plain.recent
    square = len(confusion) == n_classes and all(len(row) == n_classes for row in confusion)
    _require(
        square and n_classes <= len(plain.classes), head, "confusion", "does not fit its classes"
    )
    judged = sum(map(sum, confusion))
    *right, last, majority = plain.rules
    _require(max(last, majority) < n_classes, head, "rules", "names an unknown class")
    _require(max(right) <= judged, head, "rules", "counts more samples than were judged")
    _require(plain.log_loss[1] <= judged, head, "log_loss", "counts more samples than were judged")
    met = all(sum(row) <= n for row, n in zip(confusion, plain.met, strict=True))
    _require(met, head, "met", "counts fewer samples than were judged")
    _require(sum(plain.met) <= sequence, head, "met", _TOO_MANY)
    _check_recent(head, recent, judged)
    labels, guesses, *flags, losses = recent
    inside = all(code in range(n_classes) for code in (*labels, *guesses))
    inside = inside and all(flag in (0, 1) for column in flags for flag in column)
    _require(inside, head, "recent", "names an unknown class")
    _require(
        all(loss is None or loss >= 0.0 for loss in losses), head, "recent", "has a negative loss"
    )
    pairs = Counter((int(a or 0), int(b or 0)) for a, b in zip(labels, guesses, strict=True))
    fewer = all(n <= confusion[label][guess] for (label, guess), n in pairs.items())
    _require(fewer, head, "recent", "has samples that confusion does not count")
    _check_changes(head, plain.changes, sequence)


def _check_values(head: str, plain: _Values, sequence: int) -> None:
    _require(plain.rules[0] >= plain.judged, head, "rules", "counts fewer samples than were judged")
    _require(plain.rules[0] <= sequence, head, "rules", _TOO_MANY)
    _check_recent(head, plain.recent, plain.judged)
    whole = all(value is not None for column in plain.recent for value in column)
    _require(whole, head, "recent", "has numbers missing")
    _check_changes(head, plain.changes, sequence)


def _check_recent(head: str, columns: Sequence[Sequence[Any]], judged: int) -> None:
    same = {len(column) for column in columns} == {min(judged, LENGTH)}
    _require(same, head, "recent", "does not hold the last judged samples")


def _check_changes(head: str, changes: _Changes, sequence: int) -> None:
    blocks, (sizes, sums) = changes.blocks, changes.buckets
    _require(changes.total <= blocks <= sequence, head, "changes", _TOO_MANY)
    fits = len(sizes) == len(sums) and len(changes.found) <= changes.total and sum(sizes) <= blocks
    # Each block of a bucket has 64 losses, none above 1.
    fits = fits and all(total <= 64 * size for size, total in zip(sizes, sums, strict=True))
    _require(fits, head, "changes", "are inconsistent")


def _require(holds: bool, head: str, name: str, what: str) -> None:
    if not holds:
        raise WrongArrays(f"its {head}.{name} {what}")
