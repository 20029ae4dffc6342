"""Bodies of late labels that are refused."""

import pytest

from wolfstream.service.errors import MOST_ERRORS, Invalid
from wolfstream.service.samples.ids import read_late_labels


def test_missing_fields_in_order():
    with pytest.raises(Invalid) as refused:
        read_late_labels({}, "classification")
    assert [error["pointer"] for error in refused.value.errors] == ["/ids", "/y"]


def test_unknown_fields_are_bounded():
    with pytest.raises(Invalid) as refused:
        read_late_labels({f"f{i}": 0 for i in range(1000)}, "classification")
    pointers = [error["pointer"] for error in refused.value.errors]
    assert pointers == [*(f"/f{i}" for i in range(MOST_ERRORS)), "/ids", "/y"]
