"""The known name that may be meant by an unknown one."""

import difflib

import pytest

from wolfstream.solver.prepare import nearest_name as module
from wolfstream.solver.prepare.nearest_name import MOST_COMPARED, nearest_name


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were compared."""
    found = list[str]()

    def counting(word: str, possibilities: list[str], n: int) -> list[str]:
        found.extend(possibilities)
        return difflib.get_close_matches(word, possibilities, n)

    monkeypatch.setattr(module, "get_close_matches", counting)
    return found


def test_a_name_with_a_slip():
    assert nearest_name("knwon device", ["amount", "known device"]) == "known device"
    assert nearest_name("elsewhere", ["amount", "known device"]) is None
    assert nearest_name("amount", []) is None


def test_of_many_names_a_bounded_number_is_compared(compared: list[str]):
    known = [f"column {i}" for i in range(25_000)] + ["amount"]
    assert nearest_name("amuont", known) == "amount"
    assert len(compared) == MOST_COMPARED
    assert compared[0] == "amount"


def test_long_names_are_not_compared(compared: list[str]):
    assert nearest_name("a" * 10**6, ["a" * 10**6, "a" * 38]) == "a" * 38
    assert compared == ["a" * 38]


def test_of_long_names_the_beginnings_are_compared(compared: list[str]):
    known = ["a" * 40 + "b" * 30, "c" * 40]
    assert nearest_name("a" * 60, known) == known[0]
    assert max(map(len, compared)) == 40


def test_names_that_begin_alike_are_compared_first(compared: list[str]):
    known = [f"xy{i:04}" for i in range(1000)] + [f"am{i:04}" for i in range(20)]
    nearest_name("amount", known)
    assert all(name.startswith("am") for name in compared[:20])
    assert len(set(compared)) == MOST_COMPARED
