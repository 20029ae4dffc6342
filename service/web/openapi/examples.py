"""Reads the examples of bodies in `examples.json`.

It has one example for each component, and several for each request; for samples and rows, it has
some in each text format.
"""

import json
from importlib.resources import files
from typing import Any

EXAMPLES: dict[str, Any] = json.loads(files(__package__).joinpath("examples.json").read_bytes())
EXAMPLES["Jobs"] = {"jobs": [EXAMPLES["Job"]]}
EXAMPLES["History"]["snapshots"] = [EXAMPLES["Snapshot"]]
