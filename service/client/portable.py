"""Uploads and downloads of models: estimators, model files, and their bytes.

The numerics are imported only if there is an estimator.
"""

import os
from pathlib import Path
from typing import Any


def model_bytes(source: Any) -> bytes:
    """Return a model file's bytes.

    Args:
        source: a path, a fitted estimator, or the bytes.

    Raises what `wolfstream.save` raises, OSError.
    """
    if isinstance(source, bytes):
        return source
    if isinstance(source, str | os.PathLike):
        return Path(source).read_bytes()
    from wolfstream.service.notebook.files import encode

    return encode(source)


def save_or_load(content: bytes, name: str, path: str | os.PathLike[str] | None) -> Any:
    """Write a model file, or return the estimator in it.

    Args:
        content: bytes of the model file.
        name: of the model, for messages.
        path: to write to; None returns the estimator.

    Raises what `wolfstream.load` raises, OSError.
    """
    if path is not None:
        partial = Path(f"{os.fspath(path)}.partial")
        partial.write_bytes(content)
        partial.replace(path)
        return None
    from wolfstream.service.notebook.files import decode

    return decode(content, f"the model {name!r}")
