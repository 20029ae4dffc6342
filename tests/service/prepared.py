"""Imported by the process that servers are forked from: all modules, and the compiled code."""

import gc
import importlib
import importlib.util

from wolfstream.solver.compile_cache import is_complete, use_compile_cache

use_compile_cache()  # before numba is imported

for _name in (
    "wolfstream.service.cli.main",
    "wolfstream.service.server.main_process",
    "tests.service.process",
):
    importlib.import_module(_name)
# What uvicorn, httpx and the server itself import only when they are started.
for _name in ("uvicorn.loops.uvloop", "uvicorn.lifespan.off", "httpcore"):
    importlib.import_module(_name)
if importlib.util.find_spec("nats"):
    importlib.import_module("wolfstream.service.server.joining")
    importlib.import_module("wolfstream.service.cluster.roles")

from wolfstream.service.compilation.compiled_parts import compile_all, needed_first, parts  # noqa: E402
from wolfstream.service.settings import Settings  # noqa: E402
from wolfstream.service.web.formats.memory import MemoryBudget  # noqa: E402
from wolfstream.service.web.routes.app import create_app  # noqa: E402
from wolfstream.service.web.routes.stream import Streams  # noqa: E402

# The rest would take minutes to compile; each server has a process beside it for that.
_parts = parts() if is_complete() else needed_first()
compile_all(_parts, lambda _: None)
for _part in _parts:
    _part.compile()
# FastAPI imports much, and typing and re keep what they have read, only when routes are made.
create_app(None, None, Settings(_env_file=None), Streams(), None, MemoryBudget(1))  # type: ignore[arg-type, call-arg]
# A collection in a forked process would copy the pages of all that it visits.
gc.collect()
gc.freeze()
