"""Imported by the process that servers are forked from: all modules, and the compiled code."""

import gc
import importlib

from service.native.compile_cache import is_complete, use_compile_cache

use_compile_cache()  # before numba is imported

for _name in ("service.cli.main", "service.web.server", "tests.service.process"):
    importlib.import_module(_name)

from service.engine.compiled_parts import compile_all, needed_first, parts  # noqa: E402

# The rest would take minutes to compile; each server has a process beside it for that.
_parts = parts() if is_complete() else needed_first()
compile_all(_parts, lambda _: None)
for _part in _parts:
    _part.compile()
# A collection in a forked process would copy the pages of all that it visits.
gc.collect()
gc.freeze()
