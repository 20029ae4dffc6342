"""Random damage to a killed server's directory: refused with a remedy, or recovered in full.

Bytes are changed, files are cut short, and files and directories are gone. Of the write-ahead file
the last commit alone may be passed over, and that is said: it cannot be told from one that a crash
cut short.
"""

import contextlib
import logging
import os
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.hard.conftest import Report
from tests.service.process import CommandProcess
from tests.service.recovery.test_recovery import learn
from tests.service.streams import three_classes
from wolfstream.service.engine.recovery_order import Room, recover
from wolfstream.service.errors import StartupError
from wolfstream.service.model.live import Model
from wolfstream.service.storage.data_directory import open_storage

pytestmark = [pytest.mark.hard, pytest.mark.timeout(600)]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
CASES = 250
GRID = three_classes(50, seed=9).X
CURES = ("backup", "Restore", "another --data", "start the version that wrote")


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server killed with two snapshots and a log after them."""
    data = tmp_path_factory.mktemp("damage") / "data"
    with closing(CommandProcess(data, snapshot_samples=300, snapshots=2)) as server:
        server.start()
        learn(server, "m", 500)
        learn(server, "n", 60)
        server.kill()
    assert len(list(data.glob("snapshots/*/*.snapshot"))) == 2
    return data


def recovered(data: Path) -> dict[str, Any]:
    """Return what is said after a start: sequences, and predictions to the last bit."""
    storage = open_storage(data)
    try:
        return {
            learner.model.name: said(learner.model)
            for learner, _ in recover(storage, one, Room(1, 0))
        }
    finally:
        storage.close()


def said(model: Model) -> Any:
    if model.broken:
        assert any(cure in model.broken for cure in CURES), model.broken
        return "broken"
    heads = model.published.heads.items()
    return model.published.sequence, {name: view.predict(GRID) for name, view in heads}


def one(_: int) -> None:
    """Threads are one in any case."""


def damage(file: Path, random: Random) -> str:
    """Change a file in one way; which."""
    content = bytearray(file.read_bytes())
    at = random.randrange(len(content))
    kind = random.choice(["bit", "byte", "bytes", "page of zeros", "page moved"])
    match kind:
        case "bit":
            content[at] ^= 1 << random.randrange(8)
        case "byte":
            content[at] = random.randrange(256)
        case "bytes":
            content[at : at + 16] = random.randbytes(len(content[at : at + 16]))
        case "page of zeros":
            start = at // 4096 * 4096
            content[start : start + 4096] = bytes(len(content[start : start + 4096]))
        case _:
            start, other = at // 4096 * 4096, random.randrange(len(content)) // 4096 * 4096
            page = content[other : other + 4096]
            content[start : start + len(page)] = page
    file.write_bytes(content)
    return kind


@pytest.mark.parametrize(
    ("name", "folded"), [("log.sqlite", True), ("log.sqlite", False), ("log.sqlite-wal", False)]
)
def test_of_the_log(
    left: Path,
    tmp_path: Path,
    report: Report,
    caplog: pytest.LogCaptureFixture,
    name: str,
    folded: bool,
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(left, whole)
    before = recovered_copy(whole, tmp_path)
    if folded:
        open_storage(whole).close()
    ends: Counter[str] = Counter()
    caplog.set_level(logging.WARNING)
    for number in range(CASES):
        random = Random(f"{SEED}:{name}:{folded}:{number}")
        data = tmp_path / "damaged"
        shutil.copytree(whole, data)
        kind = damage(data / name, random)
        caplog.clear()
        try:
            after = recovered(data)
        except StartupError as error:
            end = "refused" if any(cure in str(error) for cure in CURES) else "lost"
            after = str(error)
        else:
            whole_models = {name: said for name, said in after.items() if said != "broken"}
            as_before = whole_models.items() <= before.items() and after.keys() == before.keys()
            end = "lost" if not as_before else "recovered in full"
            if as_before and len(whole_models) < len(before):
                end = "a model broken, and said"
            if end == "lost" and name.endswith("-wal") and "an incomplete commit" in caplog.text:
                end = "the last commit passed over, and said"
        assert end != "lost", f"case {number} of {SEED}: {kind}: {after} for {before}"
        ends[end] += 1
        shutil.rmtree(data)
    report(damaged=CASES, **{end.replace(" ", "_"): n for end, n in sorted(ends.items())})


def recovered_copy(whole: Path, tmp_path: Path) -> dict[str, Any]:
    shutil.copytree(whole, tmp_path / "copy")
    return recovered(tmp_path / "copy")


SIZES = {
    "empty": lambda _: 0,
    "in the magic": lambda _: 5,
    "in the digest": lambda _: 20,
    "in the header": lambda _: 45,
    "in the middle": lambda size: size // 2,
    "a byte short": lambda size: size - 1,
    "a byte more": lambda size: size + 1,
}


def test_of_snapshots(left: Path, tmp_path: Path, report: Report) -> None:
    before = recovered_copy(left, tmp_path)
    cases = 0
    for which in ("newest", "older", "both"):
        for k, change in enumerate([*SIZES.values(), *[None] * 20]):
            data = tmp_path / f"{which}{k}"
            shutil.copytree(left, data)
            older, newest = sorted(data.glob("snapshots/*/*.snapshot"))
            for file in {"newest": [newest], "older": [older], "both": [older, newest]}[which]:
                if change is None:
                    damage_for_sure(file, Random(f"{SEED}:{which}:{k}"))
                else:
                    content = file.read_bytes()
                    file.write_bytes((content + b"\0")[: change(len(content))])
            if which == "both":
                assert recovered(data) == before | {"m": "broken"}
            else:
                assert recovered(data) == before, (which, k)
            cases += 1
    report(damaged=cases, lost_in_silence=0)


MISSING = {
    "log.sqlite": "refused",
    "log.sqlite-wal": "refused",
    "log.sqlite-shm": "recovered in full",
    "high-water": "recovered in full",
    "replays": "recovered in full",
    "lock": "recovered in full",
    "snapshots": "a model broken",
    "snapshots/1": "a model broken",
    "snapshots/1/newest": "recovered in full",
    "snapshots/1/older": "recovered in full",
}


def without(data: Path, name: str) -> None:
    if name.endswith(("newest", "older")):
        found = sorted((data / name).parent.glob("*.snapshot"))
        found[-1 if name.endswith("newest") else 0].unlink()
    elif (data / name).is_dir():
        shutil.rmtree(data / name)
    else:
        (data / name).unlink()


@pytest.mark.parametrize(("name", "expected"), MISSING.items())
def test_of_what_is_gone(left: Path, tmp_path: Path, name: str, expected: str) -> None:
    before = recovered_copy(left, tmp_path)
    data = tmp_path / "damaged"
    shutil.copytree(left, data)
    without(data, name)
    files = {path: path.read_bytes() for path in data.rglob("*.snapshot")}
    if expected == "refused":
        with pytest.raises(StartupError, match="|".join(CURES)):
            recovered(data)
    else:
        told = before | {"m": "broken"} if expected == "a model broken" else before
        assert recovered(data) == told
    kept = {path: path.read_bytes() for path in data.rglob("*.snapshot")}
    assert kept == files, "what is left was touched"


@pytest.mark.parametrize("seed", range(20))
def test_of_several_that_are_gone(left: Path, tmp_path: Path, seed: int) -> None:
    """Nothing else is served than before, and no snapshot is touched."""
    random = Random(f"{SEED}:{seed}")
    before = recovered_copy(left, tmp_path)
    data = tmp_path / "damaged"
    shutil.copytree(left, data)
    for name in random.sample(list(MISSING), random.randint(2, 4)):
        with contextlib.suppress(FileNotFoundError, IndexError):
            without(data, name)
    files = {path: path.read_bytes() for path in data.rglob("*.snapshot")}
    # If no samples are left anywhere, nothing shows that there were any.
    traces = files or (data / "high-water").exists() or (data / "log.sqlite-wal").exists()
    refusal, after = "", dict[str, Any]()
    try:
        after = recovered(data)
    except StartupError as error:
        refusal = str(error)
    whole = {name: said for name, said in after.items() if said != "broken"}
    assert whole.items() <= before.items()
    assert whole or any(cure in refusal for cure in CURES) or after or not traces
    kept = {path: path.read_bytes() for path in data.rglob("*.snapshot")}
    assert kept == files


def damage_for_sure(file: Path, random: Random) -> None:
    before = file.read_bytes()
    while file.read_bytes() == before:
        damage(file, random)
