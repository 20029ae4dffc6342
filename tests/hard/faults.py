"""Real faults of a disk: a full file system, and system calls that fail."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.hard.clients import GONE
from tests.service.process import CommandProcess


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of its own at a folder; skips the test where none may be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("a file system may not be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path, leave: int = 0) -> Path:
    """Return a file that takes all room but so many bytes; deleting it gives the room back."""
    filler = disk / "filler"
    size = shutil.disk_usage(disk).free - leave
    # What a buffer kept of a write that failed, because the server writes too, would fail again at
    # the end.
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while size > 0:
            size -= file.write(bytes(min(size, 4096)))
    return filler


@contextmanager
def failing(server: CommandProcess, calls: str, error: str, when: str = "1+") -> Iterator[None]:
    """Meanwhile these system calls of the server fail; skips where nothing may be traced."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    assert server.process is not None
    inject = f"inject={calls}:error={error}:when={when}"
    arguments = ["strace", "-f", "-q", "-p", str(server.process.pid), "-e", inject]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as tracer:
        try:
            _wait_until_traced(server.process.pid, tracer)
            yield
        finally:
            tracer.terminate()


def _wait_until_traced(pid: int, tracer: "subprocess.Popen[bytes]") -> None:
    threads = Path(f"/proc/{pid}/task")
    while any("TracerPid:\t0\n" in (t / "status").read_text() for t in threads.iterdir()):
        if tracer.poll() is not None:
            pytest.skip("processes may not be traced here")
        time.sleep(0.01)


class Poster:
    """Posts numbered samples to a model, one at a time, and keeps what it was told of each."""

    def __init__(self, server: CommandProcess, model: str) -> None:
        self._http = httpx.Client(base_url=server.url, timeout=60)
        self._model = model
        self.kept: list[int] = []
        self.doubtful: list[int] = []
        self.refused: list[str] = []
        self.sent = 0

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def post(self, size: int = 2) -> int:
        """Return the status of one more; 0 where the server was gone."""
        number = self.sent
        self.sent += 1
        row = [0.0, float(number)] + [0.5] * (size - 2)
        try:
            answer = self._http.post(
                f"/v1/models/{self._model}/samples", json={"x": row, "y": number % 2}
            )
        except GONE:
            self.doubtful.append(number)
            return 0
        if answer.status_code == 200:
            self.kept.append(number)
        else:
            told = answer.json()
            assert answer.status_code == 503
            assert told["type"] in ("urn:wolfstream:storage-failed", "urn:wolfstream:in-doubt")
            assert answer.headers["retry-after"]
            self.refused.append(told["detail"])
            if told["outcome"] != "not-learned":
                self.doubtful.append(number)
        return answer.status_code

    def post_until(self, status: int, size: int = 2, seconds: float = 60) -> None:
        """Go on until one is answered so."""
        deadline = time.monotonic() + seconds
        while self.post(size) != status:
            assert time.monotonic() < deadline, f"no {status} within {seconds} s"
            if status == 200:
                time.sleep(0.05)

    def check(self, held: list[int]) -> None:
        """What a log holds is what was acknowledged, and perhaps what was left in doubt."""
        assert len(held) == len(set(held)), "a sample is there twice"
        lost = set(self.kept) - set(held)
        assert not lost, f"acknowledged and lost: {sorted(lost)[:20]}"
        back = set(held) - set(self.kept) - set(self.doubtful)
        assert not back, f"refused and there all the same: {sorted(back)[:20]}"
