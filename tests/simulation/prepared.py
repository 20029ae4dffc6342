"""Prepares a process for simulations: the standard library first, then the product.

`tests.simulation.__main__` imports it before anything else, and forks for each seed.
"""

import os
import warnings

from tests.simulation import standard_library

standard_library.install()

from wolfstream.solver.compile_cache import use_compile_cache  # noqa: E402

use_compile_cache()  # before numba is imported

import gc  # noqa: E402
import importlib  # noqa: E402

from tests.simulation import loops  # noqa: E402

loops.install()
for _name in (
    "wolfstream.service.server.main_process",
    "wolfstream.service.server.joining",
    "wolfstream.service.cluster.roles",
    "nats.js.kv",
):
    importlib.import_module(_name)
# What would be imported in the middle of a simulation.
for _name in ("encodings.cp437", "encodings.idna", "pydantic.v1"):
    importlib.import_module(_name)
standard_library.install_late()

from tests.simulation.specs import SPECS  # noqa: E402
from wolfstream.service.compilation.compiled_parts import parts_for  # noqa: E402
from wolfstream.service.settings import Settings  # noqa: E402
from wolfstream.service.spec.model import read_spec  # noqa: E402
from wolfstream.service.web.formats.memory import MemoryBudget  # noqa: E402
from wolfstream.service.web.routes.app import create_app  # noqa: E402
from wolfstream.service.web.routes.stream import Streams  # noqa: E402

for _spec in SPECS:
    for _part in parts_for(read_spec(_spec), False):
        _part.compile()
# FastAPI imports much, and typing and re keep what they have read, only when routes are made.
create_app(None, None, Settings(_env_file=None), Streams(), None, MemoryBudget(1))  # type: ignore[arg-type]
warnings.simplefilter("ignore")
os.environ.pop("WOLFSTREAM_FLEET", None)
gc.collect()
gc.freeze()
