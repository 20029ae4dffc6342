"""`wolfstream` and `python` as commands of a shell, forked from a process that has imported much.

Each command is a small client. It hands its arguments, folder, variables and standard streams to
the prepared process over a Unix socket, passes signals on to the process that is forked for it, and
ends as that one does. If the client is killed, so is that process, with its group.
"""

import contextlib
import marshal
import os
import selectors
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NamedTuple

from tests.service.process import ROOT

# What programs in pages import, and the process that servers are forked from does not.
_IMPORTS = (
    "import asyncio, csv, sklearn.datasets, sklearn.model_selection, wolfstream.solver.estimators"
)
_LENGTH, _NUMBER = struct.Struct("<Q"), struct.Struct("<i")
# Without site-packages, an interpreter starts in hundredths of a second.
_CLIENT = """\
#!{python} -ISE
import marshal, os, signal, socket, struct, sys

with socket.socket(socket.AF_UNIX) as link:
    link.connect({address!r})
    content = marshal.dumps(({name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)))
    socket.send_fds(link, [struct.pack("<Q", len(content))], [0, 1, 2])
    link.sendall(content)
    (process,) = struct.unpack("<i", link.recv(4, socket.MSG_WAITALL))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(process, number))
    (code,) = struct.unpack("<i", link.recv(4, socket.MSG_WAITALL))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class _Command(NamedTuple):
    """What a client has handed over."""

    name: str
    arguments: list[str]
    folder: str
    variables: dict[str, str]
    streams: list[int]


@contextlib.contextmanager
def forked_commands() -> Iterator[Path]:
    """A folder with both commands, which work as long as the context lasts."""
    with contextlib.ExitStack() as stack:
        # A socket's path must be short.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = str(folder / "socket")
        for name in ("wolfstream", "python"):
            command = folder / name
            command.write_text(_CLIENT.format(python=sys.executable, address=address, name=name))
            command.chmod(0o755)
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(address)
        listening.listen()
        with contextlib.chdir(ROOT):  # where the prepared process finds its modules
            process = ForkServerProcess(target=_run, args=(listening,))
            process.start()
        stack.callback(process.join)
        stack.callback(process.kill)
        yield folder


def _run(listening: socket.socket) -> None:
    """What the forked process does, and each that is forked from it in turn."""
    exec(_IMPORTS, {})
    command = _Forks(listening).next_command()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    for number, stream in enumerate(command.streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", 1)
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(command.variables)
    if command.name == "wolfstream":
        from wolfstream.service.cli.main import main

        main(command.arguments, prog_name="wolfstream")
    else:
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), {"__name__": "__main__"})


class _Forks:
    """Forks a process for each client, and tells the client how it ended."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._ended, noted = os.pipe()
        os.set_blocking(noted, False)
        signal.set_wakeup_fd(noted)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._clients: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        for readable in (listening, self._ended):
            self._selector.register(readable, selectors.EVENT_READ)

    def next_command(self) -> _Command:
        """In a forked process, what it shall run; this process goes on for ever."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == self._ended:
                    os.read(self._ended, 1 << 10)
                    self._tell_clients()
                elif key.fileobj is not self._listening:  # a client is gone
                    self._selector.unregister(key.fileobj)
                    os.killpg(key.data, signal.SIGKILL)
                elif command := self._fork():
                    return command

    def _fork(self) -> _Command | None:
        client, _ = self._listening.accept()
        length, streams, _, _ = socket.recv_fds(client, _LENGTH.size, 3)
        with client.makefile("rb") as content:
            command = _Command(*marshal.loads(content.read(*_LENGTH.unpack(length))), streams)
        process = os.fork()
        if not process:
            for one in (self._listening, client, *self._clients.values()):
                one.close()
            return command
        # The process does the same; whichever comes first.
        with contextlib.suppress(PermissionError):
            os.setpgid(process, process)
        for stream in streams:
            os.close(stream)
        self._clients[process] = client
        self._selector.register(client, selectors.EVENT_READ, process)
        # A client that is gone by now is noticed next, and its process is killed.
        with contextlib.suppress(OSError):
            client.sendall(_NUMBER.pack(process))
        return None

    def _tell_clients(self) -> None:
        while self._clients:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            with self._clients.pop(process) as client, contextlib.suppress(KeyError, OSError):
                client.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(status)))
                self._selector.unregister(client)
