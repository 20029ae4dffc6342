"""Fits beside learning: they take effect at a fixed sequence, whoever computes them."""

import gc
import os
import subprocess
import sys
import threading

import pytest

from wolfstream.solver.refits import Refits, give_way


def test_a_fit_is_taken_when_it_is_due() -> None:
    refits = Refits[str]()
    refits.begin(0, 20, lambda: "fitted")
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

    refits.begin(0, 1, work)
    assert began.wait(30)
    go_on.set()
    assert refits.take(1) != threading.get_ident()


def test_who_is_due_computes_a_fit_that_waits() -> None:
    first, second, go_on = Refits[int](), Refits[int](), threading.Event()
    first.begin(0, 1, lambda: 0 if go_on.wait() else 1)
    second.begin(0, 1, threading.get_ident)
    assert second.take(1) == threading.get_ident()
    go_on.set()
    assert first.take(1) == 0


def test_a_long_fit_gives_way_to_those_with_less_room() -> None:
    order, began, all_wait = list[str](), threading.Event(), threading.Event()
    long, longer, short = Refits[None](), Refits[None](), Refits[None]()

    def work() -> None:
        began.set()
        all_wait.wait()
        give_way()
        order.append("long")

    long.begin(0, 100, work)
    assert began.wait(30)
    longer.begin(0, 101, lambda: order.append("longer"))
    # What counts is how many samples come before the fit is due.
    short.begin(1000, 1099, lambda: order.append("short"))
    all_wait.set()
    long.take(100)
    assert order[:2] == ["short", "long"]
    longer.take(101)
    short.take(1099)
    assert order == ["short", "long", "longer"]


def test_who_computes_a_fit_that_is_due_gives_way_to_none() -> None:
    blocking, go_on, computed = Refits[bool](), threading.Event(), list[str]()
    blocking.begin(0, 1, go_on.wait)
    due, short = Refits[None](), Refits[None]()
    due.begin(0, 10, give_way)
    short.begin(0, 1, lambda: computed.append("short"))
    due.take(10)
    assert not computed
    go_on.set()
    assert blocking.take(1)


def test_failures_are_raised_where_the_fit_is_taken() -> None:
    refits = Refits[None]()

    def work() -> None:
        raise ValueError("no rows")

    refits.begin(0, 1, work)
    with pytest.raises(ValueError, match="no rows"):
        refits.take(1)
    assert refits.take(2) is None


def test_fits_that_nobody_keeps_are_dropped() -> None:
    go_on, computed = threading.Event(), list[int]()
    blocking = Refits[bool]()
    blocking.begin(0, 1, go_on.wait)
    for k in range(100):
        Refits[None]().begin(0, 1, lambda k=k: computed.append(k))  # type: ignore[misc]
    gc.collect()
    go_on.set()
    assert blocking.take(1)
    last = Refits[int]()
    last.begin(0, 1, lambda: 7)
    assert last.take(1) == 7
    assert not computed


def test_new_fit_replaces_unused_one() -> None:
    refits = Refits[int]()
    refits.begin(0, 5, lambda: 1)
    refits.begin(0, 6, lambda: 2)
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
    refits.begin(0, 1, work)
    waiting.begin(0, 1, lambda: 2)
    assert began.wait(30)
    child = os.fork()
    if child == 0:
        later = Refits[int]()
        later.begin(0, 1, lambda: 3)
        results = [refits.take(1), waiting.take(1), later.take(1)]
        os._exit(0 if results == [1, 2, 3] else 1)
    _, status = os.waitpid(child, 0)
    go_on.set()
    assert os.waitstatus_to_exitcode(status) == 0
    assert [refits.take(1), waiting.take(1)] == [1, 2]


_PROGRAM = """
import time
from wolfstream.solver.refits import Refits, give_way
kept = []
for _ in range(50):
    kept.append(Refits())
    kept[-1].begin(0, 1, lambda: time.sleep(0.2))
"""


def test_a_program_ends_without_the_fits_that_wait() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=8)
