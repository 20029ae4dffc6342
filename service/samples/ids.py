"""Reads and checks ids, under which predicted rows wait for labels, and the labels for ids."""

import secrets
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

from wolfstream.service.errors import (
    MOST_ERRORS,
    Invalid,
    SampleError,
    pointer_to,
    refuse,
    refuse_all,
)
from wolfstream.service.samples.tasks import TASKS, Targets
from wolfstream.service.samples.values import is_unicode
from wolfstream.service.spec.heads import TaskName

RowId: TypeAlias = str | int
# The outcome for a label that is sent for an id.
Status: TypeAlias = Literal["learned", "replayed", "unknown", "expired", "conflict"]

LONGEST_ID = 128
_AUTO = "auto"
# Random names of this many bytes are practically never equal.
_NAME_BYTES = 9


class LateLabels(NamedTuple):
    """Labels or targets of rows that were predicted before, in the order in which they came."""

    ids: list[RowId]
    y: Targets


def read_ids(ids: Any, rows: int) -> list[RowId]:
    """Return the ids of n rows: those of the body, or new ones for "auto".

    Raises InvalidSamples.
    """
    if ids == _AUTO:
        name = secrets.token_urlsafe(_NAME_BYTES)
        return [f"{name}.{row}" for row in range(rows)]
    checked = _listed(ids, 'must be "auto", or an array with an id for each row')
    if len(checked) != rows:
        refuse("/ids", f"x and ids must be equally long; x has {rows} and ids has {len(checked)}")
    if len(set(checked)) < len(checked):
        first_rows: dict[RowId, int] = {}
        for i, row_id in enumerate(checked):
            if (first := first_rows.setdefault(row_id, i)) != i:
                refuse(f"/ids/{i}", f"is the id of row {first}, too")
    return checked


def read_late_labels(body: Any, task: TaskName) -> LateLabels:
    """Return labels for ids, for a model of this task. Raises Invalid, InvalidSamples."""
    wanted = ("ids", "y")
    if not isinstance(body, dict) or body.keys() != set(wanted):
        fields = body if isinstance(body, dict) else {}
        unknown = (name for name in fields if name not in wanted)
        wrong: list[SampleError] = [
            {"pointer": pointer_to(name), "detail": "unknown field"}
            for name in islice(unknown, MOST_ERRORS)
        ]
        wrong += [
            {"pointer": f"/{n}", "detail": "field is missing"} for n in wanted if n not in fields
        ]
        raise Invalid('the body of labels is {"ids": [...], "y": [...]}', wrong)
    ids = _listed(body["ids"], "must be an array of ids")
    if not ids:
        refuse("/ids", "is empty")
    y = body["y"]
    if not isinstance(y, list | dict):
        refuse("/y", "must be an array, one value for each id")
    targets: Targets
    targets = TASKS[task].read(y, single=False)
    if len(targets) != len(ids):
        refuse("/y", f"there are {len(ids)} ids and {len(targets)} values in y")
    return LateLabels(ids, targets)


def _listed(ids: Any, what: str) -> list[RowId]:
    if not isinstance(ids, list):
        refuse("/ids", what)
    if not _are_plain(ids) and any(map(_problem, ids)):
        refuse_all("some ids are not valid", _wrong_in(ids))
    return ids


def _are_plain(ids: list[Any]) -> bool:
    """Return whether all ids are short texts; a fast check of all at once."""
    return (
        set(map(type, ids)) == {str}
        and min(map(len, ids)) >= 1
        and max(map(len, ids)) <= LONGEST_ID
        and is_unicode("".join(ids))
    )


def _wrong_in(ids: list[Any]) -> Iterator[SampleError]:
    for i, row_id in enumerate(ids):
        if detail := _problem(row_id):
            yield {"row": i, "pointer": f"/ids/{i}", "detail": detail}


def _problem(row_id: Any) -> str:
    """Return what is wrong with an id; "" if it is valid."""
    if type(row_id) is int:
        return "" if -(2**63) <= row_id < 2**63 else "does not fit into 64 bits"
    if type(row_id) is not str:
        return "must be a text or a whole number"
    if not 1 <= len(row_id) <= LONGEST_ID:
        return f"does not have 1 to {LONGEST_ID} characters"
    return "" if is_unicode(row_id) else "is not valid Unicode"
