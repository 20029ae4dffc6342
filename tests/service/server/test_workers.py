"""The processes of a server with workers, as they start."""

from pathlib import Path

import pytest

from wolfstream.service.errors import StartupError
from wolfstream.service.server.workers import listen_at


def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 100) / "leader"
    path.parent.mkdir()
    with pytest.raises(StartupError, match="path too long; let TMPDIR name a shorter directory"):
        listen_at(path)
