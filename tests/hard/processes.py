"""The memory, files and threads of a server process; and tasks that run together."""

import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.service.process import CommandProcess


def resident_bytes(server: CommandProcess) -> int:
    """Memory that the process has now."""
    return _status(server, "VmRSS") << 10


def most_resident_bytes(server: CommandProcess) -> int:
    """The most memory that the process has had."""
    return _status(server, "VmHWM") << 10


def limit_memory(server: CommandProcess, n_bytes: int) -> None:
    """Limit the process to this many bytes more than it has now."""
    assert server.process is not None
    most = (_status(server, "VmData") << 10) + n_bytes
    resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (most, most))


def threads(server: CommandProcess) -> int:
    """Threads of the process."""
    return _status(server, "Threads")


def open_files(server: CommandProcess) -> int:
    """Descriptors of the process."""
    assert server.process is not None
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def _status(server: CommandProcess, name: str) -> int:
    assert server.process is not None
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise KeyError(name)


def together(*tasks: Callable[[], Any]) -> None:
    """Run all at once, each on a thread; the first failure is raised."""
    failures: list[BaseException] = []

    def guarded(task: Callable[[], Any]) -> None:
        try:
            task()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=guarded, args=[task]) for task in tasks]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failures:
        raise failures[0]
