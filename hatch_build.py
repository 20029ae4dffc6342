"""What building a wheel does besides packing: it fetches the plots of the console.

An editable install does without, and so works where there is no npm.
"""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlotsHook(BuildHookInterface[Any]):
    """Fails the build where the plots cannot be had."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Fetch the plots into the tree that is packed, unless it is installed as it stands."""
        if version != "editable":
            module = Path(self.root) / "service" / "console" / "plots.py"
            runpy.run_path(str(module))["fetch"]()
