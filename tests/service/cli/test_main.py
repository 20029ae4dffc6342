"""The command line: help, settings, and errors in one line."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wolfstream.service.cli.main import main
from wolfstream.service.errors import StartupError
from wolfstream.service.server import main_process
from wolfstream.service.settings import Settings


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(f"WOLFSTREAM_{name.upper()}", raising=False)
    monkeypatch.delenv("WOLFSTREAM_URL", raising=False)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings with which `serve` would have started."""
    settings: list[Settings] = []
    monkeypatch.setattr(main_process, "serve", lambda given, *_: settings.append(given))
    return settings


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The model files with which `serve` would have started."""
    loads: dict[str, Path] = {}
    monkeypatch.setattr(main_process, "serve", lambda _, given, *__: loads.update(given))
    return loads


@pytest.fixture
def csv(tmp_path: Path) -> str:
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,0\n2,1\n")
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="wolfstream")


def error_line(result: Result) -> str:
    """The one line that says what went wrong."""
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    assert "Traceback" not in result.output
    return line


class TestHelp:
    def test_says_which_command_is_for_what(self):
        result = run("--help")
        assert result.exit_code == 0
        for word in (
            "serve",
            "replay",
            "train",
            "predict",
            "evaluate",
            "Examples",
            "WOLFSTREAM_PORT",
            "/docs",
        ):
            assert word in result.output

    def test_serve_names_every_setting_with_its_default(self):
        output = run("serve", "--help").output
        assert max(map(len, output.splitlines())) <= 80
        text = " ".join(output.split())
        for name, field in Settings.model_fields.items():
            assert f"WOLFSTREAM_{name.upper()}" in text
            assert field.description in text
            default = "none" if field.default in (None, (), "") else str(field.default)
            default = {"True": "yes", "False": "no"}.get(default, default)
            assert re.search(rf"[Dd]efault: {re.escape(default)}\b", text)

    def test_replay_names_formats_and_exit_codes(self):
        text = run("replay", "--help").output
        for word in ("CSV", "svmlight", "npz", "Exit codes", "--transport", "--label"):
            assert word in text

    def test_version(self):
        assert re.fullmatch(r"wolfstream, version \d+\.\d+.*\n", run("--version").output)

    def test_help_does_not_load_the_server(self):
        script = (
            "import sys; from wolfstream.service.cli.main import main; "
            "main(['--help'], standalone_mode=False); "
            "assert not {'numba', 'numpy', 'fastapi', 'httpx', 'rich'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


class TestServe:
    def test_defaults(self, served: list[Settings]):
        assert run("serve").exit_code == 0
        assert served == [Settings()]

    def test_options_win_over_variables_and_variables_over_defaults(
        self, served: list[Settings], monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("WOLFSTREAM_PORT", "1234")
        monkeypatch.setenv("WOLFSTREAM_THREADS", "2")
        monkeypatch.setenv("WOLFSTREAM_WINDOW", "7")
        assert run("serve", "--threads", "3", "--host", "::1", "--data", "d").exit_code == 0
        settings = served[0]
        assert (settings.port, settings.threads, settings.window) == (1234, 3, 7)
        assert (settings.host, settings.data) == ("::1", Path("d"))

    @pytest.mark.parametrize("value", ["99999", "-1", "http", ""])
    def test_wrong_option(self, served: list[Settings], value: str):
        result = run("serve", f"--port={value}")
        assert result.exit_code == 2
        assert f"--port {value!r}" in error_line(result)
        assert not served

    @pytest.mark.parametrize(
        ("option", "needed"),
        [
            ("--port=99999", "--port '99999': it must be at most 65535"),
            ("--port=http", "--port 'http': it must be a whole number"),
            ("--threads=0", "--threads '0': it must be at least 1"),
            ("--log-format=xml", "--log-format 'xml': it must be 'auto', 'text' or 'json'"),
        ],
    )
    def test_a_wrong_option_says_what_it_must_be(
        self, served: list[Settings], option: str, needed: str
    ):
        assert needed in error_line(run("serve", option))
        assert not served

    @pytest.mark.parametrize(
        ("variable", "told"),
        [
            ("WOLFSTREAM_POTR", "WOLFSTREAM_POTR is no setting; did you mean WOLFSTREAM_PORT?"),
            ("WOLFSTREAM_PATIENCE", "did you mean WOLFSTREAM_PATIENCE_SECONDS?"),
            ("WOLFSTREAM_XYZZY", "WOLFSTREAM_XYZZY is no setting. `wolfstream serve --help`"),
            ("wolfstream_potr", "did you mean WOLFSTREAM_PORT?"),
        ],
    )
    def test_unknown_variable(
        self, served: list[Settings], monkeypatch: pytest.MonkeyPatch, variable: str, told: str
    ):
        monkeypatch.setenv(variable, "8080")
        result = run("serve")
        assert result.exit_code == 2
        assert told in error_line(result)
        assert not served

    @pytest.mark.parametrize(
        "variable",
        [
            "WOLFSTREAM_KEY",
            "WOLFSTREAM_URL",
            "WOLFSTREAM_SERVICE_HOST",
            "WOLFSTREAM_SERVICE_PORT_HTTP",
            "WOLFSTREAM_PORT_8000_TCP_ADDR",
            "WOLFSTREAM_REPLICAS_SERVICE_PORT",
            "WOLFSTREAM_REPLICAS_PORT",
        ],
    )
    def test_variables_of_others(
        self, served: list[Settings], monkeypatch: pytest.MonkeyPatch, variable: str
    ):
        monkeypatch.setenv(variable, "value")
        assert run("serve").exit_code == 0
        assert served

    def test_wrong_variable(self, served: list[Settings], monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("WOLFSTREAM_GROUP_SAMPLES", "0")
        result = run("serve")
        assert result.exit_code == 2
        assert "WOLFSTREAM_GROUP_SAMPLES '0'" in error_line(result)
        assert not served

    def test_cannot_start(self, monkeypatch: pytest.MonkeyPatch):
        def fail(*_: object) -> None:
            raise StartupError("the data directory is in use")

        monkeypatch.setattr(main_process, "serve", fail)
        result = run("serve")
        assert result.exit_code == 1
        assert error_line(result) == "Error: the data directory is in use"

    @pytest.mark.parametrize("arguments", [[], ["--recover"]])
    def test_a_lost_journal_is_replaced_only_on_request(
        self, arguments: list[str], monkeypatch: pytest.MonkeyPatch
    ):
        given: list[bool] = []
        monkeypatch.setattr(main_process, "serve", lambda *_: given.append(_[2]))
        assert run("serve", *arguments).exit_code == 0
        assert given == [bool(arguments)]


class TestLoadUsage:
    def test_names_are_given_or_those_of_the_files(self, loaded: dict[str, Path]):
        arguments = ["--load", "a/rooms.model", "--load", "mail=b=c.model", "--load", "./d=e.x"]
        result = run("serve", *arguments)
        assert result.exit_code == 2
        assert "'d=e' cannot be the name of a model" in error_line(result)
        assert run("serve", *arguments[:4]).exit_code == 0
        assert loaded == {"rooms": Path("a/rooms.model"), "mail": Path("b=c.model")}

    @pytest.mark.parametrize("value", ["", "m=", "a b.model", "_a.model", "x" * 64, "..", "é.m"])
    def test_no_name(self, loaded: dict[str, Path], value: str):
        result = run("serve", "--load", value)
        assert result.exit_code == 2
        assert "--load" in error_line(result)
        assert not loaded

    def test_one_name_twice(self, loaded: dict[str, Path]):
        result = run("serve", "--load", "a/m.model", "--load", "m=b.model")
        assert result.exit_code == 2
        assert "'m' is given twice" in error_line(result)
        assert not loaded

    def test_the_rule_for_names_is_that_of_the_service(self):
        from wolfstream.service.cli.options import MODEL_NAME
        from wolfstream.service.spec.model import MODEL_NAME_PATTERN

        assert f"^{MODEL_NAME.pattern}$" == MODEL_NAME_PATTERN


class TestReplayUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["--model", "m", "--batch", "0"],
            ["--model", "m", "--rate", "0"],
            ["--model", "m", "--limit", "0"],
            ["--model", "m", "--head", "tail"],
            ["--model", "m", "--transport", "pigeon"],
            ["--model", "m", "--spec", "{"],
            ["--model", "m", "--spec", "@/absent.json"],
        ],
    )
    def test_wrong_options(self, csv: str, arguments: list[str]):
        result = run("replay", csv, *arguments)
        assert result.exit_code == 2
        error_line(result)

    def test_no_such_file(self):
        assert run("replay", "/absent.csv", "--model", "m").exit_code == 2

    def test_malformed_file(self, tmp_path: Path):
        path = tmp_path / "a.csv"
        path.write_text("a,y\n1,0\n1,inf\n")
        result = run("replay", str(path), "--model", "m")
        assert result.exit_code == 1
        assert f"{path}: line 3: the label is inf" in error_line(result)

    @pytest.mark.parametrize("url", ["localhost:8000", "ftp://h", "http://", "http://h:port"])
    def test_not_a_url(self, csv: str, url: str):
        result = run("replay", csv, "--model", "m", "--url", url)
        assert result.exit_code == 2
        assert "is not the URL of a server, such as http" in error_line(result)

    @pytest.mark.parametrize("transport", ["http", "websocket"])
    def test_no_server(self, csv: str, transport: str):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
            result = run("replay", csv, "--model", "m", "--url", url, "--transport", transport)
        assert result.exit_code == 3
        assert f"cannot reach {url}" in error_line(result)
        assert "wolfstream serve" in error_line(result)
        assert "nothing was sent" in error_line(result)


def test_keys_of_a_fleet_need_nats(monkeypatch: pytest.MonkeyPatch):
    for module in [name for name in sys.modules if name.startswith("wolfstream.service.fleet")]:
        monkeypatch.delitem(sys.modules, module)
    for module in [name for name in sys.modules if name.startswith("nats.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "nats", None)
    result = run("keys", "list", "--fleet", "nats://127.0.0.1:1")
    assert result.exit_code == 1
    assert "pip install 'wolfstream[fleet]'" in error_line(result)
