"""Fits beside learning: they take effect at a fixed sequence, whoever computes them."""

import gc
import os
import subprocess
import sys
import threading

import pytest

from wolfstream.solver.refits import Refits


def test_a_fit_is_taken_when_it_is_due() -> None:
    refits = Refits[str]()
    refits.begin(20, lambda: "fitted")
    assert [refits.take(n) for n in (10, 19)] == [None, None]
    assert refits.due == 20
    assert refits.take(20) == "fitted"
    assert refits.take(21) is None
    assert refits.due is None


def test_a_fit_goes_on_beside() -> None:
    refits, began, go_on = Refits[int](), threading.Event(), threading.Event()

    def work() -> int:
        began.set()
        go_on.wait()
        return threading.get_ident()

    refits.begin(1, work)
    assert began.wait(30)
    go_on.set()
    assert refits.take(1) != threading.get_ident()


def test_who_is_due_computes_a_fit_that_waits() -> None:
    first, second, go_on = Refits[int](), Refits[int](), threading.Event()
    first.begin(1, lambda: 0 if go_on.wait() else 1)
    second.begin(1, threading.get_ident)
    assert second.take(1) == threading.get_ident()
    go_on.set()
    assert first.take(1) == 0


def test_failures_are_raised_where_the_fit_is_taken() -> None:
    refits = Refits[None]()

    def work() -> None:
        raise ValueError("no rows")

    refits.begin(1, work)
    with pytest.raises(ValueError, match="no rows"):
        refits.take(1)
    assert refits.take(2) is None


def test_fits_that_nobody_keeps_are_dropped() -> None:
    go_on, computed = threading.Event(), list[int]()
    blocking = Refits[bool]()
    blocking.begin(1, go_on.wait)
    for k in range(100):
        Refits[None]().begin(1, lambda k=k: computed.append(k))  # type: ignore[misc]
    gc.collect()
    go_on.set()
    assert blocking.take(1)
    last = Refits[int]()
    last.begin(1, lambda: 7)
    assert last.take(1) == 7
    assert not computed


def test_a_new_fit_takes_the_place_of_one_that_was_not_taken() -> None:
    refits = Refits[int]()
    refits.begin(5, lambda: 1)
    refits.begin(6, lambda: 2)
    assert refits.take(5) is None
    assert refits.take(6) == 2


def test_a_child_computes_what_its_parent_had_begun() -> None:
    refits, waiting = Refits[int](), Refits[int]()
    began, go_on = threading.Event(), threading.Event()

    def work() -> int:
        began.set()
        # In the child, which has a copy of the pid's event, nobody sets it.
        return 1 if os.getpid() != parent or go_on.wait() else 0

    parent = os.getpid()
    refits.begin(1, work)
    waiting.begin(1, lambda: 2)
    assert began.wait(30)
    child = os.fork()
    if child == 0:
        later = Refits[int]()
        later.begin(1, lambda: 3)
        results = [refits.take(1), waiting.take(1), later.take(1)]
        os._exit(0 if results == [1, 2, 3] else 1)
    _, status = os.waitpid(child, 0)
    go_on.set()
    assert os.waitstatus_to_exitcode(status) == 0
    assert [refits.take(1), waiting.take(1)] == [1, 2]


_PROGRAM = """
import time
from wolfstream.solver.refits import Refits
kept = []
for _ in range(50):
    kept.append(Refits())
    kept[-1].begin(1, lambda: time.sleep(0.2))
"""


def test_a_program_ends_without_the_fits_that_wait() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=8)
