"""What saved states are made of: the names of their arrays and of their plain data, recorded.

`python -m tests.service.saved_names` writes the record again.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

RECORD = Path(__file__).with_suffix(".json")


def computed() -> dict[str, set[str]]:
    """The names in the states of each of `forging.streams`, and of a model that others follow."""
    from tests.service.forging import state_of, streams

    names = {name: names_of(*state_of(name)) for name in streams()}
    return names | {
        "followed, following and rolled back": names_of(*_of_a_model_among_others()),
        "a learner of others": names_of(*_of_a_learner_of_others()),
    }


def names_of(plain: dict[str, Any], arrays: dict[str, Any]) -> set[str]:
    """The names of arrays, and the paths of plain data, which begin with a slash."""
    return {*arrays, *_paths(plain, "")}


def _paths(plain: Any, path: str) -> Iterator[str]:
    """Yield the paths of all values; those of a list's entries have a star."""
    if isinstance(plain, dict) and plain:
        for name, value in plain.items():
            yield from _paths(value, f"{path}/{name}")
    elif isinstance(plain, list) and any(isinstance(one, dict | list) for one in plain):
        for one in plain:
            yield from _paths(one, f"{path}/*")
    else:
        yield path


def _of_a_model_among_others() -> tuple[dict[str, Any], dict[str, Any]]:
    from tests.service.specs import read_papers_spec
    from tests.service.streams import two_classes
    from wolfstream.service.model.learner import Learner
    from wolfstream.service.model.live import Model

    spec = read_papers_spec({"asset": None})
    learner = Learner(Model(2, "m", spec), "an epoch")
    learner.follow(Model(1, "champion", spec))
    learner.record_losses()
    learner.absorb("working_set", two_classes(20))
    learner.model.rolled_back = {"to": 1, "at": 2, "time": "2026-01-01T00:00:00Z"}
    return learner.state()


def _of_a_learner_of_others() -> tuple[dict[str, Any], dict[str, Any]]:
    from tests.service.heads.learners_of_others import NearestMean
    from tests.service.streams import two_classes
    from wolfstream.service.heads import custom
    from wolfstream.service.model.learner import Learner
    from wolfstream.service.model.live import Model
    from wolfstream.service.spec.model import read_spec

    with patch.object(custom, "learner_class", lambda _: NearestMean):
        spec = read_spec({"custom": {"learner": "nearest-mean"}})
        learner = Learner(Model(1, "m", spec))
    learner.absorb("custom", two_classes(20))
    return learner.state()


def record() -> dict[str, set[str]]:
    """The names that were recorded, by stream."""
    recorded = defaultdict[str, set[str]](set)
    for group in json.loads(RECORD.read_text()):
        for stream in group["streams"]:
            recorded[stream] |= {*group["names"]}
    return dict(recorded)


def main() -> None:
    """Write the names, each group of those that the same streams have once."""
    streams_of = defaultdict[str, list[str]](list)
    for stream, names in computed().items():
        for name in names:
            streams_of[name].append(stream)
    groups = defaultdict[tuple[str, ...], list[str]](list)
    for name, streams in streams_of.items():
        groups[(*sorted(streams),)].append(name)
    content = [{"streams": streams, "names": sorted(groups[streams])} for streams in sorted(groups)]
    RECORD.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from wolfstream.solver.compile_cache import use_compile_cache

    use_compile_cache()
    main()
