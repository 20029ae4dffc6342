"""How long a server takes to start, and a notebook to fit for the first time.

    python -m benchmarks.service_start --python /tmp/venv/bin/python

With an empty cache of compiled code, and with that which it leaves. `--python` names the
interpreter of another installation, of a wheel for example. Nothing else should run on the machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.machine import machine_line
from benchmarks.processes import wolfstream

# 200 samples are fitted in a tenth of a second.
_FIT = """
import time
import numpy as np
began = time.perf_counter()
from wolfstream import {name}
X = np.random.default_rng(0).standard_normal((200, 5))
{name}().fit(X, X[:, 0] > 0)
print(time.perf_counter() - began)
"""
_ESTIMATORS = ("SFWClassifier", "AssetClassifier", "FrankWolfeClassifier")
_ROWS = [[0.1, 0.2], [0.9, 0.8], [0.2, 0.1]]
_SAMPLES = {"x": _ROWS, "y": [0, 1, 0]}


def starts(folder: Path, python: str) -> None:
    """Print the seconds from the command, with an empty cache and with a full one."""
    print("| start of a server, seconds until | |\n|---|---:|")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "compiled")}
    began = time.perf_counter()
    with wolfstream(folder / "data", python, environment) as server:
        _print("first start, empty cache: `/readyz`", began)
        with httpx.Client(base_url=server.url, timeout=300) as client:
            _first_sample(client, "m", {}, _SAMPLES)
            _print("the same: the first sample is learned and predicted", began)
            named = [{"a": row[0], "b": row[1]} for row in _ROWS]
            _first_sample(client, "named", {}, _SAMPLES | {"x": named})
            _print("the same: of named numbers", began)
            while "compiling" in client.get("/readyz").json():
                time.sleep(0.1)
            _print("the same: everything is compiled", began)
    began = time.perf_counter()
    with wolfstream(folder / "data", python, environment):
        _print("restart with two models: `/readyz`", began)
    began = time.perf_counter()
    with wolfstream(folder / "other", python, environment) as server:
        _print("restart without a model: `/readyz`", began)
        with httpx.Client(base_url=server.url) as client:
            _first_sample(client, "m", {}, _SAMPLES)
        _print("the same: the first sample is learned and predicted", began)


def first_fits(folder: Path, python: str) -> None:
    """Print how long the import and a fit of 200 samples take in a process of their own."""
    print("\n| import and first fit, seconds | empty cache | again |\n|---|---:|---:|")
    for name in _ESTIMATORS:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / name)}
        command = [python, "-c", _FIT.format(name=name)]
        seconds = [
            float(subprocess.check_output(command, env=environment, cwd=folder)) for _ in range(2)
        ]
        print(f"| `{name}` | {seconds[0]:.1f} | {seconds[1]:.1f} |", flush=True)


def _first_sample(client: httpx.Client, name: str, spec: Any, samples: dict[str, Any]) -> None:
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()
    client.post(f"/v1/models/{name}/samples", json=samples).raise_for_status()
    rows = {"x": samples["x"]}
    client.post(f"/v1/models/{name}/predict", json=rows).raise_for_status()


def _print(what: str, began: float) -> None:
    print(f"| {what} | {time.perf_counter() - began:.1f} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="whose installation is started")
    python = parser.parse_args().python
    print(f"## Start-up\n\n{machine_line()}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        starts(Path(folder), python)
        first_fits(Path(folder), python)


if __name__ == "__main__":
    main()
