"""Commands that are forked behave as those that a shell starts."""

import contextlib
import marshal
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

SLEEP = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n"


def started(commands: Path, program: str) -> "subprocess.Popen[str]":
    """A program that reads all that it needs from its standard input."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [commands / "python"], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    assert process.stdin is not None
    process.stdin.write(program)
    process.stdin.close()
    return process


def test_inherit_folder_and_variables(commands: Path, tmp_path: Path):
    program = "import os, sys\nprint(os.getcwd(), os.environ['A'])\nsys.exit(3)\n"
    done = subprocess.run(
        [commands / "python"],
        input=program,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"A": "b"},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path} b\n", "")


def test_an_error_is_printed(commands: Path):
    done = subprocess.run(
        [commands / "wolfstream", "serve", "--port", "http"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("Error: --port 'http': it must be a whole number\n")
    with started(commands, "1 / 0\n") as process:
        assert process.stderr is not None
        assert "ZeroDivisionError" in process.stderr.read()
    assert process.returncode == 1


def test_a_client_that_leaves_at_once_ends_no_others(commands: Path):
    content = marshal.dumps(("python", [], str(Path.cwd()), dict(os.environ)))
    with socket.socket(socket.AF_UNIX) as link, Path(os.devnull).open("r+b") as nothing:
        link.connect(str(commands / "socket"))
        socket.send_fds(link, [struct.pack("<Q", len(content))], [nothing.fileno()] * 3)
        link.sendall(content)
    with started(commands, "print('goes on')\n") as process:
        assert process.wait(30) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_them(commands: Path, number: signal.Signals):
    with started(commands, SLEEP) as process:
        assert process.stdout is not None
        forked = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(30) == -number
    deadline = time.monotonic() + 30
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.kill(forked, 0)
            time.sleep(0.01)
        raise AssertionError("the process that was forked goes on")
