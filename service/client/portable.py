"""What is uploaded, and what is made of a download: estimators, model files, and their bytes.

The numerics are imported only where there is an estimator.
"""

import os
from pathlib import Path
from typing import Any


def content_of(source: Any) -> bytes:
    """Return the bytes of a model file: at a path, of a fitted estimator, or as they are given.

    Raises what `wolfstream.save` raises, OSError.
    """
    if isinstance(source, bytes):
        return source
    if isinstance(source, str | os.PathLike):
        return Path(source).read_bytes()
    from wolfstream.service.notebook.files import encode

    return encode(source)


def made_of(content: bytes, name: str, path: str | os.PathLike[str] | None) -> Any:
    """Write the bytes of a model file to a path, or return the estimator in them without one.

    Raises what `wolfstream.load` raises, OSError.
    """
    if path is not None:
        partial = Path(f"{os.fspath(path)}.partial")
        partial.write_bytes(content)
        partial.replace(path)
        return None
    from wolfstream.service.notebook.files import decode

    return decode(content, f"the model {name!r}")
