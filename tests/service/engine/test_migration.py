"""A data directory that an earlier version made: its models are what they were, and go on.

`tests/service/storage/format_3` holds one, whose journal changed rows in place: a model that was
rolled back, with keys; one with a refit; and two that were deleted. Its models were asked what they
predict by the version that made it.
"""

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine.test_recovery import GRID
from tests.service.streams import three_classes
from tests.service.writer_bench import Bench
from wolfstream.service.errors import StartupError
from wolfstream.service.heads.answers import Predictions
from wolfstream.service.model.live import Model

MADE = Path(__file__).parent.parent / "storage" / "format_3"
EXPECTED: dict[str, Any] = json.loads((MADE / "expected.json").read_text())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with tarfile.open(MADE / "data.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "format-3"


def predictions(model: Model) -> Predictions:
    published = model.published
    head = "semiparametric" if model.name == "curves" else model.spec.serve
    return published.predict(head, published.seen(np.array(GRID[:10])))


def check(bench: Bench) -> None:
    """All models say what they said."""
    models = {model.name: model for model in bench.writer.models.all()}
    assert models.keys() == EXPECTED.keys()
    for name, expected in EXPECTED.items():
        model, said = models[name], predictions(models[name])
        assert (model.id, model.published.sequence) == (expected["id"], expected["sequence"])
        assert model.rolled_back == expected["rolled_back"]
        assert said.decision == pytest.approx(np.array(expected["decision"]), rel=1e-6)
        if name == "rooms":
            assert said.prediction == expected["prediction"]


def test_its_models_are_what_they_were_and_stay_so(data: Path) -> None:
    bench = Bench(data)
    check(bench)
    epochs = [model.published.epoch for model in bench.writer.models.all()]
    assert len(set(epochs)) == 2
    assert all(epochs)
    bench = bench.restarted()
    check(bench)
    assert [model.published.epoch for model in bench.writer.models.all()] == epochs
    bench.close()


def test_its_keys_are_known(data: Path) -> None:
    bench = Bench(data)
    model = bench.writer.models.get("rooms")
    assert model is not None
    for key, seed, sequence in ((b"k", 0, 12), (b"l", 1, 21), (b"m", 2, 28)):
        answer = bench.learn(model, three_classes((12, 9, 7)[seed], seed), key=key * 16)
        assert (answer["sequence"], answer["replayed"]) == (sequence, True)
    bench.close()


def test_no_number_of_a_deleted_model_is_given_again(data: Path) -> None:
    bench = Bench(data)
    assert bench.create({}, "new").id > 4
    bench.close()


@pytest.mark.parametrize("table", [b"models", b"entries"])
def test_one_without_its_tables_is_refused(data: Path, table: bytes) -> None:
    path = data / "log.sqlite"
    path.write_bytes(path.read_bytes().replace(table, b"x" + table[1:]))
    with pytest.raises(StartupError, match="backup"):
        Bench(data)


def test_one_that_cannot_be_moved_as_a_whole_is_left_as_it_is(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the state of the rollback is to be pinned."""
    kept = shutil.copytree(data, data.with_name("kept"))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("wolfstream.service.storage.snapshot_files.write_content", full)
        with pytest.raises(StartupError, match="No space left"):
            Bench(data)
    assert (data / "log.sqlite").read_bytes()[100:] == (kept / "log.sqlite").read_bytes()[100:]
    bench = Bench(data)
    check(bench)
    bench.close()
