"""What models compute, to the last bit: recorded, and compared with what they compute now.

`python -m tests.service.numerics` writes the record again. It refuses where bits have changed and
`spec.stored.NUMERICS` has not been raised: models that were learned before would then be others
after an upgrade, and nothing would say so.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_suffix(".json")


def computed() -> dict[str, Any]:
    """What each of `forging.streams` computes: a digest of its state, and a few numbers of it."""
    from tests.service.forging import state_of, streams

    return {name: _of_state(*state_of(name)) for name in streams()}


def _of_state(plain: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(plain["heads"], sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + arrays[name].tobytes())
    shown = {
        name: [round(sum(one), 3) for one in head.get("recent", [])[:2]]
        for name, head in plain["heads"].items()
    }
    return {"digest": digest.hexdigest()[:16], "recent": shown}


def record() -> dict[str, Any]:
    """What was computed when it was recorded, where, and with which numerics."""
    recorded: dict[str, Any] = json.loads(RECORD.read_text())
    return recorded


def main() -> None:
    """Write the record of what is computed here."""
    from wolfstream.service.recovery.replay import present_origin
    from wolfstream.service.spec.stored import NUMERICS

    now, origin = computed(), dict(present_origin())
    if RECORD.exists():
        before = record()
        same_place = {**before["origin"], "numerics": NUMERICS} == origin
        changed = any(now.get(name, one) != one for name, one in before["streams"].items())
        if same_place and changed and before["numerics"] >= NUMERICS:
            sys.exit("bits have changed: raise NUMERICS in service/spec/stored.py first")
    content = {"numerics": NUMERICS, "origin": origin, "streams": now}
    RECORD.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from wolfstream.solver.compile_cache import use_compile_cache

    use_compile_cache()
    main()
