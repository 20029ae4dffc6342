"""Checks of saved heads that only the kind of a head knows, before compiled code reads them.

`engine.saved_arrays` checks what several kinds have in common.
"""

from collections.abc import Mapping
from typing import Any

from wolfstream.service.engine.saved_arrays import arrays_of
from wolfstream.service.heads.calibration import without_calibration
from wolfstream.service.heads.kind import SavedHead
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.heads.protocol import Head
from wolfstream.service.model.fitting_rows import preparing
from wolfstream.service.model.saved_rows import with_saved_codes
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.prepare import PrepareSpec
from wolfstream.service.storage.snapshot_format import State
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.schema import schema_from_plain


def check_heads(heads: Mapping[HeadName, Head], state: State, prepare: PrepareSpec | None) -> None:
    """Raise WrongArrays unless what a state has of each head fits together.

    Args:
        heads: new ones of the state's spec, which have learned nothing.
        state: with the arrays of all heads.
        prepare: of the state's spec.
    """
    mean = state.arrays.get("prepare_mean")
    width = None if mean is None else len(mean)
    for name, head in heads.items():
        check_saved = KINDS[name].check_saved
        if check_saved is not None:
            plain = state.plain["heads"][name]
            arrays = without_calibration(arrays_of(name, state.arrays))
            check_saved(head, SavedHead(plain, arrays, width, _crossed_texts(state.plain, prepare)))


def _crossed_texts(plain: Mapping[str, Any], prepare: PrepareSpec | None) -> int:
    """Return how many texts and codes of each row a head crosses.

    Raises ValueError for a wrong schema, or wrong codes.
    """
    schema = schema_from_plain(plain["schema"]) if "schema" in plain else None
    width = None if schema is not None or "names" in plain else plain["dimension"]
    form = RowForm(preparing(prepare), width=width, schema=schema)
    return with_saved_codes(form, plain).crossed_width
