"""What a fleet is after a campaign: its logs verified, and its models restored by each replica."""

import io
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import httpx
import numpy as np

from tests.hard.fleet_faults import Parts, found
from tests.hard.fleet_ledger import life_of
from tests.service.process import ROOT
from tests.simulation.log_reader import Log, has_samples

# Bytes of a model file before its archive.
_BEFORE_ARCHIVE = 40


def rows_of(logs: Iterable[Log]) -> dict[str, int]:
    """Return how many rows of each kind there are, and samples."""
    rows = [row for log in logs for commit in log.commits for row in commit.rows]
    kinds = Counter(f"{row.kind} in the logs" for row in rows if not has_samples(row))
    return {**kinds, "samples in the logs": sum(row.samples for row in rows if has_samples(row))}


def verified(parts: Parts) -> list[str]:
    """Return what `wolfstream fleet verify` reports, if that is any fault."""
    command = [sys.executable, "-m", "wolfstream.service", "fleet", "verify"]
    command += ["--fleet", ",".join(parts.nats.addresses)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    print(told.stdout)
    return [f"verify: {told.stdout}{told.stderr}"] if told.returncode else []


def reached(log: Log) -> int:
    """Return the sequence at the end of a log."""
    rows = (row for commit in log.commits for row in commit.rows)
    return max(
        (row.sequence for row in rows if has_samples(row) or row.kind == "rollback"), default=0
    )


def restored_alike(parts: Parts, models: Mapping[str, int]) -> list[str]:
    """Let each replica alone restore all models, and return how they differ from each other.

    models: with the sequences that they have to reach.
    """
    states = list[dict[str, dict[str, Any]]]()
    for replica in parts.replicas:
        replica.close()
    for replica in parts.replicas:
        replica.launch()
        replica.wait()
        url = str(replica.settings["advertise"])
        states.append({one: found(partial(_state, url, one, at)) for one, at in models.items()})
        replica.kill()
    faults = [
        f"{model}: at {address}: {state['notice']}"
        for address, of in zip(parts.addresses, states, strict=True)
        for model, state in of.items()
        if state["notice"]
    ]
    for address, other in zip(parts.addresses[1:], states[1:], strict=True):
        for model in models:
            names = _different(states[0][model], other[model])
            if names:
                faults.append(f"{model}: {parts.addresses[0]} and {address} differ in {names}")
    return faults


def _state(url: str, model: str, sequence: int) -> dict[str, Any] | None:
    """Return what a model's state has at a sequence, by names; None while it is not there."""
    try:
        answer = httpx.get(f"{url}/v1/models/{model}/state", timeout=30)
        probe = httpx.get(f"{url}/v1/models/{model}", timeout=30)
    except httpx.TransportError:
        return None
    if not (answer.is_success and probe.is_success):
        return None
    arrays = np.load(io.BytesIO(answer.content[_BEFORE_ARCHIVE:]), allow_pickle=False)
    state: dict[str, Any] = {name: arrays[name] for name in arrays.files}
    plain = json.loads(state.pop("plain").tobytes())
    notice = probe.json().get("notice")
    return {**plain, **state, "notice": notice} if plain["sequence"] >= sequence or notice else None


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names under which two states are different, but for their epochs' terms."""
    names: Iterable[str] = sorted({*one, *other})
    return [name for name in names if _plain(name, one) != _plain(name, other)]


def _plain(name: str, state: Mapping[str, Any]) -> object:
    value = state.get(name)
    if name == "epoch":  # each leader has a term of its own
        return life_of(str(value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value
