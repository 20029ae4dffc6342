"""The files of the console, `service/console`, as they are served."""

import hashlib
from importlib.resources import files
from typing import NamedTuple

INDEX = "index.html"
_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file's bytes, their media type, and an entity tag of them."""

    content: bytes
    media_type: str
    tag: str


def read_files() -> dict[str, File]:
    """Return all files by name."""
    return {
        entry.name: _file(entry.name, entry.read_bytes())
        for entry in files("wolfstream.service").joinpath("console").iterdir()
        if entry.name.rpartition(".")[2] in _MEDIA_TYPES
    }


def _file(name: str, content: bytes) -> File:
    digest = hashlib.sha256(content).hexdigest()[:16]
    return File(content, _MEDIA_TYPES[name.rpartition(".")[2]], f'"{digest}"')
