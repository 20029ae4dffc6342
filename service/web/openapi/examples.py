"""Examples of bodies: `examples.json` has one of each component, and those of requests.

Those of requests come in several kinds; of samples and rows, in each of the formats that are text.
"""

import json
from importlib.resources import files
from typing import Any

EXAMPLES: dict[str, Any] = json.loads(files(__package__).joinpath("examples.json").read_bytes())
EXAMPLES["Jobs"] = {"jobs": [EXAMPLES["Job"]]}
EXAMPLES["History"]["snapshots"] = [EXAMPLES["Snapshot"]]
