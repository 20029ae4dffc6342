"""Keys that are gone: the server does not let everybody in."""

import signal
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tests.service.process import ServerProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key
from wolfstream.service.cli.main import main
from wolfstream.service.errors import StartupError
from wolfstream.service.storage.backup import copy_directory
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.key_mark import (
    FileKeyMark,
    JournalKeyMark,
    KeyMark,
    check_keys,
)

SOON = 20.0


def start_without_keys(server: ServerProcess, *more: str) -> str:
    """Delete the keys and start; what the server said before it ended."""
    (server.data / "keys.json").unlink()
    server.launch(*more)
    assert server.exit_code() == 1
    return server.log()


class TestServer:
    def test_does_not_start_without_the_keys_that_it_had(self, tmp_path: Path):
        data = tmp_path / "data"
        with closing(ServerProcess(data)) as server:
            add_key(KeyFile(data), "ops", ("admin",))
            server.start()
            server.send_signal(signal.SIGTERM)
            server.exit_code()
            log = start_without_keys(server)
            assert "this server had keys" in log
            assert "--no-keys" in log
            assert "Traceback" not in log
            server.start("--no-keys")
            assert httpx.get(f"{server.url}/v1/models").status_code == 200
            server.kill()
            server.start()  # from now on it has none
            assert httpx.get(f"{server.url}/v1/models").status_code == 200

    @pytest.mark.parametrize("starts", [False, True])
    def test_does_not_start_without_keys_added_by_the_command(self, tmp_path: Path, starts: bool):
        data = tmp_path / "data"
        command = ["keys", "add", "--data", str(data), "--name", "ops", "--scope", "admin"]
        assert CliRunner().invoke(main, command).exit_code == 0
        with closing(ServerProcess(data)) as server:
            if starts:
                server.start()
                server.kill()
            assert "this server had keys" in start_without_keys(server)
            server.start("--no-keys")
            server.kill()
            server.start()  # from now on it has none
            assert httpx.get(f"{server.url}/v1/models").status_code == 200

    def test_notes_keys_that_are_added_while_it_runs(self, tmp_path: Path):
        data = tmp_path / "data"
        with closing(ServerProcess(data)) as server:
            server.start()
            add_key(KeyFile(data), "ops", ("admin",))
            deadline = time.monotonic() + SOON
            while not JournalKeyMark(data).is_set():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            server.kill()
            assert "this server had keys" in start_without_keys(server)

    def test_starts_with_new_keys_in_place_of_lost_ones(self, tmp_path: Path):
        data = tmp_path / "data"
        with closing(ServerProcess(data)) as server:
            add_key(KeyFile(data), "ops", ("admin",))
            server.start()
            server.kill()
            (data / "keys.json").unlink()
            add_key(KeyFile(data), "other", ("admin",))
            server.start()
            assert httpx.get(f"{server.url}/v1/models").status_code == 401

    def test_refuses_no_keys_where_there_are_some(self, tmp_path: Path):
        data = tmp_path / "data"
        add_key(KeyFile(data), "ops", ("admin",))
        with closing(ServerProcess(data)) as server:
            server.launch("--no-keys")
            assert server.exit_code() == 1
            assert "leave --no-keys out" in server.log()


@pytest.fixture(params=[JournalKeyMark, FileKeyMark])
def mark(request: pytest.FixtureRequest, tmp_path: Path) -> KeyMark:
    open_storage(tmp_path).close()
    made: KeyMark = request.param(tmp_path)
    return made


class TestMark:
    def test_is_kept_until_there_are_to_be_no_keys(self, mark: KeyMark):
        check_keys(mark, False, False, "here")
        assert not mark.is_set()
        check_keys(mark, True, False, "here")
        with pytest.raises(StartupError, match="none in here"):
            check_keys(mark, False, False, "here")
        check_keys(mark, False, True, "here")
        check_keys(mark, False, False, "here")

    def test_is_in_a_backup(self, tmp_path: Path):
        (tmp_path / "data").mkdir()
        open_storage(tmp_path / "data").close()
        JournalKeyMark(tmp_path / "data").set(True)
        copy_directory(tmp_path / "data", tmp_path / "copy")
        open_storage(tmp_path / "copy").close()
        assert JournalKeyMark(tmp_path / "copy").is_set()
