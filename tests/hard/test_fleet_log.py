"""What the fleet's checker prints of a fault: the commits around it, and what was acknowledged."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.hard import fleet_log
from tests.hard.fleet_clients import Sent
from tests.hard.fleet_log import Log, lost_or_twice
from wolfstream.service.fleet.commit_messages import event_row
from wolfstream.service.fleet.log_index import Commit

OLD, NEW = b"writer", b"rival!"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """A log in which the first writer goes on after the second one has begun its term."""
    rows = [
        (OLD, event_row("created", 0, 0, b'{"epoch": "abc"}')),
        (NEW, event_row("epoch", 0, 0, b'{"epoch": "abc.1"}')),
        (OLD, event_row("answer", 0, 0, b"")),
    ]
    commits = [Commit(at, at + 1, at + 1, writer, [row]) for at, (writer, row) in enumerate(rows)]
    read = SimpleNamespace(chain=SimpleNamespace(read=lambda _: commits), faults=[])
    monkeypatch.setattr(fleet_log, "whole_log", lambda *_: read)
    fleet: Any = None
    model: Any = SimpleNamespace(name="a", epoch="abc")
    return Log(fleet, model)


def test_other_writer_is_printed_with_the_commits_around_it(log: Log) -> None:
    assert log.faults == [
        "a: message 3 is of another leader than its term\n"
        f"    message 1 after 0 by {OLD.hex()} in abc: created 0\n"
        f"    message 2 after 1 by {NEW.hex()} in abc.1: epoch 0\n"
        f"  > message 3 after 2 by {OLD.hex()} in abc.1: answer 0"
    ]


def test_lost_sample_is_printed_with_what_was_acknowledged(log: Log) -> None:
    sent = [Sent("a", "key-1", (0.5,), 1, "abc"), Sent("a", None, (1.5,), None, None)]
    (fault,) = lost_or_twice("a", log, sent)
    assert fault.startswith("a: what was acknowledged at 1 is at [[]]\n")
    assert fault.endswith("\n    acknowledged: 1 samples up to 1 in abc, key-1")
