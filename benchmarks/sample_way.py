"""The way of one posted sample through the packages, from the socket to the response.

    python -m benchmarks.sample_way

A move is a call of a function of one package by one of another, as the table of imports in
CONTRIBUTING.md divides the code, but the solver is one package; libraries between them do not
count. Prints the moves of a sample, in order, for the default model and for a working set alone.
The samples before it have settled what the model's rows are.
"""

import os
import signal
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from benchmarks.processes import free_port
from wolfstream.solver.compile_cache import use_compile_cache

_ROOT = str(Path(__file__).parents[1])
_SPECS: dict[str, dict[str, Any]] = {
    "the default model": {},
    "a working set alone": {"asset": None, "adaptive": None, "prepare": None},
}
# What the first calls is where a way begins; the others' own tasks run beside it.
_TASKS = ("service.web", "service.monitor", "service.cluster")


class Recorder:
    """Notes the calls between packages, on every thread, while it is switched on.

    moves: caller's package, callee's package, and the function.
    """

    def __init__(self) -> None:
        self.moves: list[tuple[str, str, str]] = []
        self.recording = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take an event of `sys.setprofile`."""
        if not self.recording or event != "call" or _is_resumed(frame):
            return
        package, caller = _package(frame), frame.f_back
        while caller is not None and not _package(caller):
            caller = caller.f_back
        if caller is None or _package(caller) in _TASKS:
            return
        if package and _package(caller) != package:
            self.moves.append((_package(caller), package, frame.f_code.co_qualname))


def _is_resumed(frame: FrameType) -> bool:
    """Return whether it is a coroutine or generator that goes on, which is no call."""
    # The argument of the instruction RESUME is zero at the start of a function.
    return frame.f_code.co_code[frame.f_lasti + 1] != 0


def _package(frame: FrameType) -> str:
    """Return the package of a frame's code; empty for a library's."""
    file = frame.f_code.co_filename
    if not file.startswith(_ROOT) or "site-packages" in file:
        return ""
    folder = Path(file).relative_to(_ROOT).parent.parts[1:]  # without `wolfstream`
    if not folder:
        return ""
    return "solver" if folder[0] == "solver" else ".".join(folder)


def _post(url: str, recorder: Recorder, found: dict[str, list[tuple[str, str, str]]]) -> None:
    """Create the models, and record how each takes its last sample; then end the server."""
    from wolfstream.solver.prepare.schema import SETTLING

    transport = httpx.HTTPTransport(retries=10)
    with httpx.Client(base_url=url, timeout=300, transport=transport) as client:
        for i, (name, spec) in enumerate(_SPECS.items()):
            client.put(f"/v1/models/m{i}", json=spec).raise_for_status()
            for k in range(SETTLING + 1):
                recorder.recording = k == SETTLING
                body = {"x": [[float(k), 1.0]], "y": [k % 2]}
                client.post(f"/v1/models/m{i}/samples", json=body).raise_for_status()
                recorder.recording = False
            found[name], recorder.moves = recorder.moves, []
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run a server in this process, post to it, print."""
    use_compile_cache()
    from wolfstream.service.server.main_process import serve
    from wolfstream.service.settings import Settings

    recorder, found = Recorder(), dict[str, list[tuple[str, str, str]]]()
    port = free_port()
    client = threading.Thread(target=_post, args=(f"http://127.0.0.1:{port}", recorder, found))
    client.start()
    sys.setprofile(recorder)
    threading.setprofile(recorder)
    with tempfile.TemporaryDirectory() as folder:
        serve(Settings(data=Path(folder), port=port), {})
    sys.setprofile(None)
    for name, moves in found.items():
        print(f"\n{name}: {len(moves)} moves")
        for caller, callee, function in moves:
            print(f"  {caller} > {callee}: {function}")
        for pair, count in Counter(move[:2] for move in moves).most_common():
            print(f"{count:3d}  {' > '.join(pair)}")


if __name__ == "__main__":
    main()
