"""What a fleet serves when nothing fails any more."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.simulation.clients import CHALLENGER, PLAIN, REMADE, Client, Clients
from tests.simulation.log_reader import CatalogueChange, Log, has_samples

_PROBE = [[0.5, float(i), float(i % 3)] for i in range(4)]


class Inspection:
    """Reads all models once; it is compared with another one that is made later."""

    def __init__(self, clients: Clients, models: Sequence[str]) -> None:
        self.ended = False
        self.missing = list(models)
        self._clients, self._models = clients, models
        self._described: dict[str, dict[str, Any]] = {}
        self._predicted: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        """Read all models; on a thread of the clients."""
        asyncio.run(self._run())
        self.ended = True

    async def _run(self) -> None:
        client = Client(self._clients, "inspection", Random(0))
        if REMADE in self._models:
            await client.make(REMADE)  # the last call of its client may have deleted it
        for model in self._models:
            path = f"/v1/models/{model}"
            reply = await client.ask_until_done("GET", path)
            self._described[model] = reply.told if reply.is_success else {}
            reply = await client.ask_until_done("POST", f"{path}/predict", {"x": _PROBE})
            self._predicted[model] = reply.told if reply.is_success else {}
            self.missing.remove(model)

    def contradictions(
        self, later: "Inspection", logs: dict[int, Log], changes: Sequence[CatalogueChange]
    ) -> list[str]:
        """Return where the fleet serves another state later, or not what its logs have."""
        faults = list[str]()
        present = {one.name: one.number for one in changes}
        for model in self._models:
            told, anew = self._described[model], later._described[model]
            for one, when in ((told, "in the end"), (anew, "from the log alone")):
                if one.get("status") != "ok":
                    faults.append(f"{model} is {one.get('status')} {when}: {one}")
            if model != CHALLENGER:  # which may have learned more of its champion's log
                faults += self._differs(model, later)
            number = present.get(model)
            if number is not None and number in logs and told.get("status") == "ok":
                faults += _not_logged(model, told, logs[number])
        return faults

    def _differs(self, model: str, later: "Inspection") -> list[str]:
        before, after = self._predicted[model], later._predicted[model]
        same = ("sequence", "prediction", "decision")
        if {name: before.get(name) for name in same} != {name: after.get(name) for name in same}:
            return [f"{model} predicts otherwise once its replicas began anew: {before}, {after}"]
        return []


def _not_logged(model: str, told: dict[str, Any], log: Log) -> list[str]:
    rows = [row for commit in log.commits for row in commit.rows]
    end = max((row.sequence for row in rows if has_samples(row)), default=0)
    faults = list[str]()
    if model != CHALLENGER and told["sequence"] < end:
        faults.append(f"{model} is at {told['sequence']}, and its log ends at {end}")
    steps = told["heads"]["asset"]["steps"] if model == PLAIN else end
    if model == PLAIN and steps != end:
        faults.append(f"{model} has learned {steps} samples, and its log has {end}")
    return faults
