"""What is one label however it is spelled, and what is not."""

from typing import Any

import pytest

from wolfstream.solver.labels import key_of


@pytest.mark.parametrize(
    "spellings",
    [
        [1, True, "1", "1.0", "+1", "true", "True", "TRUE"],
        [0, False, "0", "-0", "0.0", "false"],
        [-7, "-7", "-7.00"],
        [2**63 - 1, str(2**63 - 1)],
    ],
)
def test_spellings_of_a_label_have_one_key(spellings: list[Any]):
    assert len({key_of(label) for label in spellings}) == 1


@pytest.mark.parametrize(
    "labels",
    [
        ["1", "01", "1e0", "1_0", " 1", "١", "one", 2, ""],
        ["yes", "Yes", "no", "t"],
        [2**53, 2**53 + 1, str(2**53 + 2)],
        ["1.5", "1.50", "nan"],
    ],
)
def test_different_labels_have_different_keys(labels: list[Any]):
    assert len({key_of(label) for label in labels}) == len(labels)
