"""Clients that others' generators make of the OpenAPI document can create a model of `{}`."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.routes.app import create_app
from wolfstream.service.web.routes.stream import Streams

PACKAGES = ("openapi-typescript@7.13.0", "typescript@5.9.3")
SPECS = """import type { components } from "./interface";
type NewModel = components["schemas"]["NewModel"];
export const specs: NewModel[] = [{}, { working_set: { C: 2 } }, { kernel: { type: "linear" } }];
"""


@pytest.fixture
def document(tmp_path: Path) -> Path:
    app = create_app(None, None, Settings(_env_file=None), Streams(), None, MemoryBudget(1))  # type: ignore[arg-type, call-arg]
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(app.openapi()))
    return file


def test_python(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openapi_python_client", reason="pip install -e '.[hard]'")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    arguments = ["--path", str(document), "--output-path", str(tmp_path / "generated_client")]
    told = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "will not be generated" not in told.stdout
    monkeypatch.syspath_prepend(str(tmp_path))
    models = importlib.import_module("generated_client.models")
    assert models.NewModel().to_dict() == {}
    importlib.import_module("generated_client.api.models.create_model")


def test_typescript(document: Path, tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm")
    install = [npm, "install", "--silent", *PACKAGES]
    if subprocess.run(install, cwd=tmp_path, capture_output=True, timeout=300).returncode:
        pytest.skip("npm reaches no registry")
    (tmp_path / "specs.ts").write_text(SPECS)
    node = tmp_path / "node_modules" / ".bin"
    for command in (
        [node / "openapi-typescript", document, "-o", "interface.d.ts"],
        [node / "tsc", "--noEmit", "--strict", "--skipLibCheck", "specs.ts"],
    ):
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert told.returncode == 0, told.stdout + told.stderr
