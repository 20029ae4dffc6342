"""The kernel, in processes of its own: the same seed gives the same run, and time is virtual."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRELUDE = """
from tests.simulation import standard_library
standard_library.install()
from tests.simulation import loops
loops.install()
import asyncio, concurrent.futures, os, queue, random, secrets, sys, threading, time, uuid
kernel = standard_library.begin(sys.argv[1], 0.2)
"""
ENDING = "\nsys.stdout.flush()\nos._exit(0)\n"


def ran(code: str, seed: str = "1") -> str:
    """Return what a simulation prints."""
    program = PRELUDE + textwrap.dedent(code) + ENDING
    done = subprocess.run(
        [sys.executable, "-c", program, seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


RACE = """
order = []
def work(number):
    begun.wait()
    for _ in range(5):
        with lock:
            order.append(number)
lock, begun = threading.Lock(), threading.Event()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
begun.set()
for thread in threads:
    thread.join()
pool = concurrent.futures.ThreadPoolExecutor(3)
done, _ = concurrent.futures.wait([pool.submit(time.sleep, n) for n in range(6)])
async def race():
    tasks = [asyncio.create_task(asyncio.to_thread(work, n)) for n in range(3)]
    await asyncio.wait(tasks)
asyncio.run(race())
print(order, secrets.token_hex(4), uuid.uuid4(), random.random(), random.Random().random())
print(kernel.steps, kernel.trace)
"""


def test_same_seed_gives_same_trace() -> None:
    assert ran(RACE) == ran(RACE)


def test_seeds_give_different_interleavings() -> None:
    assert len({ran(RACE, seed).splitlines()[0].partition("]")[0] for seed in "12345"}) == 5


def test_hours_pass_in_seconds() -> None:
    printed = ran("""
        began, wall = time.monotonic(), time.time()
        async def wait():
            await asyncio.gather(asyncio.sleep(3600), asyncio.to_thread(time.sleep, 7200))
        asyncio.run(wait())
        print(round(time.monotonic() - began), round(time.time() - wall))
    """)
    assert printed == "7200 7200\n"


def test_timeouts_end_waits_in_order() -> None:
    printed = ran("""
        event, found = threading.Event(), []
        def wait(seconds):
            found.append((event.wait(seconds), round(time.monotonic() * 10)))
        for seconds in (0.3, 0.1, 0.2, 5.0):
            threading.Thread(target=wait, args=(seconds,)).start()
        time.sleep(1)
        event.set()
        time.sleep(0.1)
        print(found)
        try:
            queue.Queue().get(timeout=2)
        except queue.Empty:
            print(round(time.monotonic()))
    """)
    assert printed == "[(False, 1), (False, 2), (False, 3), (True, 10)]\n3\n"


def test_deadlock_names_each_place() -> None:
    printed = ran("""
        one, other = threading.Lock(), threading.Lock()
        def hold(first, second):
            with first:
                time.sleep(1)
                with second:
                    pass
        threads = [
            threading.Thread(target=hold, args=pair, name=f"holder {n}")
            for n, pair in enumerate([(one, other), (other, one)])
        ]
        for thread in threads:
            thread.start()
        try:
            threads[0].join()
        except Exception as error:
            print(type(error).__name__, error)
    """)
    assert printed.startswith("Deadlock")
    assert "thread 1 holder 0: blocked" in printed
    assert "thread 2 holder 1: blocked" in printed


def test_paused_group_waits_killed_one_ends() -> None:
    printed = ran("""
        from tests.simulation.kernel import Group
        found = []
        def count(name):
            while True:
                time.sleep(1)
                found.append(name)
        groups = [Group(name) for name in "abc"]
        for group in groups:
            kernel.start(lambda name=group.name: count(name), group.name, group)
        time.sleep(2.5)
        kernel.pause(groups[0])
        kernel.kill(groups[1])
        time.sleep(2)
        print([found.count(name) for name in "abc"])
        kernel.resume(groups[0])
        time.sleep(2)
        print([found.count(name) for name in "abc"])
    """)
    assert printed == "[2, 2, 4]\n[4, 2, 6]\n"


def test_killed_thread_gives_shared_lock_back() -> None:
    printed = ran("""
        from tests.simulation.kernel import Group
        shared, group = threading.Lock(), Group("a")
        def hold():
            with shared:
                time.sleep(1)
            print("never")
        kernel.start(hold, "a", group)
        time.sleep(0.5)
        kernel.kill(group)
        with shared:
            print(round(time.monotonic(), 2) >= 1)
        time.sleep(1)
    """)
    assert printed == "True\n"


@pytest.mark.parametrize("seed", ["1", "2"])
def test_thread_locals_stay_apart(seed: str) -> None:
    printed = ran(
        """
        local, found = threading.local(), []
        def work(number):
            local.value = number
            time.sleep(0)
            async def inner():
                await asyncio.sleep(0)
                return asyncio.get_running_loop() is loop
            loop = asyncio.new_event_loop()
            found.append((local.value == number, loop.run_until_complete(inner())))
        threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(set(found))
        """,
        seed,
    )
    assert printed == "{(True, True)}\n"
