"""Hashes of the program's own sources, which tell whether two processes run the same code."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol


class _Digest(Protocol):
    def update(self, content: bytes, /) -> None:
        """Continue the hash with some bytes."""


def add_sources(digest: _Digest, folder: str) -> None:
    """Continue a hash with the names and contents of all modules in a folder."""
    for file in sorted(Path(folder).rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())


def sources_hash(*packages: str) -> str:
    """Return a hash of all modules of some packages, wherever these are installed.

    packages: their names.
    """
    digest = hashlib.sha256()
    for package in packages:
        spec = find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            add_sources(digest, folder)
    return digest.hexdigest()[:16]
