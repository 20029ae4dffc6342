"""The locks: every package that the project asks for, at a version that it allows, with hashes."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
ASKED = {
    "server": PROJECT["project"]["dependencies"] + EXTRAS["fleet"],
    "build": PROJECT["build-system"]["requires"],
    "development": PROJECT["project"]["dependencies"] + EXTRAS["dev"] + EXTRAS["bench"],
}
_SHA256 = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def locked(name: str) -> dict[str, list[tuple[str, int]]]:
    """The versions of each package in a lock, with the number of their hashes."""
    found: dict[str, list[tuple[str, int]]] = {}
    text = (ROOT / "locks" / f"{name}.txt").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        requirement = Requirement(line.partition("--hash")[0].strip())
        (pinned,) = requirement.specifier
        assert pinned.operator == "=="
        hashes = _SHA256.findall(line)
        found.setdefault(canonicalize_name(requirement.name), []).append(
            (pinned.version, len(hashes))
        )
    return found


@pytest.mark.parametrize("name", list(ASKED))
def test_required_packages_locked_in_range(name: str) -> None:
    packages = locked(name)
    for line in ASKED[name]:
        asked = Requirement(line)
        if asked.name == "wolfstream":  # its own extras
            continue
        versions = packages[canonicalize_name(asked.name)]
        assert all(asked.specifier.contains(version) for version, _ in versions), line


@pytest.mark.parametrize("name", list(ASKED))
def test_every_version_has_hashes(name: str) -> None:
    packages = locked(name)
    assert packages
    for package, versions in packages.items():
        assert all(hashes for _, hashes in versions), package


def test_the_server_runs_on_the_same_versions_in_development() -> None:
    development = locked("development")
    for package, versions in locked("server").items():
        assert {version for version, _ in versions} == {v for v, _ in development[package]}


def test_what_is_built_on_has_an_upper_bound() -> None:
    """The protocols of uvicorn are subclassed."""
    (uvicorn,) = [Requirement(line) for line in ASKED["server"] if line.startswith("uvicorn")]
    assert {part.operator for part in uvicorn.specifier} == {">=", "<"}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("said", "status", "passes", "tells"),
    [
        ("No known vulnerabilities found", 0, True, "No known"),
        ("Found 1 known vulnerability in 1 package", 1, False, "Found 1"),
        ("ConnectionError: nobody answers", 1, True, "offline: no database"),
    ],
    ids=["none", "a defect", "offline"],
)
def test_audit_reports_defects_and_gaps(
    tmp_path: Path, said: str, status: int, passes: bool, tells: str
) -> None:
    commands = tmp_path / "bin"
    for folder in (commands, tmp_path / ".venv"):
        folder.mkdir()
    for name, text in (("python", "exit 0"), ("pip-audit", f"echo '{said}' >&2; exit {status}")):
        (commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (commands / name).chmod(0o755)
    done = subprocess.run(
        ["make", "-f", ROOT / "Makefile", "-o", ".venv/supply", "audit", f"BIN={commands}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == passes
    assert tells in done.stdout
