"""Fetch uPlot, which draws the console's plots: `python -m wolfstream.service.console.plots`.

It is fetched through npm, from the registry that npm is set up for, and checked against the hash
below. It is not in the repository; building a wheel fetches it (`hatch_build.py`).
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "uplot-1.6.32.tgz"
_NAMED = "uplot@1.6.32"
_SHA512 = "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
_STATIC = Path(__file__).parent / "static"
# What becomes of the package's files.
FILES = {
    "package/dist/uPlot.iife.min.js": "plots.js",
    "package/dist/uPlot.min.css": "plots.css",
    "package/LICENSE": "plots-license.txt",
}


class CannotFetch(Exception):
    """The plots cannot be had; the message says why, and what to do."""


def fetch(folder: Path = _STATIC) -> None:
    """Put the plots into a folder, unless they are there. Raises CannotFetch.

    Where the package's file lies beside this module, as in the build of the image, it is used.
    """
    if all((folder / name).exists() for name in FILES.values()):
        return
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(__file__).parent / PACKAGE
        package = here if here.exists() else _packed(Path(temporary))
        content = package.read_bytes()
        if base64.b64encode(hashlib.sha512(content).digest()).decode() != _SHA512:
            raise CannotFetch(f"{package.name} is not the file that was expected: its hash differs")
        with tarfile.open(package) as archive:
            for member, name in FILES.items():
                file = archive.extractfile(member)
                assert file is not None
                (folder / name).write_bytes(file.read())


def _packed(folder: Path) -> Path:
    """Return the package's file, from npm. Raises CannotFetch."""
    npm = shutil.which("npm")
    if npm is None:
        raise CannotFetch(
            f"npm is not installed, which fetches {_NAMED}; install it, or put {PACKAGE} beside "
            f"{Path(__file__).name}"
        )
    command = [npm, "pack", "--silent", "--pack-destination", str(folder), _NAMED]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not (folder / PACKAGE).exists():
        raise CannotFetch(f"npm could not fetch {_NAMED}: {done.stderr.strip()[-400:]}")
    return folder / PACKAGE


if __name__ == "__main__":
    try:
        fetch()
    except CannotFetch as error:
        sys.exit(str(error))
