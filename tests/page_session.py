"""A page of documentation, run from top to bottom in one folder as one session of a shell."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.service.process import free_port

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What installs the project: the tests run in an environment where that was done.
_SET_UP = ("pip install", "docker ")
_MARK = "@@@ block"
_TIMEOUT_SECONDS = 300


class Block(NamedTuple):
    """A fenced block of commands or of Python."""

    language: str
    text: str

    @property
    def is_set_up(self) -> bool:
        """Whether the block installs or starts the project in another place."""
        return self.text.startswith(_SET_UP)

    @property
    def is_missing_river(self) -> bool:
        """Whether the block imports River where it is not installed."""
        return "from river import" in self.text and importlib.util.find_spec("river") is None


class Output(NamedTuple):
    """What a block has printed on standard output."""

    block: Block
    text: str

    @property
    def lines(self) -> list[str]:
        """Its lines that are not empty."""
        return [line for line in self.text.splitlines() if line]

    @property
    def responses(self) -> list[dict[str, Any]]:
        """The JSON objects among its lines, which are responses to curl."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]


class Session(NamedTuple):
    """What came of a page: its return code, the outputs of its blocks, and standard error."""

    code: int
    outputs: list[Output]
    errors: str

    def output(self, containing: str) -> Output:
        """The output of the one block that contains a text."""
        (found,) = [output for output in self.outputs if containing in output.block.text]
        return found


def blocks_of(page: str) -> list[Block]:
    """All blocks of a page that a reader would run, in their order."""
    return [Block(*found) for found in _BLOCK.findall((ROOT / page).read_text())]


def run_page(page: str, folder: Path, commands: Path | None = None) -> Session:
    """Run the blocks of a page as one session; only the port of the server is another one.

    commands: a folder with `wolfstream` and `python`; without it, they are started as usual. Those
    there start in a moment, so a page looks whether its server is ready every tenth of a second.
    """
    blocks = [block for block in blocks_of(page) if not (block.is_set_up or block.is_missing_river)]
    port = free_port()
    script = "\n".join(map(_as_shell, blocks)).replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    (folder / "work").mkdir()
    environment = os.environ | {
        "PATH": f"{commands or _commands(folder)}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "WOLFSTREAM_PORT": str(port),
        "WOLFSTREAM_URL": f"http://127.0.0.1:{port}",
    }
    # Each response of curl gets a line of its own, as a terminal shows it.
    prologue = 'curl() { command curl -s -w "\\n" "$@"; }\n'
    if commands:
        prologue += "sleep() { command sleep 0.1; }\n"
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        process = subprocess.Popen(
            ["bash", "-e", "-m", "-c", f"{prologue}{script}\nwait"],
            cwd=folder / "work",
            env=environment,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            process.wait(_TIMEOUT_SECONDS)
        finally:
            _end_session(process.pid)
            process.wait()
    printed, errors = (folder / "out").read_text(), (folder / "err").read_text()
    texts = printed.split(f"{_MARK}\n")[1:]
    outputs = [Output(*pair) for pair in zip(blocks, texts, strict=False)]
    return Session(process.returncode, outputs, errors)


def _as_shell(block: Block) -> str:
    if block.language == "python":
        return f"echo '{_MARK}'\npython <<'END_OF_PYTHON'\n{block.text}END_OF_PYTHON"
    return f"echo '{_MARK}'\n{block.text}"


def _commands(folder: Path) -> Path:
    """A folder with `wolfstream` and `python`, those of this environment."""
    commands = folder / "commands"
    commands.mkdir()
    for name, arguments in (("wolfstream", " -m wolfstream.service"), ("python", "")):
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        command.chmod(0o755)
    return commands


def _end_session(leader: int) -> None:
    """End whatever the page has left running, in whichever process group of its session."""
    for entry in Path("/proc").iterdir() if Path("/proc").exists() else ():
        if entry.name.isdigit() and _session_of(int(entry.name)) == leader:
            os.kill(int(entry.name), signal.SIGKILL)


def _session_of(process: int) -> int:
    try:
        return os.getsid(process)
    except (ProcessLookupError, PermissionError):
        return -1
