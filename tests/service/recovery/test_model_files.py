"""`serve --load`: a trained file becomes a live, durable model; a real server, killed."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from tests.service.process import ServerProcess
from tests.service.streams import three_classes
from wolfstream.service.cli.main import main
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import StartupError
from wolfstream.service.recovery.model_files import ModelFileError, load_model
from wolfstream.service.settings import Settings
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import State, read_state, write_state
from wolfstream.solver.prepare.named_rows import named_rows

STREAM = three_classes(400)
ASKED = three_classes(50, seed=1).X


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file of three classes with integer labels."""
    folder = tmp_path_factory.mktemp("trained")
    np.savez(folder / "a.npz", X=STREAM.X, y=np.array(STREAM.y))
    out = folder / "rooms.model"
    arguments = ["train", str(folder / "a.npz"), "--model", str(out), "--algorithm", "mfw"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    return out


@pytest.fixture
def data(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "data")
    yield server
    server.close()


def said(server: ServerProcess, name: str) -> dict[str, Any]:
    url = f"{server.url}/v1/models/{name}/predict"
    return httpx.post(url, json={"x": ASKED.tolist()}).raise_for_status().json()


def test_a_real_server_loads_learns_is_killed_and_goes_on(
    trained: Path, data: ServerProcess, tmp_path: Path
):
    load = ("--load", str(trained), "--load", f"second={trained}")
    data.start(*load)
    described = httpx.get(f"{data.url}/v1/models/rooms").json()
    assert (described["sequence"], described["snapshot_sequence"]) == (400, 400)
    assert described["heads"]["working_set"]["classes"] == [0, 10, 20]

    first = said(data, "rooms")
    np.savetxt(tmp_path / "asked.csv", ASKED, delimiter=",", fmt="%.17g")
    file = str(tmp_path / "asked.csv")
    result = CliRunner().invoke(main, ["predict", str(trained), file, "--decision"])
    rows = [line.split(",") for line in result.stdout.splitlines()[1:]]
    assert [int(row[0]) for row in rows] == first["prediction"]
    np.testing.assert_allclose([[float(v) for v in row[1:]] for row in rows], first["decision"])

    learned = {"x": STREAM.X[:7].tolist(), "y": [10] * 7}
    answer = httpx.post(f"{data.url}/v1/models/rooms/samples", json=learned).json()
    assert (answer["sequence"], answer["learned"]) == (407, 7)
    after = said(data, "rooms")
    assert after["decision"] != first["decision"]
    data.kill()

    data.start(*load)
    assert said(data, "rooms") == after
    assert said(data, "second")["decision"] == first["decision"]
    assert f"model exists, file not loaded: model=rooms sequence=407 file={trained}" in data.log()
    data.kill()

    data.start()
    assert said(data, "rooms") == after


class TestWriter:
    @pytest.fixture
    def writer(self, tmp_path: Path) -> Iterator[Writer]:
        writer = self.fresh(tmp_path)
        yield writer
        writer.close()

    def fresh(self, tmp_path: Path) -> Writer:
        (tmp_path / "data").mkdir(exist_ok=True)
        data = tmp_path / "data"
        writer = Writer(open_storage(data), Settings(data=data), lambda *_: None)
        writer.recover(lambda _: None)
        return writer

    def test_it_is_durable_at_once(self, writer: Writer, trained: Path, tmp_path: Path):
        writer.new_models.load("m", trained)
        again = self.fresh(tmp_path)
        assert again.models.get("m").published.sequence == 400
        expected = writer.models.get("m").published.heads["working_set"].predict(ASKED)
        assert again.models.get("m").published.heads["working_set"].predict(ASKED) == expected
        again.close()

    def test_a_stop_before_the_snapshot_is_whole_leaves_no_empty_model(
        self, writer: Writer, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(SnapshotFiles, "save", full)
            with pytest.raises(StartupError, match=r"--load: .*No space left"):
                writer.new_models.load("m", trained)
        assert not writer.models.all()
        again = self.fresh(tmp_path)
        assert not again.models.all()
        again.new_models.load("m", trained)
        assert again.models.get("m").published.sequence == 400
        again.close()

    def test_an_existing_model_is_kept_and_the_file_not_even_read(
        self, writer: Writer, trained: Path
    ):
        writer.new_models.load("m", trained)
        before = writer.models.get("m")
        writer.new_models.load("m", Path("/absent.model"))
        assert writer.models.get("m") is before

    @pytest.mark.parametrize("kind", ["damaged", "absent", "folder", "text", "spec", "arrays"])
    def test_what_cannot_be_loaded(self, writer: Writer, trained: Path, tmp_path: Path, kind: str):
        path = broken(trained, tmp_path, kind)
        with pytest.raises(StartupError) as caught:
            writer.new_models.load("m", path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not writer.models.all()

    def test_sparse_rows_become_named_numbers(self, writer: Writer, tmp_path: Path):
        (tmp_path / "a.svm").write_text("".join(f"{i % 2} 1:{i % 2} {i + 2}:1\n" for i in range(9)))
        arguments = [str(tmp_path / "a.svm"), "--model", str(tmp_path / "a.model")]
        arguments += ["--algorithm", "msfw"]
        assert CliRunner().invoke(main, ["train", *arguments]).exit_code == 0
        writer.new_models.load("m", tmp_path / "a.model")
        model = writer.models.get("m")
        assert model.describe()["rows"] == "named"
        X = model.published.head_rows(named_rows([{"1": 1.0, "3": 1.0}, {"2": 1.0}])).X
        assert model.published.heads["working_set"].predict(X).prediction == [1, 0]


def broken(trained: Path, folder: Path, kind: str) -> Path:
    path = folder / "broken.model"
    if kind == "damaged":
        content = bytearray(trained.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("a,b\n1,2\n")
    elif kind != "absent":
        plain, arrays = read_state(trained)
        if kind == "spec":
            plain = plain | {"spec": plain["spec"] | {"task": "sorting"}}
        else:
            arrays = {key: a for key, a in arrays.items() if not key.endswith("alpha")}
        write_state(path, State(plain, arrays))
    return path


@pytest.mark.parametrize("kind", ["damaged", "absent", "folder", "text", "spec", "arrays"])
def test_a_broken_file_says_what_is_wrong(trained: Path, tmp_path: Path, kind: str):
    words = {
        "damaged": "checksum",
        "absent": "cannot be read: No such file",
        "folder": "is a directory",
        "text": "is not a model file of this version",
        "spec": "holds no model",
        "arrays": "its array alpha is missing",
    }
    with pytest.raises(ModelFileError, match=words[kind]):
        load_model(broken(trained, tmp_path, kind))


def test_a_damaged_file_keeps_the_server_from_starting(
    trained: Path, data: ServerProcess, tmp_path: Path
):
    path = broken(trained, tmp_path, "damaged")
    with pytest.raises(RuntimeError) as caught:
        data.start("--load", f"m={path}")
    last = str(caught.value).strip().splitlines()[-1]
    assert last == f"Error: --load: {path} does not match its checksum"
    assert "Traceback" not in str(caught.value)
    shutil.copy(trained, path)
    data.start("--load", f"m={path}")
    assert said(data, "m")["sequence"] == 400
